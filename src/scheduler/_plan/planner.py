"""A job's schedule in microseconds. Pure, without datetimes on every run's path."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Protocol, TypeGuard

from attrs import frozen

from schedule import After, At, Calendar, Every, Missed, Schedule, catch_up, duration, phase_us

from .._values import Policy, SchedulerError
from .timeline import LAST_US, instant_of, us_of

_MICROSECOND: Final = duration(1e-6)

_DAY: Final = 86_400_000_000
_UNITS: Final = {"day": _DAY, "week": 7 * _DAY, "month": 30 * _DAY, "year": 360 * _DAY}
"""A month counts as 30 days."""

LONGEST_GRID: Final = 1_000 * _UNITS["year"]
"""Most slots of a longer interval lie after the last instant."""


class WrongAnswer(SchedulerError, ValueError):
    """A schedule's `next` is not later than its argument."""


@frozen
class Gap:
    """Several passed starts. `run`: to run now, oldest first. `missed`: the number of others."""

    run: tuple[int, ...]
    following: int | None
    missed: int = 0
    first_missed: int | None = None
    last_missed: int | None = None
    is_exact: bool = True


class Planner(Protocol):
    """Instants in microseconds, on the steady base or the wall. None: never."""

    @property
    def steady(self) -> bool: ...

    @property
    def waits_for_end(self) -> bool:
        """Whether the next start counts from a run's end."""

    @property
    def interval(self) -> int | None:
        """Microseconds (a month: 30 days), if the schedule names any."""

    def first(self, key: str, now: int) -> int | None:
        """Return the first start later than `now`."""

    def following(self, due: int) -> int | None:
        """Return the start after `due`, or after that end if `waits_for_end`."""

    def back(self, key: str, due: int) -> int | None:
        """Like `following`, for a `due` set by hand."""

    def slot(self, key: str, due: int) -> int | None:
        """`due`, if it is a slot, else the next. On the wall any planned start is one."""

    def gap(self, due: int, now: int, policy: Policy) -> Gap:
        """Decide about `due` when the next start has passed too. O(1)."""

    def replanned(self, due: int, now: int) -> int | None:
        """The next start, after the clock was set back to `now`."""


@frozen
class Grid:
    """Every `interval` microseconds, through `anchor` or the job's phase."""

    interval: int
    anchor: int | None = None
    steady: bool = True
    waits_for_end: bool = False

    def first(self, key: str, now: int) -> int:
        anchor = phase_us(key, self.interval) if self.anchor is None else self.anchor
        return now + self.interval - (now - anchor) % self.interval

    def following(self, due: int) -> int:
        return due + self.interval

    def back(self, key: str, due: int) -> int:
        return self.first(key, due)

    def replanned(self, due: int, now: int) -> int:  # noqa: ARG002 - intervals keep their spacing
        return due

    def slot(self, key: str, due: int) -> int:
        return self.first(key, due - 1)

    def gap(self, due: int, now: int, policy: Policy) -> Gap:
        slots = (now - due) // self.interval + 1
        newest = due + (slots - 1) * self.interval
        kept = min(slots, _kept(policy, newest, now))
        run = tuple(range(newest - (kept - 1) * self.interval, newest + 1, self.interval))
        missed = slots - kept
        last = due + (missed - 1) * self.interval
        return Gap(run, newest + self.interval, missed, due if missed else None, last if missed else None)


@frozen
class Delay:
    """`interval` microseconds after the end of the previous run."""

    interval: int
    steady: bool = True
    waits_for_end: bool = True

    def first(self, key: str, now: int) -> int | None:
        return _in_the_calendar(now + 1 + phase_us(key, self.interval))

    def following(self, due: int) -> int | None:
        return _in_the_calendar(due + self.interval)

    def back(self, key: str, due: int) -> int | None:  # noqa: ARG002 - it counts from there
        return _in_the_calendar(due + self.interval)

    def replanned(self, due: int, now: int) -> int:  # noqa: ARG002 - intervals keep their spacing
        return due

    def slot(self, key: str, due: int) -> int:  # noqa: ARG002 - the same for every job
        return due

    def gap(self, due: int, now: int, policy: Policy) -> Gap:  # noqa: ARG002 - there is never more than one
        return Gap((due,), None)


@frozen
class Once:
    at: int
    steady: bool = False
    waits_for_end: bool = False
    interval: None = None

    def first(self, key: str, now: int) -> int | None:  # noqa: ARG002 - the same for every job
        return self.at if self.at > now else None

    def following(self, due: int) -> int | None:
        return self.at if self.at > due else None

    def back(self, key: str, due: int) -> int | None:  # noqa: ARG002 - its one start was moved
        return None

    def replanned(self, due: int, now: int) -> int:  # noqa: ARG002 - it has not run yet
        return due

    def slot(self, key: str, due: int) -> int:  # noqa: ARG002 - the same for every job
        return due

    def gap(self, due: int, now: int, policy: Policy) -> Gap:  # noqa: ARG002 - there is never more than one
        return Gap((due,), None)


@frozen(eq=False)
class Dates:
    """Any other schedule."""

    schedule: Schedule
    steady: bool = False
    waits_for_end: bool = False
    interval: int | None = None

    def first(self, key: str, now: int) -> int | None:  # noqa: ARG002 - the schedule is bound to its job
        return self.following(now)

    def following(self, due: int) -> int | None:
        return checked_next(self.schedule, due)

    def back(self, key: str, due: int) -> int | None:  # noqa: ARG002 - the schedule is bound to its job
        return self.following(due)

    def replanned(self, due: int, now: int) -> int | None:
        """No slot runs twice, unless that means silence for two intervals."""
        following = self.following(due)
        if following is None or due - now <= 2 * (following - due):
            return due
        return self.following(now)

    def slot(self, key: str, due: int) -> int | None:  # noqa: ARG002 - the schedule is bound to its job
        return self.following(due - 1) if self.steady else due

    def gap(self, due: int, now: int, policy: Policy) -> Gap:
        caught = catch_up(
            self.schedule,
            instant_of(due),
            instant_of(now),
            policy.missed,
            grace=duration(policy.grace),
            cap=policy.catch_up,
        )
        return Gap(
            tuple(map(us_of, caught.run)),
            self.following(now),
            caught.missed,
            None if caught.first_missed is None else us_of(caught.first_missed),
            None if caught.last_missed is None else us_of(caught.last_missed),
            caught.exact,
        )


def planner_for(schedule: Schedule, shift: int = 0) -> Planner:
    """`shift`: microseconds from the steady base to the wall, on which anchors are given."""
    if type(schedule) is After:
        return Delay(schedule.interval // _MICROSECOND)
    if type(schedule) is At:
        return Once(us_of(schedule.when))
    if is_grid(schedule):
        anchor = None if schedule.anchor is None else us_of(schedule.anchor) - shift
        return Grid(schedule.interval // _MICROSECOND, anchor)
    return Dates(schedule, steady=type(schedule) is Every, interval=interval_of(schedule))


def is_grid(schedule: Schedule) -> TypeGuard[Every]:
    return type(schedule) is Every and not schedule.jitter and schedule.interval // _MICROSECOND <= LONGEST_GRID


def interval_of(schedule: Schedule) -> int | None:
    if isinstance(schedule, (Every, After)):
        return schedule.interval // _MICROSECOND
    if isinstance(schedule, Calendar):
        count, unit = schedule.interval.rstrip("s").split()
        return int(count) * _UNITS[unit]
    return None


def checked_next(schedule: Schedule, after: int) -> int | None:
    """Check a user's `next`. Raises WrongAnswer, or what that raises."""
    answer = schedule.next(instant_of(after))
    if answer is None:
        return None
    if not isinstance(answer, datetime) or answer.tzinfo is None:
        msg = f"{schedule!r}.next() answered {answer!r}: it must be an aware datetime or None"
        raise WrongAnswer(msg)
    us = us_of(answer)
    if us <= after:
        msg = f"{schedule!r}.next({instant_of(after)}) answered {answer}, which is not later"
        raise WrongAnswer(msg)
    return us


def _in_the_calendar(us: int) -> int | None:
    return us if us <= LAST_US else None


def _kept(policy: Policy, newest: int, now: int) -> int:
    match policy.missed:
        case Missed.ALL:
            return policy.catch_up
        case Missed.LATEST:
            return 1
        case Missed.SKIP:
            return int(now - newest <= policy.grace * 1e6)
