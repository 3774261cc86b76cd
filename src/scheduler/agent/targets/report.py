"""Reports: what history keeps of a check, as JSON, and how a target is put together again from them.

A report holds what the check found, and where its target stood before it. So the last report alone, with what has
happened since, says how the target stands: nothing has to be counted from the beginning.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from scheduler import Outcome, RunEnded

from ..checks import MOST_ATTEMPTS, CheckResult, Status
from ..text import wording
from ..uptime import parse_past
from .flapping import Standing, TargetState, state_id
from .incidents import FLAPPING, LONGEST_ERROR, Incident
from .status import Marks, Recalled, TargetStatus, Verdict, fold, in_doubt, unreachable, verdict_without_results

if TYPE_CHECKING:
    from scheduler import Record

LONGEST: Final = 2_000
"""Characters of a report. A store keeps 2,048 of a result, and nothing of a longer one."""

LARGEST: Final = 10**12
"""The largest number that makes sense in a report, as a count or as seconds."""

MOST: Final = 100
"""Results, phases and flaps that are read of one report, which others may have written."""

_UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


class Report(dict[str, Any]):
    """The report of a run: plain values, as JSON keeps them in history, and beside these its `verdict`, which ends
    with the process.
    """

    def __init__(self, values: Mapping[str, Any], verdict: Verdict) -> None:
        super().__init__(values)
        self.verdict = verdict


def report_of(
    results: Sequence[CheckResult],
    before: TargetStatus,
    doubt: str | None = None,
    cause: str | None = None,
    asks: Sequence[str] = (),
) -> Report:
    """Report a check with these results of a target that stood so: as much as there is room for.

    `doubt`: why they say nothing about it; None: they do. `cause`: the target above it that is down.
    `asks`: those above it of which nobody knows yet whether they are.
    """
    found = fold(results, before.need)
    if doubt is not None:
        found = in_doubt(found, doubt)
    elif cause is not None and found.status is Status.DOWN:
        found = unreachable(found, _short(cause))
    verdict = before.as_attempt(found, asks)
    standing = _standing(before)
    for values in _ever_less(verdict):
        values["before"] = standing
        if len(json.dumps(values)) <= LONGEST:
            break
    return Report(values, verdict)


class Skipped(dict[str, Any]):
    """The record of a check that did not take place because of the maintenance window `window`."""

    def __init__(self, window: str, before: TargetStatus) -> None:
        super().__init__(skipped=_short(window), before=_standing(before))
        self.window = window


def skipped_for(record: Record) -> str | None:
    """The name of the maintenance window for which a check did not take place. None: it did, or not for that."""
    name = record.result.get("skipped") if isinstance(record.result, dict) else None
    return wording.printable(name) if isinstance(name, str) else None


def verdict_of(run: RunEnded, clean: Callable[[str], str] = str) -> Verdict | None:
    """The verdict of a run on its target. None: it was cut off and says nothing. `clean` masks secrets."""
    if run.outcome is not Outcome.SUCCEEDED:
        return verdict_without_results(run.outcome, None if run.error is None else clean(run.error))
    for each in run.results:
        if isinstance(each, Report):
            return each.verdict
        if isinstance(each, Skipped):
            return None
    return fold(())


def verdict_of_record(record: Record) -> Verdict | None:
    """The verdict of a record on its target. None: it says nothing, or nothing that can be read.

    Others may have written it: its numbers are such as we write, its texts may be anything, see `told`.
    """
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
    """The verdict of a record, to be shown: `clean` has masked secrets in its texts, and they move no cursor."""

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
    """Let the target stand as it did after these records, latest first. False: none of them says how."""
    for place, record in enumerate(records):
        if _take_up(target, record, clean):
            for later in reversed(records[: place + 1]):
                verdict = told(later, clean)
                if verdict is not None:
                    target.record(verdict, _run_of(later))
            target.remembered, target.lateness_max = target.checks, 0.0
            is_down = target.state is not None and target.state.status is Standing.DOWN
            target.recalled = Recalled((target.last_run or _run_of(record)).ended, is_down, _marks_of(record))
            return True
    return False


# -- writing -----------------------------------------------------------------------------------------------------------


def _ever_less(verdict: Verdict) -> Iterator[dict[str, Any]]:
    yield {**_found(verdict), "results": [_found(each) | _about(each) for each in verdict.results]}
    yield {**_found(verdict), "results": [_found(each) | {"address": each.address} for each in verdict.results]}
    yield _found(verdict)
    yield _found(evolve(verdict, error=None if verdict.error is None else _short(verdict.error)))


def _found(found: Verdict | CheckResult) -> dict[str, Any]:
    values: dict[str, Any] = {"status": found.status.value, "attempt": found.attempt}
    if found.latency is not None:
        values["latency"] = round(found.latency, 6)
    if found.error is not None:
        values["error"] = found.error
    if isinstance(found, Verdict) and found.earlier:
        values["earlier"] = found.earlier
    if isinstance(found, Verdict) and not found.is_final:
        values["is_final"] = False
    if isinstance(found, Verdict) and found.cause is not None:
        values["cause"] = found.cause
    return values


def _about(result: CheckResult) -> dict[str, Any]:
    phases = {name: round(seconds, 6) for name, seconds in result.phases.items()}
    return {"address": result.address, "phases": phases, "detail": dict(result.detail)}


def _standing(target: TargetStatus) -> dict[str, Any]:
    incident = {} if target.incident is None else {"incident": _incident(target.incident)}
    return {
        "status": None if target.status is None else target.status.value,
        "since": target.since,
        "counts": {status.value: count for status, count in target.counts.items()},
        "changes": target.changes,
        "state": _state(target.state),
        **incident,
        **({"tried": target.tried} if target.tried else {}),
        **({} if target.past is None else {"past": str(target.past)}),
        **({"groups": marks} if (marks := target.marks(target.name)) else {}),
    }


def _incident(incident: Incident) -> dict[str, Any]:
    return {
        "state": incident.id.split("-", 1)[1],  # the rest of the id is the name
        "began": incident.began,
        "status": FLAPPING if incident.status == FLAPPING else Status.DOWN.value,
        "error": None if incident.error is None else _short(incident.error),
        "members": incident.members,
    }


def _short(error: str) -> str:
    """As much of an error as has room beside all the rest, however it is written in JSON."""
    while len(json.dumps(error)) > LONGEST_ERROR:
        error = error[: len(error) * 3 // 4]
    return error


def _state(state: TargetState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {
        "number": state.number,
        "started": state.started_at,
        "status": state.status.value,
        "up": state.up,
        "down": state.down,
        "flaps": [each.value for each in state.flap_history],
        "ends": _state(state.ends),
    }


# -- reading -----------------------------------------------------------------------------------------------------------


def _take_up(target: TargetStatus, record: Record, clean: Callable[[str], str]) -> bool:
    """Put the target where it stood before that record, if it says where that was."""
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
        status=Standing(found["status"]),
        up=_count(found["up"]),
        down=_count(found["down"]),
        flap_history=tuple(
            Standing.UP if each == Standing.UP.value else Standing.DOWN for each in _list(found["flaps"])
        ),
        ends=None if has_ended else _read_state(found["ends"], name, has_ended=True),
    )


def _marks_of(record: Record) -> Marks:
    """How groups stood before a check, as far as its report says so in a way that makes sense."""
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
    milliseconds, number = (_count(int(each)) for each in found["state"].split("-"))
    error = _text(found["error"])
    return Incident(
        id=state_id(name, milliseconds / 1000, number),
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
    return value[:MOST]


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    return islice(value.items(), MOST)


def _number(value: Any) -> float | None:
    return None if value is None else _length(value)


def _length(value: Any) -> float:
    if not 0 <= (found := float(value)) <= LARGEST:
        raise ValueError
    return found


def _instant(value: Any) -> float:
    found = _length(value)
    wording.stamp(found)  # it has a date, or this raises
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
    """The end of a run as it was told then."""
    due = record.due.timestamp()
    started = due if record.started is None else record.started.timestamp()
    ended = started if record.ended is None else record.ended.timestamp()
    outcome = Outcome.CRASHED if record.outcome is None else record.outcome
    lateness = record.lateness if record.lateness is not None and 0 <= record.lateness <= LARGEST else 0.0
    return RunEnded(
        record.job_id, due, started, ended, record.attempt, lateness, ended - started, outcome, record.error
    )
