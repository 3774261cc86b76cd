"""Which run, record or start an instant means. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from .._journal import sound_tick
from .._memory import record_of
from .._plan import us_of
from .._shape import RunInfo
from ..stores import StoredTick
from .facts import Facts
from .slots import is_slot, slot_after

_SECOND: Final = timedelta(seconds=1)
_NOTHING: Final = timedelta(0)


def nearest(runs: Sequence[RunInfo], at: datetime) -> Iterator[RunInfo]:
    exact = [run for run in runs if run.due == at]
    yield from exact or [run for run in runs if is_meant(run.due, at)]


def is_meant(due: datetime, at: datetime) -> bool:
    return due == at or (not at.microsecond and timedelta(0) <= due - at < _SECOND)


def tick_at(facts: Facts, at: datetime) -> StoredTick | None:
    at_us = us_of(at)
    exact = [tick for tick in facts.ticks if tick.due_us == at_us]
    meant = [tick for tick in facts.ticks if is_meant(record_of(tick).due, at)]
    within = [tick for tick in facts.ticks if _covers(facts, tick, at)]
    return next(iter((*exact, *reversed(meant), *within)), None)


def _covers(facts: Facts, tick: StoredTick, at: datetime) -> bool:
    record = record_of(tick)
    if record.count == 1 or record.last_due < at:
        return False
    return record.due <= at and (record.last_due == at or slot_at(facts, at, is_unsure=True) is not None)


def slot_at(facts: Facts, at: datetime, *, is_unsure: bool = False) -> datetime | None:
    """Return the start that the schedule has there. `is_unsure`: take `at` for one if the schedule is not known."""
    schedule = None if facts.standing is None else facts.standing.schedule
    if schedule is None:
        return at if is_unsure else None
    shift = shift_at(facts, at)
    if is_slot(schedule, at - shift):
        return at
    following = None if at.microsecond else slot_after(schedule, at - shift)
    following = None if following is None else following + shift
    return following if following is not None and is_meant(following, at) else None


def shift_at(facts: Facts, at: datetime) -> timedelta:
    """Return how far a start to come has moved, because the clock was set."""
    return _NOTHING if facts.standing is None or at <= facts.now else facts.standing.shift


def sound(ticks: list[StoredTick]) -> list[StoredTick]:
    """Leave out records that make no sense."""
    return [tick for each in ticks if (tick := sound_tick(each)[0]) is not None]
