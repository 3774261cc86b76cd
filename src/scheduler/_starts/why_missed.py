"""Why a tick has no run. Only this module decides it, at five moments:
- its job was looked at too late (FOUND_LATE), rested (RESTED) or was paused (LEFT_OUT), or the tick was skipped
  (SKIPPED);
- it comes, and its job's runs and ticks leave no room (`no_place`);
- it waits, and a newer tick replaces it (`waits_for`), or its run is ended (`dropped`, `ended_by`);
- it has room, but must not begin (`with_room`);
- it has a record already (HAS_RECORD), or the store cannot take its mark (NOT_STORED).
"""

from __future__ import annotations

from typing import Final, assert_never

from .._jobs import Job, JobAttempt
from .._values import Cause, MissedReason

FOUND_LATE: Final = MissedReason.LATE
RESTED: Final = MissedReason.AFTER_CRASH
HAS_RECORD: Final = MissedReason.REPEATED
NOT_STORED: Final = MissedReason.STORE
SKIPPED: Final = MissedReason.SKIPPED
LEFT_OUT: Final = MissedReason.PAUSED


def no_place(job: Job) -> MissedReason:
    if job.threads or not job.runs or any(run.started is not None for run in job.runs):
        return MissedReason.OVERLAP
    return waits_for(job.runs[0])


def waits_for(run: JobAttempt) -> MissedReason:
    if run.started is not None or run.is_marked:  # a marked run is about to start
        return MissedReason.OVERLAP
    return MissedReason.STORE if run.is_held else MissedReason.NO_ROOM


def with_room(run: JobAttempt, *, is_stopping: bool, is_too_late: bool) -> MissedReason | None:
    if is_stopping:
        return MissedReason.STOPPED
    if not is_too_late:
        return None
    return MissedReason.STORE if run.is_marked else MissedReason.NO_ROOM


def dropped(run: JobAttempt) -> MissedReason | None:
    if run.dropped_for is not None:
        return run.dropped_for
    if run.cause is None or run.cause is Cause.TIMEOUT or run.cause is Cause.LOST:
        return None
    return waits_for(run) if run.cause is Cause.REPLACED else ended_by(run.cause)


def ended_by(cause: Cause) -> MissedReason:
    match cause:
        case Cause.PAUSED:
            return MissedReason.PAUSED
        case Cause.REMOVED:
            return MissedReason.REMOVED
        case Cause.STOPPED | Cause.LOST:
            return MissedReason.STOPPED
        case Cause.REPLACED | Cause.TIMEOUT | Cause.LEASE:
            return MissedReason.OVERLAP
        case _ as never:
            assert_never(never)
