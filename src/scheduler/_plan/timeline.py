"""From monotonic seconds, which the heap counts, to instants in UTC, which schedules speak of, and back.

There are two time bases, both in whole microseconds since 1970 as long as the clock is right:
- *wall*: what the machine's clock says. Calendar schedules use it; when the clock is set, their starts move.
- *steady*: what the clock would say had it never been set since we began. Intervals use it, so their real spacing
  survives any change of the clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from schedule import LAST_INSTANT, ScheduleError, shown, utc
from timerqueue import Clock

from .._values import InvalidJob

JUMP: Final = 0.5
"""Seconds. A clock that is this far off its course was set; less is ordinary slewing."""

DOUBTFUL: Final = 0.01
"""Seconds. One reading of each clock that is this far off course gets a closer look.

It is far more than slewing does between two looks: the process may have been stopped between the two readings.
"""

CLOSER_LOOKS: Final = 5
"""The most readings at a time, for one during which the process was not stopped."""

AT_ONCE: Final = 0.0
"""A due time that is always past: before everything else that is due."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

LAST_US: Final = (LAST_INSTANT - EPOCH) // _MICROSECOND
"""The last instant. A later one never comes."""


def instant_of(us: int) -> datetime:
    """Convert microseconds since 1970 to a datetime in UTC."""
    return EPOCH + timedelta(microseconds=us)


def instant_at(seconds: float) -> datetime:
    """UTC seconds since 1970 as a datetime in UTC. What would come after the last instant is that one."""
    return EPOCH + timedelta(microseconds=min(round(seconds * 1e6), LAST_US))


def some_instant_of(us: int) -> datetime | None:
    """Convert to a datetime, or None after the end of the calendar."""
    try:
        return instant_of(us)
    except OverflowError:
        return None


def us_of(instant: datetime) -> int:
    """Convert an aware datetime to microseconds since 1970."""
    return (instant - EPOCH) // _MICROSECOND


def aware(name: str, value: Any) -> datetime:
    """Return a datetime in UTC. Raises InvalidJob, which names the argument, for any other value or without a zone."""
    if not isinstance(value, datetime):
        msg = f"{name} must be an aware datetime, such as datetime.now(UTC) + timedelta(hours=1), not {shown(value)}"
        raise InvalidJob(msg)
    if value.utcoffset() is None:
        msg = (
            f"{name} must be an aware datetime, not the naive {value.isoformat()}: say in which zone it is meant, as "
            "in .replace(tzinfo=UTC)"
        )
        raise InvalidJob(msg)
    try:
        return utc(value)
    except ScheduleError as exc:
        msg = f"{name}: {exc}"
        raise InvalidJob(msg) from None


def offset_of(clock: Clock) -> tuple[float, float]:
    """Return the seconds from the monotonic clock to the wall clock, and by how much that may be wrong.

    The wall clock is read between two readings of the monotonic one. If these lie apart, the process was stopped
    between them at an unknown moment, and both clocks are read again.
    """
    best = 0.0, math.inf
    for _ in range(CLOSER_LOOKS):
        before, wall, after = clock.monotonic(), clock.wall(), clock.monotonic()
        doubt = (after - before) / 2
        best = min(best, (wall - (before + doubt), doubt), key=_doubt)
        if doubt <= DOUBTFUL:
            break
    return best


def _doubt(reading: tuple[float, float]) -> float:
    return reading[1]


class Timeline:
    """Follows one clock. Call `look` often enough for true answers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.offset, _ = offset_of(clock)
        """Seconds from the monotonic clock to the wall clock, now."""
        self.steady_offset = self.offset
        """The same for the steady base: it never changes."""
        self._planned_offset = self.offset  # many small steps make a jump too
        self.furthest_us = 0
        """The latest instant that the wall clock is known to have shown before it was set back."""
        self.step = 0.0
        self._stepped: Callable[[float], object] | None = None
        self._confirmed: float | None = None
        self.shift_us = 0
        """Microseconds from the steady base to the wall base: the sum of all jumps, 0 if that is none."""

    def look(self, monotonic: float) -> float:
        """Compare the clocks. Returns the seconds by which the wall clock has left its planned course; 0.0: none.

        `monotonic`: what the monotonic clock has just shown. `step` is the part that is new since the last look: a
        jump, if it is large enough by itself.
        """
        self.step = self._clock.wall() - monotonic - self.offset
        if not -DOUBTFUL <= self.step <= DOUBTFUL:
            self.step = self._look_closer()
        if self._stepped is not None and abs(self.step) > JUMP and not self._is_confirmed():
            self._stepped(self.step)
            self.step = 0.0
            return 0.0
        if self.step < -JUMP:
            self.has_been(int((monotonic + self.offset) * 1e6))
        self.offset += self.step
        moved = self.offset - self._planned_offset
        if -JUMP <= moved <= JUMP:
            return 0.0
        self._planned_offset = self.offset
        self.shift_us += round(moved * 1e6)
        if -JUMP <= self.shift_us * 1e-6 <= JUMP:
            self.shift_us = 0  # set back: intervals are due at the same instants again, not next to them
        return moved

    def follow_only_confirmed(self, stepped: Callable[[float], object]) -> None:
        """From now on follow a jump only to where `confirm` says that the wall clock is.

        For any other jump `stepped` is called with its seconds at each look, and time goes on as before.
        """
        self._stepped = stepped

    def confirm(self, offset: float) -> None:
        """Allow the wall clock to be this many seconds ahead of the monotonic one."""
        self._confirmed = offset

    def _is_confirmed(self) -> bool:
        return self._confirmed is not None and abs(self.offset + self.step - self._confirmed) <= JUMP

    def _look_closer(self) -> float:
        offset, doubt = offset_of(self._clock)
        step = offset - self.offset
        return 0.0 if abs(step) <= doubt else step

    def has_been(self, us: int | None) -> None:
        """Note an instant that the wall clock has shown before."""
        if us is not None and us > self.furthest_us:
            self.furthest_us = us

    def monotonic(self, us: int, *, steady: bool) -> float:
        """Return when a planned instant comes, in monotonic seconds."""
        return us * 1e-6 - (self.steady_offset if steady else self.offset)

    def us(self, monotonic: float, *, steady: bool) -> int:
        return int((monotonic + (self.steady_offset if steady else self.offset)) * 1e6)

    def reported(self, us: int, *, steady: bool) -> int:
        """Return a planned instant as users see it, on the wall."""
        return us + self.shift_us if steady else us

    def shift(self, *, steady: bool) -> int:
        """Return the microseconds from a planner's base to the wall clock."""
        return self.shift_us if steady else 0
