"""Convert the heap's monotonic seconds to schedules' UTC instants, and back.

Two time bases, in whole microseconds since 1970:

- *wall*: what the machine's clock says. Calendar starts move when it is set.
- *steady*: had it never been set since we began. Intervals keep their spacing.
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
"""Seconds off course. Less is slewing."""

DOUBTFUL: Final = 0.01
"""Seconds off course for a closer look: the process may have been stopped between readings."""

CLOSER_LOOKS: Final = 5
"""Readings until one is undisturbed."""

AT_ONCE: Final = 0.0
"""Before all other due times."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

LAST_US: Final = (LAST_INSTANT - EPOCH) // _MICROSECOND


def instant_of(us: int) -> datetime:
    """Microseconds since 1970 as a datetime in UTC."""
    return EPOCH + timedelta(microseconds=us)


def instant_at(seconds: float) -> datetime:
    """Seconds since 1970 as a datetime in UTC, LAST_US at most."""
    return EPOCH + timedelta(microseconds=min(round(seconds * 1e6), LAST_US))


def some_instant_of(us: int) -> datetime | None:
    """None: after the end of the calendar."""
    try:
        return instant_of(us)
    except OverflowError:
        return None


def us_of(instant: datetime) -> int:
    """An aware datetime as microseconds since 1970."""
    return (instant - EPOCH) // _MICROSECOND


def aware(name: str, value: Any) -> datetime:
    """Return it in UTC. Raises InvalidJob unless it is an aware datetime."""
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
    """Seconds from the monotonic to the wall clock, and their doubt.

    If the monotonic readings around it lie apart, the process was stopped: read again.
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
    """Call `look` often enough for true answers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.offset, _ = offset_of(clock)
        """Seconds from the monotonic to the wall clock, now."""
        self.steady_offset = self.offset
        """Seconds from the monotonic clock to the steady base: it never changes."""
        self._planned_offset = self.offset  # many small steps make a jump too
        self.furthest_us = 0
        """Latest instant shown before the clock was set back."""
        self.step = 0.0
        self._stepped: Callable[[float], object] | None = None
        self._confirmed: float | None = None
        self.shift_us = 0
        """Microseconds from the steady base to the wall."""

    def look(self, monotonic: float) -> float:
        """Return the seconds by which the wall clock has left its planned course.

        `monotonic`: a fresh reading. `step`: the part since the last look.
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
        """Otherwise a jump calls `stepped` with its seconds at each look, and time goes on as before."""
        self._stepped = stepped

    def confirm(self, offset: float) -> None:
        """Seconds from the monotonic to the wall clock."""
        self._confirmed = offset

    def _is_confirmed(self) -> bool:
        return self._confirmed is not None and abs(self.offset + self.step - self._confirmed) <= JUMP

    def _look_closer(self) -> float:
        offset, doubt = offset_of(self._clock)
        step = offset - self.offset
        return 0.0 if abs(step) <= doubt else step

    def has_been(self, us: int | None) -> None:
        if us is not None and us > self.furthest_us:
            self.furthest_us = us

    def monotonic(self, us: int, *, steady: bool) -> float:
        """Convert a planned instant to monotonic seconds."""
        return us * 1e-6 - (self.steady_offset if steady else self.offset)

    def us(self, monotonic: float, *, steady: bool) -> int:
        return int((monotonic + (self.steady_offset if steady else self.offset)) * 1e6)

    def reported(self, us: int, *, steady: bool) -> int:
        """Return a planned instant as users see it."""
        return us + self.shift_us if steady else us

    def shift(self, *, steady: bool) -> int:
        """Microseconds from a planner's base to the wall."""
        return self.shift_us if steady else 0
