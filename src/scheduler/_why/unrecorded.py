"""Answers for instants without a record: a pause held the job, it was not due, or nothing is known. Pure."""

from __future__ import annotations

from datetime import datetime

from attrs import evolve

from .._shape import LATE
from .._values import MissedReason
from .facts import Facts, Standing
from .meant import is_meant, slot_at
from .slots import slot_after
from .verdict import Verdict, Why


def without_record(facts: Facts, at: datetime) -> Why:
    standing = facts.standing
    told = Why(job_id=facts.job_id, at=at, verdict=Verdict.NOT_KNOWN)
    if standing is None:
        is_known = bool(facts.ticks) or facts.has_later
        return evolve(told, verdict=Verdict.PRUNED if is_known and not facts.ticks else Verdict.GONE)
    if standing.schedule is None:
        return evolve(told, verdict=Verdict.PARKED, error=standing.fault)
    due = slot_at(facts, at) or _next_at(standing, at)
    if due is None:
        return _off_schedule(facts, standing, told)
    answer = held(facts, standing, due)
    if answer is not None:
        return evolve(answer, at=at, due=due)
    if due > facts.now:
        is_moved = standing.next_start is not None and due < standing.next_start
        return evolve(told, verdict=Verdict.NOT_DUE if is_moved else Verdict.TO_COME, due=due)
    return _of_past(facts, standing, evolve(told, due=due))


def _next_at(standing: Standing, at: datetime) -> datetime | None:
    start = standing.next_start
    return start if start is not None and is_meant(start, at) else None


def _off_schedule(facts: Facts, standing: Standing, told: Why) -> Why:
    if told.at >= facts.now and (answer := held(facts, standing, told.at)) is not None:
        return evolve(answer, at=told.at)
    return evolve(told, verdict=Verdict.NOT_DUE)


def held(facts: Facts, standing: Standing, due: datetime) -> Why | None:
    """Answer for an instant that a present pause or fault holds."""
    told = Why(job_id=facts.job_id, at=due, verdict=Verdict.PAUSED)
    pause = next((each for each in standing.pauses if each.until is None or due < each.until), None)
    if pause is not None:
        since = pause.since if standing.left_out_from is None else standing.left_out_from
        if since <= due < facts.now:
            return evolve(told, verdict=Verdict.LEFT_OUT, reason=MissedReason.PAUSED, pause=pause)
        return evolve(told, pause=pause) if due >= facts.now else None
    first, until = standing.rests_from, standing.rests_until
    if first is not None and until is not None and first <= due < until:
        return evolve(told, verdict=Verdict.RESTS, reason=MissedReason.AFTER_CRASH, until=until)
    if standing.fault is not None and due >= facts.now:
        return evolve(told, verdict=Verdict.PARKED, error=standing.fault)
    return None


def _of_past(facts: Facts, standing: Standing, told: Why) -> Why:
    if not facts.is_kept:
        return _by_counts(standing, told)
    if facts.has_later and not facts.ticks:
        return evolve(told, verdict=Verdict.PRUNED)
    return told


def _by_counts(standing: Standing, told: Why) -> Why:
    """Answer from the counts of a job without records: they have the start of its last run."""
    started, due, schedule = standing.last_start, told.due, standing.schedule
    if started is None or due is None or schedule is None or started < due:
        return told
    following = slot_after(schedule, due)
    if following is not None and started >= following:
        return told
    lateness = (started - due).total_seconds()
    if lateness > standing.most_late + LATE:  # a run by hand, or a later attempt
        return told
    verdict = Verdict.RAN_LATE if lateness > LATE else Verdict.RAN
    return evolve(told, verdict=verdict, started=started, lateness=lateness)
