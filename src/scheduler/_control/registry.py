"""Adding jobs: what is given is made a job, which is in the list at once and starts from then on. Any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from schedule import Schedule
from timerqueue import Lifecycle, LifecycleError, LifecycleState

from .._jobs import NO_KWARGS, NO_TAGS, Call, Job, Tasks, args_of, id_of, kwargs_of, schedule_of, tags_of
from .._journal import new_row
from .._loop import Core
from .._plan import AT_ONCE, PLAIN, FirstStart, Plan, Start, left_out
from .._values import Histogram, InvalidJob, JobAdded, Policy
from .conflict import OnConflict, check_conflict, planned_alike, refuse_switch, stays
from .early import EarlyJob
from .verbs import Verbs

_STOPPED: Final = LifecycleState.STOPPED  # looked up once: a member of an enum costs as much as a call


class Registry(Verbs):
    """Where jobs are added, and what their handles ask."""

    def __init__(self, core: Core, lifecycle: Lifecycle, tasks: Tasks, *, has_store: bool) -> None:
        super().__init__(core, lifecycle, tasks, has_store=has_store)
        self._by_id = core.jobs.by_id
        self._lock = core.jobs.lock

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
            self._runs.check_needs(policy.needs)
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
        timeline = self._core.timeline
        slot = left_out(plan, timeline.us(self._core.monotonic(), steady=True))
        return None if slot is None else timeline.reported(slot, steady=True) * 1e-6

    def _put(self, job: Job, first: FirstStart, present: Job | None, start: Start, on_conflict: OnConflict) -> Job:
        """Put in a job that is stored, or whose id `present` has. The answer has the id from now on."""
        row = None if job.task is None else new_row(job)
        job.schedule_text = None if row is None else row.schedule
        if present is not None and on_conflict == "update":
            refuse_switch(present, job)
            self.updates.ask_to_renew(present, job, None if planned_alike(present, job, start) else first)
            return present
        if present is not None:
            self.remove(present)
        self._by_id[job.id] = job
        if row is not None and self.early.is_waiting:
            is_running = self._lifecycle.state is LifecycleState.RUNNING
            self.early.put(EarlyJob(job, first, on_conflict, is_late=is_running))
            return job
        self._begin(job, first.at_once, first.due_us)
        if row is not None:
            self._core.loop.call(self._core.journal.remember, job, row)
        return job

    def begin_early(self, most: int) -> bool:
        """Let some of those begin that have waited for the store to be read. False: there are no more."""
        return self.early.begin(most, self._begin_early)

    def _begin_early(self, job: Job, first: FirstStart) -> None:
        self._begin(job, first.at_once, first.due_us)
        self._core.journal.remember(job)

    def _begin(self, job: Job, at_once: bool, due_us: int | None) -> None:  # noqa: FBT001 - for every job that is added
        job.lateness = self.lateness.by_kind.setdefault(job.policy.kind, job.lateness)
        self._runs.enroll(job)
        try:
            if self._pausing.pauses.any and not self._pausing.admits(job):
                return
            if at_once:
                self._queue.push(AT_ONCE, self._runs.start_at_once, job)
            if due_us is not None:
                self._starts.plan_first(job, due_us)
        except LifecycleError:  # it has stopped at this very moment
            self._discard(job)
            self.refuse_if_stopped()
            raise


def refuse_without_id(task: str | None) -> None:
    """Raise InvalidJob for a job that is stored: its id is how it is found again."""
    if task is not None:
        msg = "a stored job needs an id: it is how the next run of this program finds it again"
        raise InvalidJob(msg)
