"""The overlap rules: a tick comes while its job has a run.

In the pool a tick waits for room, as a run that can still stand for another tick. In the backlog it waits for a run's
end. When too many wait, the oldest goes. Waiting runs begin in order, as all ask for the job's present needs
(`Runs.ask_anew`): the waiting ticks are the newest, without holes.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import assert_never

from schedule import Missed

from .._jobs import Job, JobAttempt
from .._plan import instant_of
from .._shape import Waited
from .._starts import MissedTicks, go_along, no_place, waits_for
from .._values import Cause, MissedReason, Overlap

Tick = tuple[int, int]
"""Due instant in UTC microseconds, and attempt."""


def may_start(missed: MissedTicks, job: Job, due: float, due_us: int, attempt: int) -> bool:
    """Whether a tick may run now. If not, it waits, or a tick is missed here."""
    overlap = job.policy.overlap
    if job.threads:
        job.threads = [thread for thread in job.threads if not thread.has_ended] or None
    if not job.runs and not job.threads:
        return True
    if overlap is Overlap.ALLOW and has_place(job) and not job.backlog:  # older ticks go first
        return True
    waiting = _waiting(job)
    room = _backlog_room(job)
    if room == 0 and _goes_along(job, (due_us, attempt)):
        return False
    if waiting and (room == 0 or overlap is Overlap.REPLACE):
        reason, waited = waits_for(waiting[0]), waiting[0].waited
        _miss(missed, job, _shift(waiting, due, due_us, attempt), reason, waited)
    elif not job.runs or room == 0:
        _miss(missed, job, (due_us, attempt), no_place(job))
    else:
        _queue(missed, job, (due_us, attempt), room, waiting)
        if overlap is Overlap.REPLACE:
            for run in job.runs:
                run.terminate(Cause.REPLACED)
    return False


def has_place(job: Job) -> bool:
    return not job.runs or (job.policy.overlap is Overlap.ALLOW and len(job.runs) < job.policy.max_running)


def drop_waiting(missed: MissedTicks, job: Job, next_us: int | None = None) -> None:
    """Miss waiting ticks, except owed attempts. The end of `next_us` answers callers that asked for them."""
    gone = [each for each in job.backlog or () if each[1] == 1]
    if next_us is not None and job.asked:
        for due_us in [*(each[0] for each in gone), *(run.due_us for run in _waiting(job))]:
            go_along(job, due_us, next_us)
    if gone:
        job.backlog = deque(each for each in job.backlog or () if each not in gone) or None
        for each in gone:
            _miss(missed, job, each, no_place(job))
    for run in _waiting(job):
        run.terminate(Cause.REPLACED)


def _waiting(job: Job) -> list[JobAttempt]:
    return [run for run in job.runs if _is_exchangeable(run)]


def _is_exchangeable(run: JobAttempt) -> bool:
    return run.started is None and not run.is_owed and not run.is_sent


def _miss(missed: MissedTicks, job: Job, tick: Tick, reason: MissedReason, waited: Waited | None = None) -> None:
    """Miss a tick. Call it last: a listener may pause the job."""
    due_us, attempt = tick
    if _goes_along(job, tick):
        return
    if attempt == 1:  # the end of another attempt's tick is known already
        if waited is None and job.task is not None:
            waited = _in_the_way(job, due_us, reason)
        missed.miss(job, due_us, due_us, 1, reason, waited=waited)


def _in_the_way(job: Job, due_us: int, reason: MissedReason) -> Waited | None:
    """Return what kept a stored job's tick from running: what its waiting run found, or the run that goes on."""
    if reason is MissedReason.NO_ROOM:
        for run in job.runs:
            if run.waited is not None and run.started is None:
                return run.waited
    earlier = next((run.due_us for run in job.runs if run.due_us < due_us), None)
    return None if earlier is None else Waited(at=instant_of(due_us), run=instant_of(earlier))


def _goes_along(job: Job, tick: Tick) -> bool:
    if job.sparse is None or not job.asked or tick[1] != 1:
        return False
    run = next((run for run in job.runs if run.started is None and run.cause is None), None)
    return run is not None and run.due_us != tick[0] and go_along(job, tick[0], run.due_us)


def _shift(waiting: list[JobAttempt], due: float, due_us: int, attempt: int) -> Tick:
    """Return the oldest tick: each waiting run stands for the next one, in its own position."""
    oldest = waiting[0].due_us, waiting[0].attempt
    for run, following in pairwise(waiting):
        run.stand_for(following.due, following.due_us, following.attempt)
        run.keep_note(following.waited)
    waiting[-1].stand_for(due, due_us, attempt)
    waiting[-1].note_anew()
    return oldest


def _queue(missed: MissedTicks, job: Job, tick: Tick, room: int, waiting: list[JobAttempt]) -> None:
    if job.backlog is None:
        job.backlog = deque()
    backlog = job.backlog
    gone: list[tuple[Tick, MissedReason, Waited | None]] = []
    backlog.append(tick)
    while len(backlog) > room:
        oldest = next(each for each in backlog if each[1] == 1 or each is tick)  # the others are owed attempts
        backlog.remove(oldest)
        due_us, attempt = oldest
        if waiting and attempt == 1:  # then the run that waits for room is older still
            reason, waited = waits_for(waiting[0]), waiting[0].waited
            gone.append((_shift(waiting, due_us * 1e-6 - missed.timeline.offset, due_us, attempt), reason, waited))
        else:
            gone.append((oldest, no_place(job), None))
    for each, reason, waited in gone:
        _miss(missed, job, each, reason, waited)


def _backlog_room(job: Job) -> int:
    if job.policy.missed is Missed.ALL:
        return job.policy.catch_up
    match job.policy.overlap:
        case Overlap.SKIP | Overlap.ALLOW:
            return 0
        case Overlap.QUEUE | Overlap.REPLACE:
            return 1
        case _ as never:
            assert_never(never)
