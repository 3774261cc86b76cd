"""Reports: what history keeps of a check, as JSON.

The last report restores a target: the findings and the state before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from scheduler import Outcome, RunEnded

from ..checks import CheckResult, Status
from .flapping import TargetState
from .incidents import FLAPPING, LONGEST_ERROR, Incident
from .status import TargetStatus, Verdict, counted, fold, in_doubt, unreachable, verdict_without_results

MAX_CHARACTERS: Final = 2_000
"""Characters. A store drops results beyond 2,048."""


class Report(dict[str, Any]):
    """A report for history. Its `verdict` ends with the process."""

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
    """Report a check of `before`, as far as there is room.

    `doubt`: why results say nothing. `cause`: the parent that is down. `asks`: unchecked parents.
    """
    found = fold(results, before.need) if before.quorum is None else counted(results, before.quorum)
    if doubt is not None:
        found = in_doubt(found, doubt)
    elif cause is not None and found.status is Status.DOWN:
        found = unreachable(found, _short(cause))
    verdict = before.as_attempt(found, asks)
    standing = _standing(before)
    for values in _ever_less(verdict):
        values["before"] = standing
        if len(json.dumps(values)) <= MAX_CHARACTERS:
            break
    return Report(values, verdict)


class Skipped(dict[str, Any]):
    """A check that a maintenance window skipped."""

    def __init__(self, window: str, before: TargetStatus) -> None:
        super().__init__(skipped=_short(window), before=_standing(before))
        self.window = window


def verdict_of(run: RunEnded, clean: Callable[[str], str] = str) -> Verdict | None:
    """A run's verdict; None: cut off or skipped. `clean` masks secrets."""
    if run.outcome is not Outcome.SUCCEEDED:
        return verdict_without_results(run.outcome, None if run.error is None else clean(run.error))
    for each in run.results:
        if isinstance(each, Report):
            return each.verdict
        if isinstance(each, Skipped):
            return None
    return fold(())


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
    marks = {} if target.marks is None else target.marks(target.name)
    groups = {key: mark for key, mark in marks.items() if mark is not None}
    return {
        "status": None if target.status is None else target.status.value,
        "since": target.since,
        "counts": {status.value: count for status, count in target.counts.items()},
        "changes": target.changes,
        "state": _state(target.state),
        **incident,
        **({"tried": target.tried} if target.tried else {}),
        **({} if target.past is None else {"past": str(target.past)}),
        **({"is_excused": True} if target.is_excused else {}),
        **({"groups": groups} if groups else {}),
        **({"has_more_groups": True} if len(groups) < len(marks) else {}),
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
