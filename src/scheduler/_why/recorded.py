"""Answers for ticks that have a record, or a run that has not ended. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from attrs import evolve

from .._memory import Record, record_of
from .._plan import us_of
from .._shape import LATE, RunInfo
from .._values import MissedReason, Outcome
from ..stores import StoredTick
from .facts import RUN_GOES_ON, Facts
from .meant import tick_at
from .verdict import Verdict, Why

_EPOCH_BITS: Final = 32


def of_run(facts: Facts, at: datetime, run: RunInfo) -> Why:
    verdict = Verdict.RUNS if run.state == "running" else Verdict.WAITS
    tick = tick_at(facts, run.due)
    started = run.since if verdict is Verdict.RUNS else None
    lateness = None if started is None else max(0.0, (started - run.due).total_seconds())
    recorded = None if tick is None else record_of(tick).waited
    is_in_backlog = verdict is Verdict.WAITS and run.reason == RUN_GOES_ON
    return Why(
        job_id=facts.job_id,
        at=at,
        verdict=verdict,
        due=run.due,
        attempt=run.attempt,
        started=started,
        lateness=lateness,
        waited=facts.waits.get(run.due) or recorded,
        run=min(_going_on(facts, run.due), default=None) if is_in_backlog else None,
        node=facts.epoch,
        because=run.reason,
    )


def of_tick(facts: Facts, at: datetime, tick: StoredTick, due: datetime) -> Why:
    record = record_of(tick)
    way = None if record.waited is None else record.waited.run
    told = Why(
        job_id=facts.job_id,
        at=at,
        verdict=_verdict_of(record),
        due=due,
        outcome=record.outcome,
        attempt=record.attempt,
        started=record.started,
        ended=record.ended,
        lateness=_lateness_of(record),
        owed=record.owed,
        waited=None if way is not None else record.waited,
        run=way,
        reason=record.reason,
        decided=record.ended if record.outcome is Outcome.MISSED else None,
        node=_node_of(tick),
        error=record.error,
    )
    if told.verdict is Verdict.OVERLAPPED and way is None:  # a record of an older version, or a thread is left
        return evolve(told, run=_before(facts, due, told.decided))
    if told.reason is MissedReason.NO_ROOM and told.waited is None and way is None:
        return evolve(told, run=min(_going_on(facts, due, told.decided), default=None))
    if told.verdict is Verdict.RAN_LATE and record.started is not None:
        told = evolve(told, run=_waited_for(facts, record, record.started))
    return told if told.node is None else evolve(told, node_before=_moved_from(facts, tick))


def _verdict_of(record: Record) -> Verdict:
    if record.outcome is None:
        return Verdict.RUNS
    if record.outcome is Outcome.MISSED:
        return Verdict.MISSED if record.reason is None else _KINDS.get(record.reason, Verdict.MISSED)
    if record.outcome is Outcome.CRASHED or record.owed or record.started is None:
        return Verdict.CUT_OFF
    return Verdict.RAN_LATE if (_lateness_of(record) or 0.0) > LATE else Verdict.RAN


_KINDS: Final = {MissedReason.PAUSED: Verdict.LEFT_OUT, MissedReason.OVERLAP: Verdict.OVERLAPPED}


def _lateness_of(record: Record) -> float | None:
    """Return the seconds from the due instant to the start: of a later attempt, from when it was due."""
    if record.lateness is not None or record.started is None or record.attempt != 1:
        return record.lateness
    return max(0.0, (record.started - record.due).total_seconds())


def _node_of(tick: StoredTick) -> int | None:
    return (tick.fence >> _EPOCH_BITS) or None


def _moved_from(facts: Facts, tick: StoredTick) -> int | None:
    """Return the epoch of the scheduler that ran the tick before, if it was another."""
    earlier = (each for each in facts.ticks if each.due_us < tick.due_us and each.outcome != Outcome.MISSED.value)
    before = next((node for each in earlier if (node := _node_of(each)) is not None), None)
    return before if before != _node_of(tick) else None


def _before(facts: Facts, due: datetime, decided: datetime | None) -> datetime | None:
    """Return the due instant of the earlier run that went on, or had ended last. Its thread may go on."""
    ran = _ran(facts, due, decided)
    return min(_going_on(facts, due, decided), default=None) or max((each.due for each in ran), default=None)


def _going_on(facts: Facts, due: datetime, decided: datetime | None = None) -> list[datetime]:
    """Return the due instants of earlier runs that went on between the due instant and the decision."""
    now = [run.due for run in facts.runs if run.due < due]
    return now + [each.due for each in _ran(facts, due, decided) if each.ended is None or each.ended >= due]


def _ran(facts: Facts, due: datetime, decided: datetime | None) -> list[Record]:
    earlier = (record_of(each) for each in facts.ticks if each.due_us < us_of(due))
    until = due if decided is None else max(due, decided)
    return [each for each in earlier if each.started is not None and each.started <= until]


def _waited_for(facts: Facts, late: Record, started: datetime) -> datetime | None:
    """Return the due instant of the earlier run whose end let a late run begin, or wait for room."""
    last = started if late.waited is None else late.waited.at
    first = max(late.due, last - timedelta(seconds=LATE))
    for tick in facts.ticks:
        each = record_of(tick)
        has_run = each.due < late.due and each.outcome is not Outcome.MISSED
        if has_run and each.ended is not None and first < each.ended <= last:
            return each.due
    return None
