"""Make rows sound before the scheduler uses them. Pure.

A row may come from a hand or another program. Nonsense affects only its own job, tick or pause:

    a job       parks (definition.py)
    a state     loses wrong values; its counts begin again together, because they add up
    a pause     holds, without an end that makes no sense
    a tick      loses wrong values; without a job, a due instant or an outcome it is left out

Instants lie a day within the calendar, for sums and texts. Counts are far from 64 bits, to grow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from .._values import (
    EVERYTHING,
    LONGEST_ERROR,
    LONGEST_TRACE,
    NO_REASON,
    TAG,
    MissedReason,
    Outcome,
    cut,
    cut_within,
    shown,
)
from ..stores import LONGEST_RESULT, RUNNING, StoredJob, StoredPause, StoredState, StoredTick

EARLIEST_US: Final = -62_135_510_400_000_000
LATEST_US: Final = 253_402_214_399_999_999
MAX_NUMBER: Final = 2**62
MAX_ATTEMPTS: Final = 2**31
MAX_SECONDS: Final = 1e18

_SUCCEEDED: Final = Outcome.SUCCEEDED.value
_OUTCOMES: Final = frozenset(outcome.value for outcome in Outcome)
_REASONS: Final = frozenset(reason.value for reason in MissedReason)

Row = TypeVar("Row", StoredState, StoredTick)
Check = Callable[[Any], bool]


class Wrong(NamedTuple):
    column: str
    value: object
    taken: str


def sound_job(row: StoredJob) -> tuple[StoredJob | None, list[Wrong]]:
    """None: its id is no text."""
    if type(row.id) is not str:
        return None, [Wrong("id", row.id, "the row is left out")]
    if type(row.task) is str and type(row.schedule) is str:
        return row, []
    return row._replace(task=_as_text(row.task), schedule=_as_text(row.schedule)), []  # these texts park the job


def sound_state(row: StoredState) -> tuple[StoredState, list[Wrong]]:
    if _is_sound_at_a_glance(row):
        return row, []
    sound, wrong = _mended(row, _STATE, StoredState(row.job_id, missed_is_exact=False))
    if sound.runs < sound.successes + sound.failures:
        wrong.append(Wrong("runs", sound.runs, "fewer than have ended: its counts begin again"))
    if any(each.column in _COUNTS for each in wrong):
        sound = sound._replace(**_COUNTS, missed_is_exact=True)
    retry = (sound.retry_due_us, sound.retry_attempt, sound.retry_at_us)
    if None in retry and retry != (None, None, None):  # a retry is whole, or none
        sound = sound._replace(retry_due_us=None, retry_attempt=None, retry_at_us=None)
    if sound.last_error is not None and len(sound.last_error) > LONGEST_ERROR:
        sound = sound._replace(last_error=cut(sound.last_error, LONGEST_ERROR))
    return sound, wrong


def sound_pause(row: StoredPause) -> tuple[StoredPause | None, list[Wrong]]:
    """None: its scope makes no sense."""
    if type(row.scope) is not str or not (row.scope == EVERYTHING or row.scope.startswith(TAG)):
        return None, [Wrong("scope", row.scope, f"neither {EVERYTHING!r} nor {TAG!r} and a tag: it is left out")]
    wrong: list[Wrong] = []
    reason = row.reason
    if type(reason) is not str:
        wrong.append(Wrong("reason", reason, "taken for none"))
        reason = NO_REASON
    since_us = row.since_us
    if since_us is None or not _is_instant(since_us):
        wrong.append(Wrong("since_us", since_us, "no instant in microseconds: taken for 1970"))
        since_us = 0
    until_us = row.until_us
    if not _is_instant(until_us):
        wrong.append(Wrong("until_us", until_us, "no instant in microseconds: it holds until it is ended"))
        until_us = None
    return StoredPause(row.scope, cut(reason, LONGEST_ERROR), since_us, until_us), wrong


def sound_tick(row: StoredTick) -> tuple[StoredTick | None, list[Wrong]]:
    """None: its job, due instant or outcome makes no sense."""
    for column, is_sound in _NAME_OF_TICK.items():
        value = getattr(row, column)
        if value is None or not is_sound(value):
            return None, [Wrong(column, value, "the record is left out")]
    sound, wrong = _mended(row, _TICK, StoredTick(row.job_id, row.due_us, 1, 0, row.outcome))
    if sound.error is not None and len(sound.error) > LONGEST_ERROR:
        sound = sound._replace(error=cut(sound.error, LONGEST_ERROR))
    if sound.trace is not None and len(sound.trace) > LONGEST_TRACE:
        sound = sound._replace(trace=cut_within(sound.trace, LONGEST_TRACE))
    return sound, wrong


def _mended(row: Row, checks: Mapping[str, Check], instead: Row) -> tuple[Row, list[Wrong]]:
    found = [name for (name, is_sound), value in zip(checks.items(), row, strict=True) if not is_sound(value)]
    if not found:
        return row, []
    taken = {name: getattr(instead, name) for name in found}
    wrong = [Wrong(name, getattr(row, name), f"taken for {taken[name]!r}") for name in found]
    return row._replace(**taken), wrong


def _is_sound_at_a_glance(row: StoredState) -> bool:
    """False: check it, in five times the time."""
    for us in _INSTANTS_OF(row):
        if us is not None and (type(us) is not int or not EARLIEST_US <= us <= LATEST_US):
            return False
    for count in row[7:15]:
        if type(count) is not int or not 0 <= count <= MAX_NUMBER:
            return False
    for seconds in row[15:19]:
        if type(seconds) is not float or not -MAX_SECONDS <= seconds <= MAX_SECONDS:
            return False
    if row.retry_due_us is not None or row.retry_attempt is not None or row.retry_at_us is not None:
        return False
    texts = row.last_error is None and (row.next_of is None or type(row.next_of) is str)
    is_known = row.last_outcome is None or row.last_outcome == _SUCCEEDED
    is_usual = row.missed_is_exact is True and (row.next_by_hand is True or row.next_by_hand is False)
    return texts and is_known and is_usual and row.runs >= row.successes + row.failures


def _as_text(value: object) -> str:
    return value if type(value) is str else shown(value)


def _is_instant(value: Any) -> bool:
    return value is None or (type(value) is int and EARLIEST_US <= value <= LATEST_US)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_NUMBER


def _is_some(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MAX_NUMBER


def _is_fence(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_attempt(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value <= MAX_ATTEMPTS)


def _is_seconds(value: Any) -> bool:
    return type(value) in {int, float} and -MAX_SECONDS <= value <= MAX_SECONDS  # this refuses NaN, too


def _is_some_seconds(value: Any) -> bool:
    return value is None or _is_seconds(value)


def _is_text(value: Any) -> bool:
    return value is None or type(value) is str


def _is_name(value: Any) -> bool:
    return type(value) is str


def _is_truth(value: Any) -> bool:
    return value is True or value is False or (type(value) is int and 0 <= value <= 1)


def _is_outcome(value: Any) -> bool:
    return value is None or (type(value) is str and value in _OUTCOMES)


def _is_reason(value: Any) -> bool:
    return value is None or (type(value) is str and value in _REASONS)


def _is_result(value: Any) -> bool:
    if value is None:
        return True
    if type(value) is not str or len(value) > LONGEST_RESULT:
        return False
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True


_INSTANTS_OF: Final = itemgetter(1, 6, 19, 20, 21)
_STATE: Final[Mapping[str, Check]] = dict.fromkeys(StoredState._fields, _is_count) | {
    "job_id": _is_name,
    "next_by_hand": _is_truth,
    "retry_attempt": _is_attempt,
    **dict.fromkeys(("next_us", "retry_due_us", "retry_at_us", "not_before_us"), _is_instant),
    **dict.fromkeys(("total_duration", "total_duration_failures", "lateness_sum", "lateness_max"), _is_seconds),
    **dict.fromkeys(("last_start_us", "last_finish_us", "last_success_us"), _is_instant),
    "last_outcome": _is_outcome,
    "last_error": _is_text,
    "next_of": _is_text,
    "missed_is_exact": _is_truth,
}
_COUNTS: Final = {
    name: StoredState._field_defaults[name] for name, check in _STATE.items() if check in {_is_count, _is_seconds}
}

_NAME_OF_TICK: Final[Mapping[str, Check]] = {
    "job_id": _is_name,
    "due_us": _is_instant,
    "outcome": lambda value: value == RUNNING or _is_outcome(value),
}
_TICK: Final[Mapping[str, Check]] = {
    "job_id": _is_name,
    "due_us": _is_instant,
    "attempt": lambda value: value is not None and _is_attempt(value),
    "fence": _is_fence,
    "outcome": _is_name,
    "started_us": _is_instant,
    "ended_us": _is_instant,
    "lateness": _is_some_seconds,
    "error": _is_text,
    "trace": _is_text,
    "reason": _is_reason,
    "count": _is_some,
    "last_due_us": _is_instant,
    "result": _is_result,
    "owed": _is_truth,
    "waited": _is_text,
}
