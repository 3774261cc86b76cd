"""What history keeps of a check, as JSON, and how a target is put together again from it.

A report holds what the check found, and where its target stood before it. So the last report alone, with what has
happened since, says how the target stands: nothing has to be counted from the beginning.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from scheduler import Outcome, RunEnded

from .flapping import Standing, TargetState, state_id
from .result import CheckResult, Report, Status
from .status import TargetStatus, Verdict, fold, verdict_without_results

if TYPE_CHECKING:
    from scheduler import Record

LONGEST: Final = 2_000
"""Characters of a report. A store keeps 2,048 of a result, and nothing of a longer one."""

SHORT: Final = 100
"""Characters of an error for which there is hardly any room."""


def report_of(results: Sequence[CheckResult], before: TargetStatus) -> Report:
    """What to keep of a check with these results of a target that stood so: as much as there is room for."""
    verdict = fold(results)
    standing = _standing(before)
    for values in _ever_less(verdict):
        values["before"] = standing
        if len(json.dumps(values)) <= LONGEST:
            break
    return Report(values, results)


def verdict_of_record(record: Record) -> Verdict | None:
    """What a record says of its target. None: nothing, or nothing that can be read."""
    if record.outcome is None:
        return None
    if isinstance(record.result, dict):
        try:
            return _verdict(record.result)
        except (KeyError, TypeError, ValueError, AttributeError):  # others may have written it
            return None
    return verdict_without_results(record.outcome, record.error)


def restore(target: TargetStatus, records: Sequence[Record]) -> bool:
    """Let the target stand as it did after these records, latest first. False: none of them says how."""
    for place, record in enumerate(records):
        if _take_up(target, record):
            for later in reversed(records[: place + 1]):
                verdict = verdict_of_record(later)
                if verdict is not None:
                    target.record(verdict, _run_of(later))
            target.remembered, target.lateness_max = target.checks, 0.0
            return True
    return False


# -- writing -----------------------------------------------------------------------------------------------------------


def _ever_less(verdict: Verdict) -> Iterator[dict[str, Any]]:
    yield {**_found(verdict), "results": [_found(each) | _about(each) for each in verdict.results]}
    yield {**_found(verdict), "results": [_found(each) | {"address": each.address} for each in verdict.results]}
    yield _found(verdict)
    yield _found(evolve(verdict, error=None if verdict.error is None else verdict.error[:SHORT]))


def _found(found: Verdict | CheckResult) -> dict[str, Any]:
    values: dict[str, Any] = {"status": found.status.value, "attempt": found.attempt}
    if found.latency is not None:
        values["latency"] = round(found.latency, 6)
    if found.error is not None:
        values["error"] = found.error
    return values


def _about(result: CheckResult) -> dict[str, Any]:
    phases = {name: round(seconds, 6) for name, seconds in result.phases.items()}
    return {"address": result.address, "phases": phases, "detail": dict(result.detail)}


def _standing(target: TargetStatus) -> dict[str, Any]:
    return {
        "status": None if target.status is None else target.status.value,
        "since": target.since,
        "counts": {status.value: count for status, count in target.counts.items()},
        "changes": target.changes,
        "state": _state(target.state),
    }


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


def _take_up(target: TargetStatus, record: Record) -> bool:
    """Put the target where it stood before that record, if it says where that was."""
    if not isinstance(record.result, dict) or verdict_of_record(record) is None:
        return False
    try:
        before = record.result["before"]
        status = None if before["status"] is None else Status(before["status"])
        since = None if before["since"] is None else float(before["since"])
        counts = Counter({Status(name): int(count) for name, count in before["counts"].items()})
        changes = int(before["changes"])
        state = _read_state(before["state"], target.name)
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    target.status, target.since, target.counts, target.changes, target.state = status, since, counts, changes, state
    return True


def _read_state(found: Mapping[str, Any] | None, name: str) -> TargetState | None:
    if found is None:
        return None
    return TargetState(
        id=state_id(name, float(found["started"]), int(found["number"])),
        number=int(found["number"]),
        started_at=float(found["started"]),
        status=Standing(found["status"]),
        up=int(found["up"]),
        down=int(found["down"]),
        flap_history=tuple(Standing.UP if each == Standing.UP.value else Standing.DOWN for each in found["flaps"]),
        ends=_read_state(found["ends"], name),
    )


def _verdict(found: Mapping[str, Any]) -> Verdict:
    return Verdict(
        status=Status(found["status"]),
        error=_text(found.get("error")),
        latency=_number(found.get("latency")),
        attempt=int(found["attempt"]),
        results=tuple(_result(each) for each in found.get("results", ())),
    )


def _result(found: Mapping[str, Any]) -> CheckResult:
    return CheckResult(
        status=Status(found["status"]),
        address=_text(found.get("address")),
        latency=_number(found.get("latency")),
        phases={name: float(seconds) for name, seconds in found.get("phases", {}).items()},
        error=_text(found.get("error")),
        detail=dict(found.get("detail", {})),
        attempt=int(found["attempt"]),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _run_of(record: Record) -> RunEnded:
    """The end of a run as it was told then."""
    due = record.due.timestamp()
    started = due if record.started is None else record.started.timestamp()
    ended = started if record.ended is None else record.ended.timestamp()
    outcome = Outcome.CRASHED if record.outcome is None else record.outcome
    lateness = 0.0 if record.lateness is None else record.lateness
    return RunEnded(
        record.job_id, due, started, ended, record.attempt, lateness, ended - started, outcome, record.error
    )
