"""Adding jobs. A new job is listed and planned at once. Any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from schedule import At, Schedule, ScheduleError
from timerqueue import Lifecycle, LifecycleError, LifecycleState

from .._jobs import Call, Definition, Job, Tasks, call_of, check_args
from .._journal import stored_job
from .._loop import Core
from .._plan import AT_ONCE, PLAIN, FirstStart, Plan, Start, left_out, some_instant_of
from .._shape import NO_KWARGS, NO_TAGS, SomeSchedule, args_of, id_of, kwargs_of, schedule_of, tags_of
from .._values import InvalidJob, JobAdded, KindCounts, Policy, SchedulerError
from ..stores import Act, StoredJob
from .conflict import OnConflict, check_conflict, moves, planned_alike, refuse_switch, stays
from .early import EarlyJob
from .new_jobs import Drafts, NewJobReader, SomeJob, listed, refuse, refuse_without_id, row_of_new, twice
from .unchanged import Unchanged
from .verbs import Verbs

_STOPPED: Final = LifecycleState.STOPPED  # looked up once, because a member of an enum costs as much as a call


class Registry(Verbs):
    def __init__(self, core: Core, lifecycle: Lifecycle, tasks: Tasks, *, has_store: bool) -> None:
        super().__init__(core, lifecycle, tasks, has_store=has_store)
        self._by_id = core.jobs.by_id
        self._lock = core.jobs.lock
        self._known: Callable[..., Any] | None = None  # the function whose arguments were checked last
        self._takes = 0
        self._called: tuple[Callable[..., Any] | None, Call | None] = None, None  # the last function, and its call

    def add(  # noqa: PLR0917 - keywords would cost time, as for Job
        self,
        id: str | None,
        schedule: SomeSchedule,
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
        """Add a job. `task`: the stored name of `func`. Raises as Scheduler.add does; then nothing has changed."""
        if on_conflict != "error":
            check_conflict(on_conflict)
        if id is not None and (type(id) is not str or not id):
            id_of(id)
        if policy.needs or policy.where is not None:
            self._check(policy, task)
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
            plan = self._planners.first(planned, id if policy.where is None else policy.key_of(id), start)  # type: ignore[arg-type] # `planned` is no text here
            bound, planner, at_once, due_us, is_dated = plan
            given = args if type(args) is tuple else args_of(args)
            options = NO_KWARGS if kwargs is None else kwargs_of(kwargs)
            self._check_args(func, given, options)
            job = Job(
                self,
                id,
                func,
                given,
                options,
                call,
                bound,
                planner,
                policy,
                self.lateness.by_kind.get(policy.kind) or KindCounts(),  # kept with the first job of its kind
                name,
                tags_of(tags) if tags else NO_TAGS,
            )
            job.task = task
            job.dated_us = due_us if is_dated else None
            if present is None and task is None:
                self._by_id[id] = job
                self._begin(job, at_once, due_us)
            elif (standing := self._put(job, _row_of(job), FirstStart(*plan), present, start, on_conflict)) is not job:
                self.updates.begin_to_renew()
                return standing
        if self._listeners.anybody:
            self.tell(JobAdded(id, self._stands_for(plan)))
        return job

    def add_many(  # noqa: PLR0917 - as for `add`
        self,
        jobs: Iterable[SomeJob],
        start: Start,
        policy: Policy,
        on_conflict: OnConflict,
        task: str | None,
        func: Callable[..., Any],
        call: Call,
        tags: Iterable[str],
    ) -> list[Job]:
        """Add all jobs or none. Raises as `add` does, with the index of the wrong job."""
        check_conflict(on_conflict)
        self._check(policy, task)
        given = listed(jobs)
        while True:
            unchanged = Unchanged(self._by_id, self.updates.is_asked, on_conflict, start, task, func, call, policy)
            drafts = self._drafts(given, start, policy, task, func, call, tags, unchanged)
            with self._lock:
                self.refuse_if_stopped()
                if any(self._by_id.get(id) is not job for id, job in drafts.unchanged.items()):
                    continue  # another thread has removed a job meanwhile
                self._refuse_conflicts(drafts, on_conflict)
                answer = self._put_drafts(drafts, start, on_conflict)
                break
        self.updates.begin_to_renew()
        if self._listeners.anybody:
            for index, job in enumerate(answer):
                if job is drafts.by_id[job.id]:
                    self.tell(JobAdded(job.id, self._stands_for(drafts.plan(index, job))))
        return drafts.in_order(answer)

    def _put_drafts(self, drafts: Drafts, start: Start, on_conflict: OnConflict) -> list[Job]:
        try:
            return self._put_all(drafts, start, on_conflict)
        except LifecycleError:  # the scheduler has stopped at this moment
            for job in drafts.by_id.values():
                self._discard(job)
            self.refuse_if_stopped()
            raise

    def call_of(self, func: Callable[..., Any], inline: bool) -> Call:  # noqa: FBT001 - called for every job
        """Return the call for a function. Raises InvalidJob. The last call is kept, because many jobs have the same
        function.
        """
        known, call = self._called
        if known is not func or inline or call is None:
            call = call_of(func, inline=inline)
            self._called = None if inline else func, call
        return call

    def _check_args(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if func is self._known and not kwargs and len(args) == self._takes:  # nearly always, when many jobs are added
            return
        check_args(func, args, kwargs)
        if not kwargs:
            self._known, self._takes = func, len(args)

    def check_new(  # noqa: PLR0917 - as for `add`
        self,
        id: str,
        schedule: Schedule,
        policy: Policy,
        task: str | None,
        func: Callable[..., Any],
        call: Call,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        name: str | None,
        tags: frozenset[str],
    ) -> bool:
        """Raise what `add` would raise. Return whether the job has a start: `add` refuses a job without one."""
        self._check(policy, task)
        self._check_args(func, args, kwargs)
        if task is not None:
            stored_job(id, task, schedule, Definition(func, call, args, kwargs, policy, tags, name))
        return self.has_start(id, schedule, policy)

    def has_start(self, id: str, schedule: Schedule, policy: Policy) -> bool:
        with self._lock:
            try:
                self._planners.first(schedule, policy.key_of(id), None)
            except InvalidJob:
                return False
        return True

    def may_become(self, job: Job, policy: Policy, *, is_stored: bool) -> bool:
        """Return whether an update can change the job so, or only a replacement."""
        return (job.task is not None) == is_stored and not moves(job, policy)

    def _check(self, policy: Policy, task: str | None) -> None:
        self._runs.check_needs(policy.needs)
        self._jobs.check_placement(policy, is_stored=task is not None)

    def _drafts(  # noqa: PLR0917 - as for `add`
        self,
        given: Iterable[SomeJob],
        start: Start,
        policy: Policy,
        task: str | None,
        func: Callable[..., Any],
        call: Call,
        tags: Iterable[str],
        unchanged: Unchanged,
    ) -> Drafts:
        reader = NewJobReader(tags)
        histogram = self.lateness.by_kind.get(policy.kind) or KindCounts()
        drafts, last = Drafts(), None
        by_id, dues, ids = drafts.by_id, drafts.dues, drafts.ids
        try:
            for new in given:
                id, schedule, args, kwargs, name, own_tags = reader.read(new)
                if id is None:
                    refuse_without_id(task)
                    with self._lock:
                        id = self._jobs.free_id()
                elif id in ids:
                    raise twice(id, list(ids).index(id))
                if (present := unchanged.find(id, schedule, args, kwargs, name, own_tags)) is not None:
                    drafts.unchanged[id] = present
                    ids[id] = None
                    continue
                if schedule is not last:
                    last, plan_of = schedule, self._plans(schedule, start)
                self._check_args(func, args, kwargs)
                bound, planner, at_once, due_us, is_dated = plan_of(id)
                job = Job(self, id, func, args, kwargs, call, bound, planner, policy, histogram, name, own_tags)
                if task is not None:
                    job.task = task
                    drafts.rows.append(row_of_new(job))
                if is_dated:
                    job.dated_us = due_us
                if at_once:
                    drafts.at_once[id] = None
                by_id[id] = job
                dues.append(due_us)
                ids[id] = None
        except (SchedulerError, ScheduleError) as exc:
            refuse(len(ids), exc)
        return drafts

    def _refuse_conflicts(self, drafts: Drafts, on_conflict: OnConflict) -> None:
        if self._by_id.keys().isdisjoint(drafts.by_id):
            return
        for index, (id, job) in enumerate(drafts.by_id.items()):
            present = self._by_id.get(id)
            try:
                if present is not None and not stays(present, on_conflict) and on_conflict == "update":
                    refuse_switch(present, job)
            except SchedulerError as exc:
                refuse(index, exc)

    def _put_all(self, drafts: Drafts, start: Start, on_conflict: OnConflict) -> list[Job]:
        jobs = list(drafts.by_id.values())
        if not jobs:
            return jobs
        is_early = bool(drafts.rows) and (self.early.is_waiting or self._jobs.ownership.is_shared)
        if is_early or self._pausing.pauses.any or not self._by_id.keys().isdisjoint(drafts.by_id):
            return [self._put_one(drafts, index, job, start, on_conflict) for index, job in enumerate(jobs)]
        self._by_id.update(drafts.by_id)
        histogram = self.lateness.by_kind.setdefault(jobs[0].policy.kind, jobs[0].lateness)
        for job in jobs:
            job.lateness = histogram
            self._runs.enroll(job)
        for id in drafts.at_once:
            self._queue.push(AT_ONCE, self._runs.start_at_once, drafts.by_id[id])
        self._starts.plan_all_first(jobs, drafts.dues)
        if drafts.rows:
            self._core.loop.call(self._remember_all, jobs, drafts.rows)
        return jobs

    def _put_one(self, drafts: Drafts, index: int, job: Job, start: Start, on_conflict: OnConflict) -> Job:
        present = self._by_id.get(job.id)
        if present is not None and stays(present, on_conflict):
            return present
        row = drafts.rows[index] if drafts.rows else None
        return self._put(job, row, FirstStart(*drafts.plan(index, job)), present, start, on_conflict)

    def _remember_all(self, jobs: list[Job], rows: list[StoredJob]) -> None:
        for job, row in zip(jobs, rows, strict=True):
            self._core.journal.remember(job, row)

    def _plans(self, schedule: Schedule, start: Start) -> Callable[[str], Plan]:
        with self._lock:
            return self._planners.first_of_each(schedule, start) or partial(self._plan, schedule, start)

    def _plan(self, schedule: Schedule, start: Start, id: str) -> Plan:
        with self._lock:
            return self._planners.first(schedule, id, start)

    def _stands_for(self, plan: Plan) -> datetime | None:
        timeline = self._core.timeline
        slot = left_out(plan, timeline.us(self._core.monotonic(), steady=True))
        return None if slot is None else some_instant_of(timeline.reported(slot, steady=True))

    def _put(  # noqa: PLR0917 - as for `add`
        self,
        job: Job,
        row: StoredJob | None,
        first: FirstStart,
        present: Job | None,
        start: Start,
        on_conflict: OnConflict,
    ) -> Job:
        """Put in a job that is stored or replaces `present`. Return the job that now has the id."""
        if present is not None and on_conflict == "update":
            refuse_switch(present, job)
            self.updates.ask_to_renew(present, job, None if planned_alike(present, job, start) else first)
            return present
        if present is not None:
            self.remove(present)
            on_conflict = "replace"
        self._by_id[job.id] = job
        if row is not None and self.early.is_waiting:
            is_running = self._lifecycle.state is LifecycleState.RUNNING
            self.early.put(EarlyJob(job, first, on_conflict, start, is_late=is_running))
            return job
        self._begin(job, first.at_once, first.due_us)
        if row is not None:
            self._core.loop.call(self._keep, job, row, first, start, on_conflict)
        return job

    def _keep(self, job: Job, row: StoredJob | None, first: FirstStart, start: Start, on_conflict: OnConflict) -> None:
        journal = self._core.journal
        if on_conflict == "replace":
            journal.replace(job, row)
        else:
            journal.add(job, row, on_conflict)
        if not job.is_removed:
            self._see_whose(job, first, start)

    def _see_whose(self, job: Job, first: FirstStart, start: Start) -> None:
        """Begin a job that is ours now. Otherwise send its node the first start, if the user set it or it may pass
        before that node reads the job.
        """
        is_elsewhere = self._jobs.is_elsewhere(job)
        if job.is_elsewhere and not is_elsewhere:
            job.is_elsewhere = False
            job.settle_pause()
            job.settle_state()
            self._begin(job, first.at_once, first.due_us)
        if not is_elsewhere:
            return
        self._queue.disarm(job)
        job.due_us = job.dated_us = None
        self._leave(job)
        may_pass = job.policy.where is not None or isinstance(job.schedule, At)
        if (start is None and not may_pass) or job.policy.agents is not None:
            return
        if first.due_us is not None:
            next_us = self._core.timeline.reported(first.due_us, steady=first.planner.steady)
            self._core.journal.begin_elsewhere(job, next_us, is_by_hand=first.is_dated)
        if first.at_once and not first.planner.waits_for_end:
            self._core.journal.ask(job, Act.BEGIN)

    def begin_early(self, most: int) -> bool:
        """Begin jobs that waited for the store. False: there are no more."""
        return self.early.begin(most, self._begin_early)

    def _begin_early(self, early: EarlyJob) -> None:
        job, first = early.job, early.first
        self._begin(job, first.at_once, first.due_us)
        self._keep(job, None, first, early.start, early.on_conflict)

    def _begin(self, job: Job, at_once: bool, due_us: int | None) -> None:  # noqa: FBT001 - called for every job
        job.lateness = self.lateness.by_kind.setdefault(job.policy.kind, job.lateness)
        self._runs.enroll(job)
        if self._jobs.begins_elsewhere(job, at_once=at_once):
            self._leave(job)
            return
        try:
            if self._pausing.pauses.any and not self._pausing.admits(job):
                self._starts.left_out.begin(job, due_us)
                due_us = None
            if at_once:
                self._queue.push(AT_ONCE, self._runs.start_at_once, job)
            if due_us is not None:
                self._starts.plan_first(job, due_us)
        except LifecycleError:  # the scheduler has stopped at this moment
            self._discard(job)
            self.refuse_if_stopped()
            raise

    def _leave(self, job: Job) -> None:
        job.is_elsewhere = True
        job.held_by = self._pausing.pauses.covering(job.tags)
        job.settle_pause()
        job.settle_state()


def _row_of(job: Job) -> StoredJob | None:
    return None if job.task is None else row_of_new(job)
