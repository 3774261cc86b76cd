"""Restore targets from history.

Other programs may have written it: senseless reports are ignored, and texts may be anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from scheduler import Outcome, RunEnded

from ..checks import MOST_ATTEMPTS, CheckResult, Status
from ..text import wording
from ..uptime import parse_past
from .flapping import TargetStanding, TargetState, is_down, state_id
from .incidents import FLAPPING, LONGEST_ERROR, Incident
from .status import Marked, Recalled, Stood, TargetStatus, Verdict, verdict_without_results

if TYPE_CHECKING:
    from scheduler import Record

LARGEST: Final = 10**12
"""Bound of counts and seconds."""

MAX_ENTRIES: Final = 100
"""Results, phases or flaps."""

_UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def skipped_for(record: Record) -> str | None:
    """The maintenance window that skipped a check, or None."""
    name = record.result.get("skipped") if isinstance(record.result, dict) else None
    return wording.printable(name) if isinstance(name, str) else None


def verdict_of_record(record: Record) -> Verdict | None:
    """The verdict, or None if unreadable. Its texts may be anything: see `told`."""
    if record.outcome is None:
        return None
    if isinstance(record.result, dict) and skipped_for(record) is not None:
        return None
    if isinstance(record.result, dict):
        try:
            return _verdict(record.result)
        except _UNREADABLE:
            return None
    return verdict_without_results(record.outcome, record.error)


def told(record: Record, clean: Callable[[str], str] = str) -> Verdict | None:
    """The verdict for display. `clean` masks secrets."""

    def text(found: str | None) -> str | None:
        return None if found is None else wording.printable(clean(found))

    if isinstance(record.error, str):
        record = evolve(record, error=clean(record.error))
    verdict = verdict_of_record(record)
    if verdict is None:
        return None
    results = tuple(
        evolve(
            each,
            address=text(each.address),
            error=text(each.error),
            phases={wording.printable(name): seconds for name, seconds in each.phases.items()},
            detail={
                wording.printable(name): wording.printable(clean(value)) if isinstance(value, str) else value
                for name, value in each.detail.items()
            },
        )
        for each in verdict.results
    )
    return evolve(verdict, error=text(verdict.error), cause=text(verdict.cause), results=results)


def restore(target: TargetStatus, records: Sequence[Record], clean: Callable[[str], str] = str) -> bool:
    """Restore a target. `records`: latest first. False: none has its status."""
    records = _up_to_newest(records)
    for place, record in enumerate(records):
        if _take_up(target, record, clean):
            for later in reversed(records[: place + 1]):
                verdict = told(later, clean)
                if verdict is not None:
                    target.record(verdict, _run_of(later))
            target.remembered, target.lateness_max = target.checks, 0.0
            if target.marks is not None:
                target.recalled = _recalled(target, records[place:])
            return True
    return False


def _up_to_newest(records: Sequence[Record]) -> Sequence[Record]:
    """Drop leading records that are older, because the clock was set back.

    Reports count earlier verdicts, which shows the newest.
    """
    counts = [_verdicts_before(record) for record in records]
    first = next((place for place, count in enumerate(counts) if count is not None), None)
    if first is None:
        return records
    newest = max(range(len(records)), key=lambda place: (-1 if counts[place] is None else counts[place], -place))
    return records if newest == first else records[newest:]


def _verdicts_before(record: Record) -> int | None:
    try:
        counts: Mapping[str, Any] = record.result["before"]["counts"]  # type: ignore[index]
        return sum([_count(count) for count in counts.values()])
    except _UNREADABLE:
        return None


def _take_up(target: TargetStatus, record: Record, clean: Callable[[str], str]) -> bool:
    if not isinstance(record.result, dict):
        return False
    if verdict_of_record(record) is None and skipped_for(record) is None:
        return False
    try:
        before = record.result["before"]
        status = None if before["status"] is None else Status(before["status"])
        since = None if before["since"] is None else _instant(before["since"])
        counts = Counter({Status(name): _count(count) for name, count in before["counts"].items()})
        changes = _count(before["changes"])
        state = _read_state(before["state"], target.name)
        incident = _read_incident(before.get("incident"), target.name, clean)
        past = parse_past(before["past"]) if "past" in before else None
        tried = _earlier(before.get("tried", 0), MOST_ATTEMPTS + 1)
    except _UNREADABLE:
        return False
    target.incident, target.tried, target.past = incident, tried, past
    target.is_excused = before.get("is_excused") is True
    target.status, target.since, target.counts, target.changes, target.state = status, since, counts, changes, state
    return True


def _read_state(found: Mapping[str, Any] | None, name: str, *, has_ended: bool = False) -> TargetState | None:
    if found is None:
        return None
    started, number = _instant(found["started"]), _count(found["number"])
    return TargetState(
        id=state_id(name, started, number),
        number=number,
        started_at=started,
        status=TargetStanding(found["status"]),
        up=_count(found["up"]),
        down=_count(found["down"]),
        flap_history=tuple(
            TargetStanding.UP if each == TargetStanding.UP.value else TargetStanding.DOWN
            for each in _list(found["flaps"])
        ),
        ends=None if has_ended else _read_state(found["ends"], name, has_ended=True),
    )


def _recalled(target: TargetStatus, records: Sequence[Record]) -> Recalled:
    ended = _run_of(records[0]).ended.timestamp()
    stood = [Stood(ended, is_down(target.state), target.is_excused)]
    marks: dict[str, Marked] = {}
    is_all = False  # a group missing from a later, complete report was removed: older marks do not count
    for record, older in zip(records, [*records[1:], None], strict=True):
        for key, (number, began) in _marks_of(record).items():
            if not is_all:
                marks.setdefault(key, Marked(ended, number, began))
        is_all = is_all or _speaks_of_all_groups(record)
        ended = 0.0 if older is None else _run_of(older).ended.timestamp()
        before = _stood_before(record)
        stood += [] if before is None else [evolve(before, at=ended)]
    return Recalled(tuple(stood), marks)


def _stood_before(record: Record) -> Stood | None:
    try:
        before: Mapping[str, Any] = record.result["before"]  # type: ignore[index]
        state = before["state"]
        was_down = state is not None and TargetStanding(state["status"]) is TargetStanding.DOWN
        return Stood(0.0, was_down, before.get("is_excused") is True)
    except _UNREADABLE:
        return None


def _speaks_of_all_groups(record: Record) -> bool:
    try:
        before: Mapping[str, Any] = record.result["before"]  # type: ignore[index]
        return before.get("has_more_groups") is not True
    except _UNREADABLE:
        return False


def _marks_of(record: Record) -> Mapping[str, tuple[int, float | None]]:
    try:
        found: Mapping[str, Any] = record.result["before"].get("groups", {})  # type: ignore[index]
        return {
            str(key): (_count(number), None if began is None else _instant(began))
            for key, (number, began) in _items(found)
        }
    except _UNREADABLE:
        return {}


def _read_incident(found: Mapping[str, Any] | None, name: str, clean: Callable[[str], str] = str) -> Incident | None:
    if found is None:
        return None
    milliseconds, number = map(int, found["state"].split("-"))
    error = _text(found["error"])
    return Incident(
        id=state_id(name, _instant(milliseconds / 1000), _count(number)),
        target=name,
        began=_instant(found["began"]),
        status=FLAPPING if found["status"] == FLAPPING else Status.DOWN,
        error=None if error is None else wording.printable(clean(error))[:LONGEST_ERROR],
        members=_count(found["members"]),
    )


def _verdict(found: Mapping[str, Any]) -> Verdict:
    return Verdict(
        status=Status(found["status"]),
        error=_text(found.get("error")),
        latency=_number(found.get("latency")),
        attempt=_attempt(found["attempt"]),
        earlier=_earlier(found.get("earlier", 0), found["attempt"]),
        is_final=found.get("is_final") is not False,
        cause=_text(found.get("cause")),
        results=tuple(_result(each) for each in _list(found.get("results", []))),
    )


def _result(found: Mapping[str, Any]) -> CheckResult:
    return CheckResult(
        status=Status(found["status"]),
        address=_text(found.get("address")),
        latency=_number(found.get("latency")),
        phases={name: _length(seconds) for name, seconds in _items(found.get("phases", {}))},
        error=_text(found.get("error")),
        detail={name: _detail(value) for name, value in _items(found.get("detail", {}))},
        attempt=_attempt(found["attempt"]),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _detail(value: Any) -> str | int | float:
    if isinstance(value, (int, float)):
        return value if abs(value) <= LARGEST else "a number that makes no sense"
    return str(value)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value[:MAX_ENTRIES]


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    return islice(value.items(), MAX_ENTRIES)


def _number(value: Any) -> float | None:
    return None if value is None else _length(value)


def _length(value: Any) -> float:
    if not 0 <= (found := float(value)) <= LARGEST:
        raise ValueError
    return found


def _instant(value: Any) -> float:
    found = _length(value)
    wording.stamp(found)  # raises unless it has a date
    return found


def _count(value: Any) -> int:
    if not 0 <= value <= LARGEST:
        raise ValueError
    return int(value)


def _earlier(value: Any, attempt: int) -> int:
    if not 0 <= value < attempt:
        raise ValueError
    return int(value)


def _attempt(value: Any) -> int:
    if not 1 <= value <= MOST_ATTEMPTS:
        raise ValueError
    return int(value)


def _run_of(record: Record) -> RunEnded:
    started = record.started or record.due
    ended = record.ended or started
    duration = (ended - started).total_seconds()
    outcome = Outcome.CRASHED if record.outcome is None else record.outcome
    lateness = record.lateness if record.lateness is not None and 0 <= record.lateness <= LARGEST else 0.0
    return RunEnded(
        record.job_id, record.due, started, ended, record.attempt, lateness, duration, outcome, record.error
    )
