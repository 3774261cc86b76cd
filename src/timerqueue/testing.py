"""A clock for tests, which moves only when you tell it to."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from ._wake import Wake, make_wake, others_watched

__all__ = ["START", "ManualClock"]

START = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock for tests. It stands still until you move it or, with `autojump`, until all tasks are idle.

    The wall clock begins at `start`, `monotonic` at 1,000, so that mixing them up shows. With `autojump=True` waiting
    takes no real time: if all tasks are idle and `is_idle()` agrees, time jumps to the end of the next wait. By default
    `is_idle()` is True. Use it in one event loop's thread.
    """

    announces_steps = True
    """`step` wakes every wait, so a scheduler need not poll the clock."""

    def __init__(self, start: datetime = START, *, autojump: bool = False) -> None:
        self._monotonic = 1_000.0
        self._wall_ahead = start.timestamp() - self._monotonic
        self._sleepers: list[tuple[float, int, anyio.Event]] = []
        self._contexts: dict[anyio.Event, Context] = {}
        self._order = itertools.count()
        self._wakes: list[_ManualWake] = []
        self.autojump = autojump
        self.is_idle: Callable[[], bool] = lambda: True

    def monotonic(self) -> float:
        """See Clock."""
        return self._monotonic

    def wall(self) -> float:
        """See Clock."""
        return self._monotonic + self._wall_ahead

    def now(self) -> datetime:
        """Return the wall clock's time, in UTC."""
        return datetime.fromtimestamp(self.wall(), UTC)

    @property
    def sleeping(self) -> int:
        """How many tasks are in `sleep`."""
        return len(self._sleepers)

    def advance(self, seconds: float | timedelta) -> None:
        """Let `seconds` pass on both clocks at once, and end every wait for that time.

        Raises ValueError if negative: `step` sets the wall clock back.
        """
        self._move_to(self._monotonic + _passing(seconds))

    async def travel(self, seconds: float | timedelta) -> None:
        """Let `seconds` pass, stopping at the end of each wait for its task to work.

        Raises ValueError if negative, like `advance`.
        """
        goal = self._monotonic + _passing(seconds)
        await self._settle()
        while (following := self._next_wait()) <= goal + ROUNDING:
            self._move_to(following)
            await self._settle()
        self._move_to(goal)
        await self._settle()

    async def travel_until(self, is_over: Callable[[], bool], may_pass: Callable[[], bool]) -> None:
        """Let time pass from wait to wait while `may_pass()`, else in real time, until `is_over()`.

        With `autojump` the clock moves by itself, so this only waits.
        """
        real = make_wake()
        await self._settle()
        while not is_over():
            following = self._next_wait()
            if following < math.inf and not self.autojump and may_pass():
                self._move_to(following)
            else:
                await real.wait(A_MOMENT)
            await self._settle()

    def asleep(self, variable: ContextVar[Any]) -> int:
        """Count the sleeping tasks in whose context `variable` is set."""
        return sum(variable in context for context in self._contexts.values())

    def step(self, seconds: float | timedelta) -> None:
        """Set the wall clock forward or back; the monotonic clock does not notice."""
        self._wall_ahead += _seconds_of(seconds)
        for wake in self._wakes:
            wake.set()

    def suspend(self, seconds: float | timedelta) -> None:
        """Suspend the machine: only the wall clock moves on. Raises ValueError if negative, like `advance`."""
        self.step(_passing(seconds))

    def make_wake(self) -> Wake:
        """See Clock."""
        wake = _ManualWake(self)
        self._wakes.append(wake)
        return wake

    async def sleep(self, seconds: float) -> None:
        """Sleep. With `autojump` and no queue on this clock, time jumps while all other tasks are idle."""
        if seconds <= 0:
            await checkpoint()
            return
        event = anyio.Event()
        sleeper = (self._monotonic + seconds, next(self._order), event)
        heapq.heappush(self._sleepers, sleeper)
        self._contexts[event] = copy_context()
        try:
            while self.autojump and not self._wakes and not event.is_set():
                await self.jump_when_idle(sleeper[0], event.is_set)
            await event.wait()
        finally:
            del self._contexts[event]
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)
                heapq.heapify(self._sleepers)

    async def jump_when_idle(self, until: float, is_over: Callable[[], bool]) -> None:
        """Give other tasks a turn. If all are idle, move to the end of the next wait, or to `until`."""
        await checkpoint()
        following = min(until, self._next_wait())
        if following < math.inf and not is_over() and self.is_idle():
            self._move_to(following)

    def _next_wait(self) -> float:
        sleeper = self._sleepers[0][0] if self._sleepers else math.inf
        return min(sleeper, min((wake.until for wake in self._wakes), default=math.inf))

    def _move_to(self, now: float) -> None:
        close = (wake.until for wake in self._wakes if wake.until <= now + ROUNDING)
        self._monotonic = max(self._monotonic, now, *close)
        while self._sleepers and self._sleepers[0][0] <= self._monotonic:
            heapq.heappop(self._sleepers)[2].set()
        for wake in self._wakes:
            if wake.until <= self._monotonic:
                wake.set()

    async def _settle(self) -> None:
        quiet = 0
        with others_watched() as is_quiet:
            for _ in range(SETTLE_TURNS):
                await checkpoint()
                quiet = quiet + 1 if is_quiet() else 0
                if quiet == QUIET_TURNS:
                    return


A_MOMENT = 0.001
"""Seconds of real time."""

SETTLE_TURNS = 50
"""Turns of the event loop after which everything that needs no time counts as done."""

QUIET_TURNS = 3
"""Turns in a row with all other tasks idle, after which all is done. The loop has looked at sockets and threads in
them.
"""

ROUNDING = 1e-9
"""Seconds by which two computations of one instant may differ."""


class _ManualWake:
    pace = 0.0

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._real = make_wake()
        self._is_set = False
        self.until = math.inf

    async def wait(self, seconds: float | None) -> None:
        self.until = math.inf if seconds is None else self._clock.monotonic() + seconds
        try:
            if self._clock.autojump:
                await self._jump()
            elif self.until > self._clock.monotonic():
                await self._real.wait(None)
        finally:
            self.until = math.inf
            self._is_set = False

    def set(self) -> None:
        self._is_set = True
        self._real.set()

    async def _jump(self) -> None:
        while not self._is_over():
            await self._clock.jump_when_idle(self.until, self._is_over)

    def _is_over(self) -> bool:
        return self._is_set or self.until <= self._clock.monotonic()


def _passing(value: float | timedelta) -> float:
    """Convert to seconds that pass. Raises ValueError if there are less than none."""
    seconds = _seconds_of(value)
    if seconds < 0:
        msg = f"time cannot advance by {seconds}: to set the wall clock back, use step({seconds})"
        raise ValueError(msg)
    return seconds


def _seconds_of(value: float | timedelta) -> float:
    """Convert to seconds. Raises TypeError if `value` is neither a number nor a timedelta."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (int, float)):
        return value
    msg = f"seconds must be a number or a timedelta, not {value!r}: schedule.duration makes a timedelta of a text"
    raise TypeError(msg)
