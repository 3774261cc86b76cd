"""What must hold after the crashes of crash_loop.py, whatever the instants were at which they came."""
# ruff: noqa: T201 - it speaks to who started it

import time
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from crash_load import KINDS, TAG
from scheduler import Delivery, Verdict, why_from
from scheduler.stores import RUNNING

EVERYTHING = 2**31 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ASKED = 1_000
RAN = {Verdict.RAN, Verdict.RAN_LATE, Verdict.CUT_OFF}
NOT_RUN = {Verdict.CUT_OFF, Verdict.OVERLAPPED, Verdict.LEFT_OUT, Verdict.MISSED}
NOT_THERE = (None, False)
PARKED = "is parked: there is no task 'rare'"
"""What an agent logs that does not know the task of a job: as it should."""


class Effect(NamedTuple):
    """A run that has begun."""

    round: int
    job: str
    due: int
    attempt: int
    fence: int


class Evidence:
    """What the agents have written, and what their store holds in the end."""

    def __init__(self, folder, store):
        self.effects = [
            Effect(int(number), job, *map(int, numbers)) for number, job, *numbers in lines_of(folder / "effects")
        ]
        self.changes = list(lines_of(folder / "changes"))
        self.owed = {}  # the last attempt that was cut off, by job and due instant
        for _, _, job, *numbers in lines_of(folder / "owed"):
            if is_repeatable(job):
                due, attempt = map(int, numbers)
                self.owed[job, due] = max(attempt, self.owed.get((job, due), 0))
        log = (folder / "log").read_text().splitlines()
        self.parked = [line for line in log if PARKED in line]
        self.errors = [line for line in log if PARKED not in line]
        store.open(time.time_ns() // 1000, lambda: None)
        self.states = {row.id: state for rows in store.load() for row, state in rows}
        self.ticks = defaultdict(list)
        for tick in store.history(limit=EVERYTHING):
            self.ticks[tick.job_id].append(tick)
        for ticks in self.ticks.values():
            ticks.reverse()
        self.records = {(tick.job_id, tick.due_us): tick for ticks in self.ticks.values() for tick in ticks}
        store.close()
        self.store = store
        self.touched = defaultdict(list)
        for kind, *words in self.changes:
            if kind != "found":
                self.touched[words[3]].append(int(words[5]))


def lines_of(path):
    for line in path.read_text().splitlines():
        yield line.split()


def is_repeatable(job):
    kind = job.partition("-")[0]
    return kind == "churned" or KINDS.get(kind, {}).get("delivery") is Delivery.AT_LEAST_ONCE


def at_first(job):
    """Return the state of a job before any change: some are always there, and only paused and resumed."""
    return ("300", False) if job.startswith("toggled") else NOT_THERE


def interval_of(job):
    """Return the interval of a job that nobody updates, in microseconds."""
    return None if job.startswith(("churned", "moved")) else round(float(job.split("-")[1]) * 1e6)


# -- what must hold ----------------------------------------------------------------------------------------------------


def runs_without_a_record(evidence):
    for effect in evidence.effects:
        record = evidence.records.get((effect.job, effect.due))
        if record is None:
            yield f"{effect} has no record"
        elif record.attempt < effect.attempt or record.fence < effect.fence:
            yield f"{effect} has a record of an earlier attempt: {record}"


def runs_that_are_repeated(evidence):
    last = {}
    for effect in evidence.effects:
        before = last.get((effect.job, effect.due))
        last[effect.job, effect.due] = effect
        if before is None:
            continue
        if not is_repeatable(effect.job):
            yield f"{effect} has begun before: {before}"
        elif before.attempt >= effect.attempt or before.fence >= effect.fence:
            yield f"{effect} is no later attempt than {before}"


def runs_that_never_ended(evidence):
    for ticks in evidence.ticks.values():
        yield from (f"still running: {tick}" for tick in ticks if tick.outcome == RUNNING)


def slots_with_no_or_two_records(evidence):
    """Nothing between the first tick of a job and its last is passed over in silence."""
    for job, ticks in evidence.ticks.items():
        interval = interval_of(job)
        if interval is None:
            continue
        before = ticks[0].due_us - interval
        for tick in ticks:
            last = tick.last_due_us or tick.due_us
            if tick.due_us <= before:
                yield f"{job}: {tick} stands for slots up to {before}, which have a record"
            elif tick.due_us != before + interval and not is_explained(evidence, job, before, tick.due_us, interval):
                yield f"{job}: {(tick.due_us - before) / interval - 1:g} slots after {before} have no record"
            if last != tick.due_us + (tick.count - 1) * interval:
                yield f"{job}: the count is wrong: {tick}"
            before = max(before, last)


def is_explained(evidence, job, first, last, interval):
    """It was paused or resumed: by itself, because of a quarantine, or with others."""
    names = (job, "everything", *([f"tag:{TAG}"] if job.startswith("tagged") else ()))
    instants = (instant for name in names for instant in evidence.touched[name])
    return any(first - interval <= instant <= last + interval for instant in instants)


def counts_that_are_wrong(evidence):
    for job, state in evidence.states.items():
        if state is None or interval_of(job) is None:
            continue
        ticks = evidence.ticks[job]
        outcomes = Counter(tick.outcome for tick in ticks)
        crashes = state.runs - state.successes - state.failures
        found = (state.runs, state.successes, state.missed)
        recorded = (
            sum(tick.attempt for tick in ticks),
            outcomes["succeeded"],
            sum(tick.count for tick in ticks if tick.outcome == "missed"),
        )
        if found != recorded:
            yield f"{job}: runs, successes, missed are {found}, and by its records {recorded}"
        if crashes < outcomes["crashed"] or (crashes > outcomes["crashed"] and not is_repeatable(job)):
            yield f"{job}: {crashes} crashes are counted and {outcomes['crashed']} recorded"


def is_given_up(record):
    error = record.error or ""
    return "given up: " in error or "its job has been removed" in error


def owed_ticks_that_were_lost(evidence):
    """What a death has cut off was tried again, or somebody gave it up and the record says so."""
    for (job, due), attempt in evidence.owed.items():
        record = evidence.records.get((job, due))
        if record is None:
            yield f"attempt {attempt} at {due} of {job} was cut off, and has no record any more"
        elif record.owed:
            yield f"still owed: {record}"
        elif record.attempt == attempt and not is_given_up(record):
            yield f"not tried again: {record}"


def jobs_that_stand_still(evidence):
    """Each job has run in the last round, or its starts came too late on a busy machine, and that is on record."""
    final = max(effect.round for effect in evidence.effects)
    since = min(effect.due for effect in evidence.effects if effect.round == final)
    alive = {effect.job for effect in evidence.effects if effect.round == final}
    for job in evidence.states:
        if job not in alive and not any((tick.last_due_us or tick.due_us) > since for tick in evidence.ticks[job]):
            yield f"{job} has not run any more"


def changes_that_are_lost(evidence):
    """A job is as the last acknowledged change left it, or as one left it whose answer never came."""
    expected = {}
    open_changes = {}
    for kind, *words in evidence.changes:
        if kind == "asked":
            open_changes[tuple(words[:5])] = words[2:5]
        elif kind == "done":
            verb, job, argument = open_changes.pop(tuple(words[:5]))
            expected[job] = {after(state, verb, argument) for state in expected.get(job, {at_first(job)})}
        else:
            for verb, job, argument in open_changes.values():
                states = expected.get(job, {at_first(job)})
                expected[job] = states | {after(state, verb, argument) for state in states}
            open_changes.clear()
            found = dict(word.split("=", 1) for word in words[1:])
            for job in {*expected, *found}:
                state = state_of(found.get(job))
                is_in_quarantine = "quarantined" in found.get(job, "")
                wanted = expected.get(job, {at_first(job)})
                if not is_expected(state, wanted, is_in_quarantine):
                    yield f"round {words[0]}: {job} is {found.get(job)}, expected one of {wanted}"
                expected[job] = {state}


def is_expected(state, expected, is_in_quarantine):
    return state in expected or (is_in_quarantine and state[0] in {interval for interval, _ in expected})


def state_of(found):
    """Return the interval in milliseconds (None: there is no such job) and whether it is paused."""
    if found is None:
        return NOT_THERE
    interval, error = found.split(",", 1)
    return interval, error != "-"


def after(state, verb, argument):
    """Return the state that a change makes of another."""
    interval, is_paused = state
    match verb:
        case "put":
            return argument, is_paused
        case "update" if interval is not None:
            return argument, is_paused
        case "remove":
            return NOT_THERE
        case "pause" if interval is not None:
            return interval, True
        case "resume":
            return interval, False
    return state


def answers_that_are_wrong(evidence):
    """Of the last ticks, `why` says what the log of their task says: it has begun, or it has not."""
    begun = {(effect.job, effect.due) for effect in evidence.effects}
    for job, due in sorted(evidence.records, key=lambda tick: tick[1])[-ASKED:]:
        why = why_from(evidence.store, job, EPOCH + timedelta(microseconds=due))
        if why.verdict not in (RAN if (job, due) in begun else NOT_RUN):
            yield f"{job}, {due}, {'has' if (job, due) in begun else 'has not'} begun: {why}"
        for holder in () if why.waited is None else why.waited.holders:
            if (holder.job_id, round((holder.due - EPOCH) / timedelta(microseconds=1))) not in evidence.records:
                yield f"{holder} has no record: {why}"


RULES = (
    runs_without_a_record,
    runs_that_are_repeated,
    runs_that_never_ended,
    slots_with_no_or_two_records,
    counts_that_are_wrong,
    owed_ticks_that_were_lost,
    jobs_that_stand_still,
    changes_that_are_lost,
    answers_that_are_wrong,
)

# -- what must have happened -------------------------------------------------------------------------------------------


def events_of(evidence):
    """Count what makes such a run worth something."""
    begun = {(effect.job, effect.due) for effect in evidence.effects}
    ticks = [tick for ticks in evidence.ticks.values() for tick in ticks]
    crashed = [tick for tick in ticks if tick.outcome == "crashed"]
    missed = Counter()
    for tick in ticks:
        if tick.outcome == "missed":
            missed[tick.reason] += tick.count
    counts = {
        "runs begun": len(evidence.effects),
        "crashes found": len(crashed),
        "killed between mark and start": sum((tick.job_id, tick.due_us) not in begun for tick in crashed),
        "owed": len(evidence.owed),
        "owed and tried again": sum(
            evidence.records[tick].attempt > cut_off for tick, cut_off in evidence.owed.items()
        ),
        "owed and given up": sum(is_given_up(evidence.records[tick]) for tick in evidence.owed),
        "attempts after the first": sum(effect.attempt > 1 for effect in evidence.effects),
        "changes acknowledged": sum(change[0] == "done" for change in evidence.changes),
        "changes without an answer": sum({"asked": 1, "done": -1}.get(change[0], 0) for change in evidence.changes),
        "jobs found without their task": len(evidence.parked),
        "missed because late": missed.pop("late", 0),
        "missed because of a crash": missed.pop("after crash", 0),
    }
    return counts, missed


def check(folder, store):
    """Print what has happened and what is wrong. The exit status."""
    evidence = Evidence(folder, store)
    counts, missed = events_of(evidence)
    for name, count in [*counts.items(), *((f"missed because of {reason}", count) for reason, count in missed.items())]:
        print(f"{name} {count}")
    print(f"errors logged {len(evidence.errors)}")
    violations = {rule.__name__: list(rule(evidence)) for rule in RULES}
    violations["errors"] = evidence.errors
    for rule, found in violations.items():
        print(f"violations: {rule} {len(found)}")
        for violation in found[:5]:
            print(f"    {violation}")
    if any(violations.values()):
        return 1
    never = [name for name, count in counts.items() if not count]
    if never:
        print(f"inconclusive, for it never happened: {', '.join(never)}")
        return 2
    return 0
