"""Lines: calls that wait for others outside of the process, one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import anyio

T = TypeVar("T")


class Line(Protocol):
    """Carries out calls in the order in which they came, and tells `done` on the loop what each returned or raised."""

    def submit(self, call: Callable[[], Any], done: Callable[[Any, Exception | None], object]) -> None:
        """Carry it out. Returns at once."""

    def close(self, wait: float, let_go: Callable[[], object]) -> bool:
        """Take no more calls, and wait so many seconds for those that were taken."""


async def answer_of(line: Line, call: Callable[[], T]) -> T:
    """Call in that line, and wait for the answer. Raises what the call raises."""
    done, answer, trouble = anyio.Event(), list[T](), list[Exception]()

    def answered(found: T, error: Exception | None) -> None:
        (answer.append(found) if error is None else trouble.append(error))
        done.set()

    line.submit(call, answered)
    await done.wait()
    if trouble:
        raise trouble[0]
    return answer[0]
