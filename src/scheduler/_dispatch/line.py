"""Lines: calls that wait for others outside of the process, one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Line(Protocol):
    """Carries out calls in the order in which they came, and tells `done` on the loop what each returned or raised."""

    def submit(self, call: Callable[[], Any], done: Callable[[Any, Exception | None], object]) -> None:
        """Carry it out. Returns at once."""

    def close(self, wait: float, let_go: Callable[[], object]) -> bool:
        """Take no more calls, and wait so many seconds for those that were taken."""
