"""Past checks, as text or JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from scheduler import Outcome

from ..acts import PREFIX, ActKind, Scope, ScopeKind, act_id
from ..standing import skipped_for, told
from ..text import wording
from .lines import found_text, milliseconds, result_values
from .notices import reason_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from scheduler import Record

RUNNING = "RUNNING"
_MESSAGE = "notify:"
_ACTS = {"acknowledge": "KNOWN", "silence": "SILENCED", "pause": "PAUSED", "maintenance": "MAINTAINED", "over": "OVER"}

_HANDED_ON = "signal:"

_UNDELIVERED = "Undelivered: "

_SHORT = ("delivered", "expired")


def begun(record: Record) -> datetime:
    """When the check began, else was due."""
    return record.started or record.due


def jobs_about(target: str | None) -> list[str | None]:
    """The jobs of a target: its checks, and acts of people. None: all jobs."""
    if target is None:
        return [None]
    return [target, *(act_id(kind, Scope(ScopeKind.TARGET, target)) for kind in ActKind)]


def plain_line(record: Record, clean: Callable[[str], str] = str) -> str:
    """Write a record for people. `clean` masks secrets."""
    parts = [_stamp(begun(record)), f"{_state(record):<10}", wording.printable(record.job_id)]
    parts += [text] if (text := _text(record, clean)) else []
    is_check = not _is_message(record) and not _is_act(record)  # others were due when they were told to be
    if record.lateness is not None and is_check:
        parts.append(f"started {wording.latency(record.lateness)} late")
    return "  ".join(parts)


def json_line(record: Record, clean: Callable[[str], str] = str) -> str:
    """Write a record as JSON. `clean` masks secrets."""
    verdict = None if _is_message(record) or _is_act(record) else told(record, clean)
    error = _error(record) if verdict is None else verdict.error
    return json.dumps(
        {
            "name": record.job_id,
            "due": _stamp(record.due),
            "started": None if record.started is None else _stamp(record.started),
            "ended": None if record.ended is None else _stamp(record.ended),
            "outcome": None if record.outcome is None else record.outcome.key,
            "status": None if verdict is None else verdict.status.value,
            "latency_ms": None if verdict is None else milliseconds(verdict.latency),
            "lateness_ms": milliseconds(record.lateness),
            "error": None if error is None else clean(error),
            "reason": None if record.reason is None else record.reason.key,
            "maintenance": skipped_for(record),
            "count": record.count,
            **({} if record.is_exact else {"is_exact": False}),
            "attempt": None if verdict is None else verdict.attempt,
            "cause": None if verdict is None else verdict.cause,
            "is_final": None if verdict is None else verdict.is_final,
            "delivery": _delivery(record),
            **({} if (act := _act(record)) is None else {"act": act}),
            "results": [] if verdict is None else [result_values(each) for each in verdict.results],
        }
    )


def _is_message(record: Record) -> bool:
    return record.job_id.startswith(_MESSAGE)


def _is_act(record: Record) -> bool:
    return record.job_id.startswith(PREFIX)


def _act(record: Record) -> Mapping[str, object] | None:
    """An act, as its job has recorded it."""
    result = record.result
    return result if _is_act(record) and isinstance(result, dict) and isinstance(result.get("act"), str) else None


def _error(record: Record) -> str | None:
    error = record.error
    return error.partition(_UNDELIVERED)[2] or error if error is not None and _is_message(record) else error


def _delivery(record: Record) -> Mapping[str, object] | None:
    result = record.result
    if not _is_message(record) or not isinstance(result, dict):
        return None
    return result if isinstance(result.get("delivery"), str) else None


def _state(record: Record) -> str:
    if record.outcome is None:
        return RUNNING
    if (delivery := _delivery(record)) is not None:
        return str(delivery["delivery"]).upper() if delivery["delivery"] in _SHORT else "NOT SENT"
    if skipped_for(record) is not None:
        return "SKIPPED"
    if (act := _act(record)) is not None:
        return _ACTS.get(str(act["act"]), "ASKED")
    verdict = None if _is_message(record) else told(record)
    return record.outcome.name if verdict is None else verdict.status.name


def _text(record: Record, clean: Callable[[str], str]) -> str:
    if record.outcome is Outcome.MISSED:
        reason = "" if record.reason is None else f": {reason_text(record.reason)}"
        least = "" if record.is_exact else "at least "
        return f"{least}{wording.count(record.count, 'check')} left out{reason}"
    if (delivery := _delivery(record)) is not None:
        told_in = f"in the digest {delivery['in']}" if "in" in delivery else delivery.get("text", delivery["delivery"])
        return wording.printable(clean(str(told_in)))
    if record.job_id.startswith(_HANDED_ON) and isinstance(record.result, dict):
        return wording.printable(clean(f"a signal of {record.result.get('target')}, from another agent"))
    if (window := skipped_for(record)) is not None:
        return f"maintenance: {clean(window)}"
    if (act := _act(record)) is not None:
        return wording.printable(clean(str(act.get("text", act["act"]))))
    verdict = None if _is_message(record) else told(record, clean)
    if verdict is None:
        return wording.printable(clean(_error(record) or ""))
    return found_text(verdict) + ("" if verdict.is_final else f" (attempt {verdict.attempt}, another follows)")


def _stamp(instant: datetime) -> str:
    return wording.stamp(instant.timestamp())
