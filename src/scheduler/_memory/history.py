from __future__ import annotations

import json
from datetime import datetime

from attrs import frozen

from .._plan import instant_of
from .._shape import Waited, waited_of
from .._values import MissedReason, Outcome
from ..stores import AT_LEAST, RUNNING, StoredTick


@frozen(kw_only=True)
class Record:
    """The record of a tick. Each tick has one. Instants are aware, in UTC; `lateness` is in seconds.

    `outcome`: None while the tick runs. `attempt`: the last one; 0: it never ran. `reason` and `count` are for missed
    ticks: `count` successive ones from `due` to `last_due`, or more unless `is_exact`.

    `owed`: a death or a stop cut it off, and it will be tried again (at least once). `result`: the last result as JSON
    gives it back; None also beyond 2,048 characters. `error`: why a run failed, or which pause left out ticks.
    `waited`: what a run that had no room found as it became due. It is kept if the run began late, or never.
    """

    job_id: str
    due: datetime
    attempt: int
    outcome: Outcome | None
    started: datetime | None
    ended: datetime | None
    lateness: float | None
    error: str | None
    traceback: str | None
    reason: MissedReason | None
    count: int
    last_due: datetime
    result: object
    owed: bool = False
    is_exact: bool = True
    waited: Waited | None = None


def record_of(tick: StoredTick) -> Record:
    """Raises ValueError if the row makes no sense."""
    is_least, error = False, tick.error
    if tick.outcome == Outcome.MISSED.value and error is not None and error.startswith(AT_LEAST):
        is_least, error = True, error.removeprefix(AT_LEAST).removeprefix(": ") or None
    return Record(
        job_id=tick.job_id,
        due=instant_of(tick.due_us),
        attempt=tick.attempt,
        outcome=None if tick.outcome == RUNNING else Outcome(tick.outcome),
        started=_instant(tick.started_us),
        ended=_instant(tick.ended_us),
        lateness=tick.lateness,
        error=error,
        traceback=tick.trace,
        reason=None if tick.reason is None else MissedReason(tick.reason),
        count=tick.count,
        last_due=instant_of(tick.due_us if tick.last_due_us is None else tick.last_due_us),
        result=None if tick.result is None else json.loads(tick.result),
        owed=tick.owed,
        is_exact=not is_least,
        waited=waited_of(tick.waited),
    )


def _instant(us: int | None) -> datetime | None:
    return None if us is None else instant_of(us)
