"""The verbs of jobs and scopes. Any thread calls them; the loop does the work."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from timerqueue import OUT, LeftBehind, Lifecycle, LifecycleState, Resident

from .._jobs import AskedRun, Job, Tasks, info_of, spec_of
from .._journal import check_pause
from .._loop import Core
from .._placement import lack_text
from .._plan import Planners, aware, instant_of, us_of
from .._shape import JobInfo, JobSpec, SomeSchedule, count_of, reason_of, until_of
from .._starts import REMOVED, foreseen_starts, next_start, next_starts
from .._values import AlreadyStopped, Cause, Event, JobNotFound, JobRemoved, Pause, error_text, scope_of
from ..stores import Act
from .early import Early
from .lateness import Lateness
from .skipping import skip, supersede
from .update import Updates

_STOPPED: Final = LifecycleState.STOPPED  # looked up once, because a member of an enum costs as much as a call


class Verbs(Resident):
    """`has_store`: added jobs wait until the store has been read."""

    def __init__(self, core: Core, lifecycle: Lifecycle, tasks: Tasks, *, has_store: bool) -> None:
        self._core = core
        self._queue = core.queue
        self._tasks = tasks
        self._runs, self._starts, self._pausing = core.runs, core.starts, core.pausing
        self._lifecycle = lifecycle
        self._listeners = core.listeners
        self._jobs = core.jobs
        self._planners = Planners(core.timeline, core.monotonic)
        self.lateness = Lateness(core.runs.uncounted)
        self.early = Early(core, core.jobs, is_waiting=has_store)
        self.updates = Updates(core, self._planners, lateness=self.lateness, tasks=tasks, early=self.early)
        self._open: set[AskedRun] = set()
        self._bind_to_process("Scheduler", "_jobs")

    def _leave_behind(self, left: LeftBehind, keep: tuple[str, ...]) -> None:
        """Refuse verbs and requested runs in a forked child: the runs end in the parent."""
        for asked in self._open:
            asked.leave(left)
        super()._leave_behind(left, keep)

    # -- of one job ----------------------------------------------------------------------------------------------------

    def tick(self, job: Job) -> None:
        """Start the due job. On the loop."""
        self._core.turn.tick(job)

    def remove(self, job: Job) -> None:
        if job.is_removed:
            return
        is_known = job.task is not None and not self.early.holds(job)
        self.drop(job)
        if is_known:
            self._core.loop.call(self._delete_row, job)

    def drop(self, job: Job) -> None:
        """Remove the job here: its row is gone."""
        self._discard(job)
        self._queue.disarm(job)
        self._core.loop.call(self._dismiss, job)
        if self._listeners.anybody:
            self.tell(JobRemoved(job.id))

    def pause(self, job: Job, reason: str | None, until: datetime | None = None) -> None:
        refuse_if_removed(job)
        reason, until = reason_of(reason), self._until(until)
        if job.task is not None and job.unfit is None:
            check_pause(job, reason)
        self.early.ask(job, self._core.pausing.pause, job, reason, until)

    def resume(self, job: Job) -> None:
        refuse_if_removed(job)
        self.early.ask(job, self._resume, job)

    def _resume(self, job: Job) -> None:
        if self._jobs.is_asked_elsewhere(job):
            self._core.journal.ask(job, Act.RESUME)
        self._core.pausing.enable(job)

    def run_now(self, job: Job) -> AskedRun:
        self.refuse_if_stopped()
        refuse_if_removed(job)
        asked = AskedRun(job.id, self._open, self._lifecycle)
        self.early.ask(job, self._run_now, job, asked)
        return asked

    def _run_now(self, job: Job, asked: AskedRun) -> None:
        if self._jobs.is_asked_elsewhere(job):
            self._core.journal.ask(job, Act.RUN, asked=asked)
        else:
            self._core.runs.start_now(job, asked)

    def set_next_start(self, job: Job, at: datetime) -> None:
        """For a stored job this works while runs end after `stop`, too."""
        at_us = us_of(aware("at", at))
        if job.task is None or self._queue.state is not LifecycleState.RUNNING:
            self.refuse_if_stopped()
        refuse_if_removed(job)
        self.early.ask(job, self._set_next_start, job, at_us)

    def _set_next_start(self, job: Job, at_us: int) -> None:
        if self._jobs.is_asked_elsewhere(job):
            self._core.journal.ask(job, Act.START_AT, at_us)
        else:
            self._core.starts.set_next_start(job, at_us)

    def skip(self, job: Job) -> None:
        self.refuse_if_stopped()
        refuse_if_removed(job)
        self.early.ask(job, self._skip, job)

    def supersede(self, job: Job) -> None:
        self.refuse_if_stopped()
        refuse_if_removed(job)
        self.early.ask(job, self._supersede, job)

    def update(self, job: Job, schedule: SomeSchedule | None, changes: Mapping[str, Any]) -> None:
        refuse_if_removed(job)
        self.updates.update(job, schedule, changes)

    def spec(self, job: Job) -> JobSpec:
        return spec_of(job, self._tasks)

    def info(self, job: Job) -> JobInfo:
        return info_of(job, self.pauses(job), self._tasks)

    def pauses(self, job: Job) -> tuple[Pause, ...]:
        """Return the job's own pause first."""
        own = () if job.paused_by is None else (job.paused_by,)
        scopes = {scope_of(None), *map(scope_of, job.tags)}
        return (*own, *(pause for pause in self._pausing.pauses if pause.scope in scopes))

    def agent(self, job: Job) -> str | None:
        return self._jobs.agent_of(job)

    def why_with_nobody(self, job: Job) -> str | None:
        """None: a node has the job, or soon will."""
        lacking = self._jobs.lacks(job) if job.is_elsewhere else None
        return None if lacking is None else lack_text(lacking)

    def next_start(self, job: Job) -> datetime | None:
        """Retries are included."""
        if job.is_elsewhere:
            return next(iter(self._foreseen(job, 1)), None)
        return next_start(job, self._core.timeline)

    def next_starts(self, job: Job, count: int) -> list[datetime]:
        most = count_of("count", count) if count else 0
        return self._foreseen(job, most) if job.is_elsewhere else next_starts(job, self._core.timeline, most)

    def _foreseen(self, job: Job, count: int) -> list[datetime]:
        now_us = self._core.timeline.us(self._core.monotonic(), steady=job.planner.steady)
        return foreseen_starts(job, self._core.timeline, now_us, count)

    # -- of many -------------------------------------------------------------------------------------------------------

    def pause_scope(self, scope: str, reason: str | None, until: datetime | None) -> None:
        reason, until = reason_of(reason), self._until(until)
        self._core.loop.call(self._core.pausing.pause_scope, scope, reason, until)

    def resume_scope(self, scope: str) -> None:
        self._core.loop.call(self._core.pausing.resume_scope, scope)

    def answer_all(self) -> None:
        now_us = self._core.timeline.us(self._core.monotonic(), steady=False)
        while self._open:
            with suppress(KeyError):  # another thread has answered meanwhile
                self._open.pop().give_up(now_us)

    # -- for both ------------------------------------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        self._core.loop.call(self._listeners.tell, event)

    def refuse_if_stopped(self) -> None:
        """Raises AlreadyStopped."""
        if self._lifecycle.state is _STOPPED:
            failure = self._lifecycle.failure
            why = "" if failure is None else f" because of {error_text(failure)}"
            msg = f"this scheduler has stopped{why}, and a scheduler runs once: make a new one"
            raise AlreadyStopped(msg) from failure

    def _discard(self, job: Job) -> None:
        if self.early.is_waiting:
            self.early.discard(job)
        self._jobs.discard(job)

    def _dismiss(self, job: Job) -> None:
        core = self._core
        if job.slot != OUT:
            self._queue.disarm(job)
        if job.sparse is not None:
            if job.paused_by is not None:
                core.pausing.cancel_end(job)
            core.starts.parking.cancel_retry(job)
            core.starts.give_up_owed(job, REMOVED)
            core.missed.drop_backlog(job, Cause.REMOVED)
            core.starts.left_out.settle_now(job)
        job.due_us = None
        for run in job.runs:
            run.terminate(Cause.REMOVED)
        job.leave()

    def _skip(self, job: Job) -> None:
        if self._jobs.is_asked_elsewhere(job):
            self._core.journal.ask(job, Act.SKIP)
        else:
            skip(self._core, job)

    def _supersede(self, job: Job) -> None:
        if self._jobs.is_asked_elsewhere(job):
            self._core.journal.ask(job, Act.SUPERSEDE)
        else:
            supersede(self._core, job)

    def _delete_row(self, job: Job) -> None:
        if self._jobs.find(job.id) is None:
            self._core.journal.delete_row(job)

    def _until(self, until: datetime | None) -> datetime | None:
        return until and until_of(until, instant_of(self._core.timeline.us(self._core.monotonic(), steady=False)))


def refuse_if_removed(job: Job) -> None:
    if job.is_removed:
        msg = f"job {job.id!r} has been removed, or its schedule has ended"
        raise JobNotFound(msg)
