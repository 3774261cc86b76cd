"""Acts with an Idempotency-Key are done once: who asks again within a day gets the same answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, Final

from attrs import define, evolve

from timerqueue import Clock

from ._protocol import Answer, Problem, Trace, invalid, problem_of, unavailable

KEPT_S: Final = 86_400.0
"""Seconds."""

MOST: Final = 10_000
"""Answers of all callers."""

MOST_OF_CALLER: Final = 1_000

LONGEST_KEY: Final = 255
"""Characters."""

LARGEST: Final = 8 * 1024
"""Bytes of an answer. Of a larger one only the status is kept."""

Place = tuple[str, str]
"""A caller's name, and the key."""


@define
class Kept:
    """`answer` None: the first request goes on, or has ended without one."""

    asked: bytes
    at: float
    answer: Answer | None = None
    is_over: bool = False


class Once:
    """The answers of one app. In memory: another process does not know them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[Place, Kept] = {}
        self._of_caller: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._kept)

    async def answer(
        self, caller: str, key: str, asked: bytes, act: Callable[[], Awaitable[Answer]], trace: Trace
    ) -> Answer:
        """Act, or answer as before. `asked`: tells requests apart. Raises Problem."""
        _check(key)
        self._forget_old()
        place = caller, key
        if (known := self._kept.get(place)) is not None:
            return _again(known, asked)
        self._make_room(caller)
        kept = self._kept[place] = Kept(asked, self._clock.monotonic())
        self._of_caller[caller] += 1
        try:
            kept.answer = _to_keep(answer := await act())
        except BaseException as exc:
            self._failed(place, kept, exc, trace)
            raise
        finally:
            kept.is_over = True
        return answer

    def _failed(self, place: Place, kept: Kept, error: BaseException, trace: Trace) -> None:
        """A request that has changed nothing may come again. Else its refusal is its answer."""
        if trace.step == "not made":
            self._forget(place)
        elif isinstance(error, Exception) and (problem := problem_of(error)) is not None:
            kept.answer = Answer(problem.status, problem.body, {"Content-Type": "application/problem+json"})

    def _forget_old(self) -> None:
        before = self._clock.monotonic() - KEPT_S
        while self._kept and next(iter(self._kept.values())).at < before:
            self._forget(next(iter(self._kept)))

    def _make_room(self, caller: str) -> None:
        """A caller with many keys loses the oldest of its own. A key whose act goes on stays: it could come again."""
        if self._of_caller[caller] >= MOST_OF_CALLER:
            places = [place for place in self._kept if place[0] == caller]
        elif len(self._kept) >= MOST:
            places = [*self._kept]
        else:
            return
        over = next((place for place in places if self._kept[place].is_over), None)
        if over is None:
            raise unavailable("too many requests with an Idempotency-Key go on: nothing has changed")
        self._forget(over)

    def _forget(self, place: Place) -> None:
        if self._kept.pop(place, None) is not None:
            self._of_caller[place[0]] -= 1
            if not self._of_caller[place[0]]:
                del self._of_caller[place[0]]


def told(*parts: Any) -> bytes:
    """Return what tells this request from others."""
    return blake2b(repr(parts).encode("utf-8", "backslashreplace"), digest_size=32).digest()


def _check(key: str) -> None:
    if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
        detail = f"Idempotency-Key must have 1 to {LONGEST_KEY} printable characters, not {key[:100]!r}"
        raise invalid(detail, "Idempotency-Key")


def _again(known: Kept, asked: bytes) -> Answer:
    if known.asked != asked:
        detail = "this Idempotency-Key came with another request: take a new key for each act"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "key-reused", detail)
    if known.answer is None:
        state = "has ended without an answer: look what has become of it" if known.is_over else "is still going on"
        raise Problem(HTTPStatus.CONFLICT, "key-in-use", f"the first request with this Idempotency-Key {state}")
    return evolve(known.answer, headers={**known.answer.headers, "Idempotency-Replayed": "true"})


def _to_keep(answer: Answer) -> Answer:
    is_large = answer.body is not None and len(json.dumps(answer.body)) > LARGEST
    return evolve(answer, body=None) if is_large else answer
