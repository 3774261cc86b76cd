"""Which jobs there are, and what their handles do.

Any thread: the list changes at once, under a lock; effects happen on the loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from logging import getLogger
from typing import Any, Final

from schedule import Schedule
from timerqueue import Lifecycle, LifecycleError, LifecycleState

from .._jobs.job import Job
from .._jobs.lateness import Lateness
from .._jobs.options import (
    NO_KWARGS,
    NO_TAGS,
    args_of,
    aware,
    count_of,
    id_of,
    kwargs_of,
    reason_of,
    schedule_of,
    tags_of,
    until_of,
)
from .._jobs.thread_call import Call
from .._journal.rows import check_pause, new_row, next_start, next_starts
from .._loop.loop import Loop
from .._plan.first_start import PLAIN, FirstStart, Plan, Planners, Start, left_out
from .._plan.timeline import AT_ONCE, instant_of, us_of
from .._runs.completion import count_what_runs
from .._values.errors import AlreadyStopped, InvalidJob, JobNotFound
from .._values.events import Event, JobAdded, JobChanged, JobRemoved
from .._values.listeners import Listeners
from .._values.pauses import JOB, Pause
from .._values.policy import Policy
from .._values.statistics import Histogram
from .conflict import Definable, Early, OnConflict, check_conflict, is_same, planned_alike, refuse_switch, stays
from .early import StoredJobs
from .update import apart, check_row, settled, update_of

logger = getLogger(__name__)

_STOPPED: Final = LifecycleState.STOPPED  # looked up once: a member of an enum costs as much as a call


class Registry:
    """The jobs of one scheduler, by id."""

    def __init__(self, loop: Loop, lifecycle: Lifecycle, listeners: Listeners) -> None:
        self._loop = loop
        self._queue = loop.queue
        self._lifecycle = lifecycle
        self._listeners = listeners
        self._jobs = loop.jobs
        self._by_id = loop.jobs.by_id
        self._lock = loop.jobs.lock
        self._planners = Planners(loop.timeline, loop.monotonic)
        self.lateness = Lateness(loop.runs.uncounted)
        loop.pausing.changed = self._pause_changed
        self.stored = StoredJobs(loop, self._lock)
        self.task_of: Callable[..., tuple[str | None, Any, object]] = _no_task
        """By what name the store knows a callable, what is to be called, and how."""

    def add(  # noqa: PLR0917 - keywords would cost as for Job
        self,
        id: str | None,
        schedule: Schedule | str,
        start: Start,
        policy: Policy,
        on_conflict: OnConflict,
        task: str | None,
        func: Callable[..., Any],
        call: Call,
        args: Iterable[Any],
        kwargs: Mapping[str, Any] | None,
        name: str | None,
        tags: Iterable[str],
    ) -> Job:
        """Put a job in, and let it start. `task`: under this name the store knows `func`.

        Raises as Scheduler.add does; then nothing has changed.
        """
        if on_conflict != "error":
            check_conflict(on_conflict)
        if id is not None and (type(id) is not str or not id):
            id_of(id)
        if policy.needs:
            self._loop.runs.check_needs(policy.needs)
        planned = schedule if type(schedule) in PLAIN else schedule_of(schedule)
        with self._lock:
            if self._lifecycle.state is _STOPPED:
                self.refuse_if_stopped()
            if id is None:
                refuse_without_id(task)
                id = self._jobs.free_id()
            present = self._by_id.get(id)
            if present is not None and stays(present, on_conflict):
                return present
            plan = self._planners.first(planned, id, start)  # type: ignore[arg-type] # it is no text any more
            bound, planner, at_once, due_us, is_dated = plan
            job = Job(
                self,
                id,
                func,
                args if type(args) is tuple else args_of(args),
                NO_KWARGS if kwargs is None else kwargs_of(kwargs),
                call,
                bound,
                planner,
                policy,
                self.lateness.by_kind.get(policy.kind) or Histogram(),  # kept once the job is
                name,
                tags_of(tags) if tags else NO_TAGS,
            )
            job.task = task
            job.dated_us = due_us if is_dated else None
            if present is None and task is None:
                self._by_id[id] = job
                self._begin(job, at_once, due_us)
            elif (standing := self._put(job, FirstStart(*plan), present, start, on_conflict)) is not job:
                return standing
        if self._listeners.anybody:
            self.tell(JobAdded(id, self._stands_for(plan)))
        return job

    def _stands_for(self, plan: Plan) -> float | None:
        """In UTC seconds: see JobAdded."""
        timeline = self._loop.timeline
        slot = left_out(plan, timeline.us(self._loop.monotonic(), steady=True))
        return None if slot is None else timeline.reported(slot, steady=True) * 1e-6

    def _put(self, job: Job, first: FirstStart, present: Job | None, start: Start, on_conflict: OnConflict) -> Job:
        """Put in a job that is stored, or whose id `present` has. The answer has the id from now on."""
        row = None if job.task is None else new_row(job)
        job.schedule_text = None if row is None else row.schedule
        if present is not None and on_conflict == "update":
            refuse_switch(present, job)
            self.stored.ask(present, self._renew, present, job, None if planned_alike(present, job, start) else first)
            return present
        if present is not None:
            self.remove(present)
        self._by_id[job.id] = job
        if row is not None and self.stored.early is not None:
            self.stored.early[job.id] = Early(job, first, on_conflict, self._lifecycle.state is LifecycleState.RUNNING)
            return job
        self._begin(job, first.at_once, first.due_us)
        if row is not None:
            self._loop.call(self.stored.remember, job, row)
        return job

    def refuse_if_stopped(self) -> None:
        if self._lifecycle.state is _STOPPED:
            msg = "this scheduler has stopped, and one runs once: make a new one"
            raise AlreadyStopped(msg)

    def refuse_if_removed(self, job: Job) -> None:
        if job.is_removed:
            msg = f"job {job.id!r} has been removed, or its schedule has ended"
            raise JobNotFound(msg)

    def forget(self, job: Job) -> None:
        """It is gone from the list."""
        stored = self.stored
        with self._lock:
            if stored.early is not None and stored.is_early(job):
                del stored.early[job.id]
            self._jobs.discard(job)

    def begin_early(self, most: int) -> bool:
        """What the store holds is known: some of those who waited for that begin. False: there are no more."""
        stored = self.stored
        with self._lock:
            for id in list(itertools.islice(stored.early or (), most)):
                each = (stored.early or {}).pop(id)
                self._begin(each.job, each.first.at_once, each.first.due_us)
                stored.remember(each.job)
            if stored.early:
                return True
            stored.early = None
            asked, stored.asked = stored.asked, []
        for ask in asked:
            ask()
        return False

    def plan(self, schedule: Schedule, id: str, start: Start) -> FirstStart:
        """When a job with that schedule would start for the first time. Raises InvalidJob if never."""
        with self._lock:
            return FirstStart(*self._planners.first(schedule, id, start))

    def planned(self, schedule: Schedule, id: str) -> FirstStart:
        """The same for a job of which it is known when it starts."""
        with self._lock:
            bound, planner = self._planners.of(schedule, id)
        return FirstStart(bound, planner, at_once=False, due_us=None)

    def dated_start(self, job: Job) -> datetime | None:
        """The first start that was given as a datetime, if it is still to come: no new schedule brings it forward."""
        has_run = job.statistics().runs
        if job.dated_us is None or job.dated_us != job.due_us or job.is_due_by_hand or has_run:
            return None
        return instant_of(self._loop.timeline.reported(job.dated_us, steady=job.planner.steady))

    def tell(self, event: Event) -> None:
        """Tell the listeners, on the loop."""
        self._loop.call(self._listeners.tell, event)

    # -- what handles ask for ------------------------------------------------------------------------------------------

    def tick(self, job: Job) -> None:
        self._loop.tick(job)

    def remove(self, job: Job) -> None:
        if job.is_removed:
            return
        is_known = job.task is not None and not self.stored.is_early(job)
        self.drop(job)
        if is_known:
            self._loop.call(self._forget_stored, job)

    def drop(self, job: Job) -> None:
        """Let go of the job, here only: its row, if it has one, is gone already."""
        self.forget(job)
        self._queue.disarm(job)
        self._loop.call(self._loop.dismiss, job)
        if self._listeners.anybody:
            self.tell(JobRemoved(job.id))

    def pause(self, job: Job, reason: str | None, until: datetime | None = None) -> None:
        reason, until = reason_of(reason), self._until(until)
        if job.task is not None and job.unfit is None:
            check_pause(job, reason)
        self.stored.ask(job, self._loop.pausing.pause, job, reason, until)

    def resume(self, job: Job) -> None:
        self.stored.ask(job, self._loop.enable, job)

    def run_now(self, job: Job) -> None:
        self.refuse_if_stopped()
        self.refuse_if_removed(job)
        self.stored.ask(job, lambda: self._loop.runs.start_now(job, by_hand=True))

    def set_next_start(self, job: Job, at: datetime) -> None:
        at_us = us_of(aware("at", at))
        self.refuse_if_stopped()
        self.refuse_if_removed(job)
        self.stored.ask(job, self._loop.set_next_start, job, at_us)

    def pause_scope(self, scope: str, reason: str | None, until: datetime | None) -> None:
        reason, until = reason_of(reason), self._until(until)
        self._loop.call(self._loop.pausing.pause_scope, scope, reason, until)

    def resume_scope(self, scope: str) -> None:
        self._loop.call(self._loop.pausing.resume_scope, scope)

    def update(self, job: Job, schedule: Schedule | str | None, changes: Mapping[str, Any]) -> None:
        if job.unfit is not None:
            msg = f"job {job.id!r} cannot be updated, because it is parked: {job.error}"
            raise InvalidJob(msg)
        changes = {name: settled(value) for name, value in changes.items()}
        task = job.task
        if task is not None and "func" in changes:
            task, changes["func"], _ = self.task_of(changes["func"], inline=False, durable=True)
        update = update_of(job, changes)
        self._loop.runs.check_needs(update.policy.needs)
        if schedule is None and update.start is not None:
            msg = "start can only be updated together with a schedule"
            raise InvalidJob(msg)
        with self._lock:
            start = self.dated_start(job) if update.start is None else update.start
            first = None if schedule is None else self.plan(schedule_of(schedule), job.id, start)
        if task is not None:
            check_row(job, task, update, job.schedule if first is None else first.schedule)
        self.stored.ask(job, self._apply, job, changes if task is None else apart(changes), first, task)

    def next_start(self, job: Job) -> datetime | None:
        return next_start(job, self._loop.timeline)

    def next_starts(self, job: Job, count: int) -> list[datetime]:
        return next_starts(job, self._loop.timeline, count_of("count", count) if count else 0)

    def _until(self, until: datetime | None) -> datetime | None:
        return until and until_of(until, instant_of(self._loop.timeline.us(self._loop.monotonic(), steady=False)))

    def _pause_changed(self, scope: str, pause: Pause | None) -> None:
        job = self._jobs.find(scope.removeprefix(JOB)) if scope.startswith(JOB) else None
        self.stored.pause_changed(scope, pause, job)

    def _forget_stored(self, job: Job) -> None:
        if self._jobs.find(job.id) is None:
            self.stored.forget(job)

    def _begin(self, job: Job, at_once: bool, due_us: int | None) -> None:  # noqa: FBT001 - for every job that is added
        loop = self._loop
        job.lateness = self.lateness.by_kind.setdefault(job.policy.kind, job.lateness)
        loop.enroll(job)
        try:
            if loop.pausing.pauses.any and not loop.pausing.admits(job):
                return
            if at_once:
                self._queue.push(AT_ONCE, loop.start_at_once, job)
            if due_us is not None:
                loop.plan_first(job, due_us)
        except LifecycleError:  # it has stopped at this very moment
            self.forget(job)
            self.refuse_if_stopped()
            raise

    def _apply(self, job: Job, changes: Mapping[str, Any], first: FirstStart | None, task: str | None) -> None:
        """Change a job as it is by now, on the loop, by changes that have been checked."""
        if job.is_removed:
            return
        update = update_of(job, changes)
        job.task = task
        self.fill(job, update, first)

    def _renew(self, job: Job, source: Job, first: FirstStart | None) -> None:
        """Let the job be what another of its id was meant to be."""
        if job.is_removed:
            return
        if job.unfit is not None:
            first = self.plan(source.schedule, job.id, None) if first is None else first
            self.stored.mended(job)
        was_same = first is None and is_same(job, source)
        job.task = source.task
        if not was_same:
            self.fill(job, source, first)

    def fill(self, job: Job, source: Definable, first: FirstStart | None, *, stored: bool = False) -> None:
        """Let the job be what `source` says, and start as `first` says if that is not None. On the loop.

        `stored`: the store knows it already.
        """
        count_what_runs(job)
        job.func, job.args, job.kwargs, job.call = source.func, source.args, source.kwargs, source.call
        job.policy, job.tags, job.name = source.policy, source.tags, source.name
        with self._lock:
            job.lateness = self.lateness.of(source.policy.kind)
        self._loop.pausing.reconsider(job)
        has_given_up = self._loop.look_at_owed(job)
        if first is not None:
            self._loop.replan(job, first)
        elif has_given_up and job.due_us is None:  # what was owed was the next thing to do
            self._loop.go_on(job)
        self._loop.try_owed(job)
        self._loop.enroll(job)
        if not stored:
            self.stored.remember(job)
        self._listeners.tell(JobChanged(job.id, job.state, "updated"))


def refuse_without_id(task: str | None) -> None:
    """Raise InvalidJob for a job that is stored: its id is how it is found again."""
    if task is not None:
        msg = "a stored job needs an id: it is how the next run of this program finds it again"
        raise InvalidJob(msg)


def _no_task(func: Any, **_: Any) -> tuple[str | None, Any, object]:
    """Nothing is stored."""
    return None, func, None
