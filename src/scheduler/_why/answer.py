"""Decide why a job did or did not run at an instant. Pure."""

from __future__ import annotations

from datetime import datetime

from attrs import evolve

from .._memory import record_of
from .._values import error_text
from .facts import Facts
from .meant import nearest, shift_at, slot_at, tick_at
from .recorded import of_run, of_tick
from .slots import slot_after, slot_before
from .unrecorded import held, without_record
from .verdict import Why
from .words import text_of


def why(facts: Facts, at: datetime | None = None) -> Why:
    """Answer for the tick due at `at`. None: for the last due tick, or why the job does not start now.

    An instant without a fraction stands for its whole second.
    """
    try:
        return _why(facts, at)
    except Exception as exc:
        standing = facts.standing
        if standing is None or standing.schedule is None:
            raise
        fault = f"its schedule raised {error_text(exc)}"  # a user's schedule may raise anything
        return _why(evolve(facts, standing=evolve(standing, schedule=None, fault=fault)), at)


def _why(facts: Facts, at: datetime | None) -> Why:
    found = _last(facts) if at is None else _at(facts, at)
    previous, following = _around(facts, found)
    found = evolve(found, previous=previous, next=following)
    return evolve(found, text=text_of(found, facts))


def _last(facts: Facts) -> Why:
    if facts.runs:
        return of_run(facts, facts.now, min(facts.runs, key=lambda run: run.due))
    standing, tick = facts.standing, next(iter(facts.ticks), None)
    if standing is not None and (pause := held(facts, standing, facts.now)) is not None:
        return pause
    if tick is None:
        return without_record(facts, facts.now)
    return of_tick(facts, facts.now, tick, record_of(tick).last_due)


def _at(facts: Facts, at: datetime) -> Why:
    for run in nearest(facts.runs, at):
        return of_run(facts, at, run)
    tick = tick_at(facts, at)
    if tick is not None:
        record = record_of(tick)
        due = record.due if record.count == 1 else slot_at(facts, at) or at
        return of_tick(facts, at, tick, due)
    return without_record(facts, at)


def _around(facts: Facts, found: Why) -> tuple[datetime | None, datetime | None]:
    standing = facts.standing
    schedule = None if standing is None else standing.schedule
    if schedule is None or standing is None:
        return None, None
    at = found.at if found.due is None else found.due
    shift, start = shift_at(facts, at), standing.next_start
    before, after = slot_before(schedule, at - shift), slot_after(schedule, at - shift)
    before, after = (None if each is None else each + shift for each in (before, after))
    if after is None or (start is not None and facts.now < after < start):  # its next start was moved
        after = start
    return before, after
