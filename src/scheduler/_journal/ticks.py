"""Records of ticks: marks, ends, and ticks without a run. Pure."""

from __future__ import annotations

from .._jobs import JobAttempt
from .._plan import us_of
from .._shape import LATE, Waited, waited_text
from .._values import MissedReason, Outcome
from ..stores import AT_LEAST, RUNNING, StoredTick


def mark_of(run: JobAttempt, now_us: int) -> StoredTick:
    """Return the mark of a run, with what it waited for: if its process dies, its record keeps that."""
    waited = None if run.waited is None else _kept(run.waited, now_us)
    return StoredTick(run.job.id, run.due_us, run.attempt, run.fence_number, RUNNING, now_us, waited=waited)


def ended_tick(  # noqa: PLR0917 - made for each stored run
    run: JobAttempt,
    outcome: Outcome,
    ended: float,
    error: str | None,
    trace: str | None,
    result: str | None,
    *,
    owed: bool,
) -> StoredTick:
    """`ended`: UTC seconds. `result`: JSON."""
    return StoredTick(
        run.job.id,
        run.due_us,
        run.attempt,
        run.fence_number,
        outcome.value,
        round(run.started_at * 1e6),
        round(ended * 1e6),
        run.lateness,
        error,
        trace,
        result=result,
        owed=owed,
        waited=None if run.waited is None else _kept(run.waited, round(run.started_at * 1e6)),
    )


def _kept(waited: Waited, until_us: int) -> str | None:
    """Return what a run keeps that had waited for room until then."""
    return waited_text(waited) if until_us - us_of(waited.at) > LATE * 1e6 else None


def unmarked_tick(run: JobAttempt, reason: MissedReason, now_us: int) -> StoredTick:
    """The run never began, but its mark may be durable."""
    if run.attempt == 1:
        return missed_tick(
            run.job.id, run.due_us, run.due_us, 1, reason, now_us, fence=run.fence_number, waited=run.waited
        )
    return dropped_tick(run, reason, now_us)


def dropped_tick(run: JobAttempt, reason: MissedReason, now_us: int) -> StoredTick:
    return dropped_attempt(run.job.id, run.due_us, run.attempt, run.fence_number, reason, now_us)


def dropped_attempt(  # noqa: PLR0917 - the columns, in their order
    job_id: str, due_us: int, attempt: int, fence: int, reason: MissedReason, now_us: int
) -> StoredTick:
    error = f"attempt {attempt} was dropped before it began: {reason.value}"
    before = attempt - 1  # the last attempt that ran
    return StoredTick(job_id, due_us, before, fence, Outcome.CANCELLED.value, ended_us=now_us, error=error)


def renamed_tick(tick: StoredTick) -> StoredTick:
    due_us = tick.due_us + 1
    return tick._replace(due_us=due_us, last_due_us=None if tick.last_due_us is None else max(due_us, tick.last_due_us))


def missed_tick(  # noqa: PLR0917 - the columns, in their order
    job_id: str,
    first_us: int,
    last_us: int,
    count: int,
    reason: MissedReason,
    now_us: int | None = None,
    *,
    fence: int = 0,
    is_exact: bool = True,
    why: str | None = None,
    waited: Waited | None = None,
) -> StoredTick:
    return StoredTick(
        job_id,
        first_us,
        0,
        fence,
        Outcome.MISSED.value,
        ended_us=now_us,
        error=why if is_exact else AT_LEAST + (f": {why}" if why else ""),
        reason=reason.value,
        count=count,
        last_due_us=last_us,
        waited=waited_text(waited),
    )
