"""Findings of nodes at one instant, exchanged through their store.

While votes wait, one statement asks for all. Lives on the loop; calls the store in threads, one at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from functools import partial
from logging import getLogger
from typing import Any, Final, TypeVar

import anyio
from anyio.to_thread import run_sync
from attrs import define, field

from scheduler import StoreError
from scheduler.stores import Vote, Voting
from timerqueue import Clock

from ..checks import CheckResult, Status
from ..instants import microseconds

logger = getLogger(__name__)
T = TypeVar("T")

LOOKS_EVERY: Final = 0.1
"""Seconds."""

PAUSE: Final = 1.0
"""Seconds after a failure of the store."""

KEPT: Final = 3_600
"""Seconds in the store."""

MOST_WAITING: Final = 10_000
"""Votes. Beyond that the oldest go."""

LONGEST_ERROR: Final = 300

Asked = tuple[str, int]
"""A subject, and UTC microseconds."""


@define(eq=False)
class _Count:
    missing: set[int]
    found: dict[int, CheckResult] = field(factory=dict)
    is_full: anyio.Event = field(factory=anyio.Event)

    def take(self, vote: Vote) -> None:
        if vote.epoch in self.missing:
            self.missing.discard(vote.epoch)
            self.found[vote.epoch] = result_of(vote.said)
        if not self.missing:
            self.is_full.set()


class VoteExchange:
    """One node's ballots. `epoch` None: it casts no vote."""

    def __init__(self, voting: Voting, epoch: Callable[[], int | None], clock: Clock) -> None:
        self._voting = voting
        self._epoch = epoch
        self._clock = clock
        self._cast: list[Vote] = []
        self._counts: dict[Asked, _Count] = {}
        self._wanted = anyio.Event()
        self._one_at_a_time = anyio.CapacityLimiter(1)

    def cast(self, subject: str, due_us: int, found: CheckResult) -> None:
        """Write our finding soon."""
        epoch = self._epoch()
        if epoch is None:
            return
        del self._cast[:-MOST_WAITING]
        self._cast.append(Vote(subject, due_us, epoch, said_of(found)))
        self._wanted.set()

    async def collect(
        self, subject: str, due_us: int, epochs: Collection[int], within: float
    ) -> dict[int, CheckResult]:
        """Return findings by epoch, after at most `within` seconds."""
        count = self._counts[subject, due_us] = _Count(set(epochs))
        self._wanted.set()
        try:
            await self._clock_or(count.is_full, within)
        finally:
            del self._counts[subject, due_us]
        return count.found

    async def run(self) -> None:
        """Exchange votes until cancelled."""
        forgotten = self._clock.monotonic()
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            try:
                await self._exchange()
                if self._clock.monotonic() - forgotten > KEPT:
                    forgotten = self._clock.monotonic()
                    await self._ask(partial(self._voting.forget, microseconds(self._clock.wall() - KEPT)))
            except StoreError as exc:
                logger.warning("agents cannot vote: %s", exc)
                await self._clock.sleep(PAUSE)
            if self._counts or self._cast:
                self._wanted.set()
                await self._clock.sleep(LOOKS_EVERY)

    async def _exchange(self) -> None:
        cast, self._cast = self._cast, []
        if cast:
            try:
                await self._ask(partial(self._voting.cast, cast))
            except StoreError:
                self._cast[:0] = cast
                raise
        if self._counts:
            asked = list(self._counts)
            for vote in await self._ask(partial(self._voting.votes, asked)):
                count = self._counts.get((vote.subject, vote.due_us))
                if count is not None:
                    count.take(vote)

    async def _clock_or(self, event: anyio.Event, seconds: float) -> None:

        async def end() -> None:
            await self._clock.sleep(seconds)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(end)
            await event.wait()
            group.cancel_scope.cancel()

    async def _ask(self, call: Callable[[], T]) -> T:
        return await run_sync(call, abandon_on_cancel=True, limiter=self._one_at_a_time)


def said_of(found: CheckResult) -> str:
    """Write a vote in JSON."""
    values: dict[str, Any] = {"status": found.status.value}
    if found.latency is not None:
        values["latency"] = round(found.latency, 6)
    if found.error is not None:
        values["error"] = found.error[:LONGEST_ERROR]
    return json.dumps(values)


def result_of(said: str) -> CheckResult:
    """Read a vote. An unreadable one is unknown."""
    try:
        values = json.loads(said)
        latency, error = values.get("latency"), values.get("error")
        return CheckResult(
            status=Status(values["status"]),
            latency=float(latency) if isinstance(latency, (int, float)) else None,
            error=str(error) if error is not None else None,
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return CheckResult(status=Status.UNKNOWN, error="its vote cannot be read")
