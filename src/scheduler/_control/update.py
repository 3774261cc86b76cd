"""Jobs that become something else: `Job.update`, and adding with on_conflict="update".

What may change is checked as a whole, in the thread that asks; it is applied on the loop, to the job as it is by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from schedule import Schedule

from .._jobs import (
    Definition,
    Job,
    Lateness,
    Tasks,
    args_of,
    call_of,
    copied,
    kwargs_of,
    on_the_loop,
    policy_of,
    schedule_of,
    tags_of,
    text_of,
)
from .._journal import stored_job
from .._loop import Core
from .._plan import FirstStart, Planners, Start, instant_of
from .._runs import count_what_runs
from .._values import OPTIONS, InvalidJob, JobChanged
from .conflict import is_same
from .early import Early

_DEFINITION: Final = frozenset({"func", "args", "kwargs", "inline", "tags", "name", "start"})


@frozen
class Update:
    """What a job will be. `start`: with a new schedule its first start."""

    definition: Definition
    start: Start


def update_of(job: Job, changes: Mapping[str, Any]) -> Update:
    """The job with these changes; what they do not name stays. Raises InvalidJob."""
    unknown = sorted(set(changes) - set(OPTIONS) - _DEFINITION)
    if unknown:
        msg = f"update has no {unknown[0]!r}; it has schedule, {', '.join(sorted({*OPTIONS, *_DEFINITION}))}"
        raise InvalidJob(msg)
    func = changes.get("func", job.func)
    inline = changes.get("inline", job.call is on_the_loop)
    definition = Definition(
        func=func,
        args=args_of(changes.get("args", job.args)),
        kwargs=kwargs_of(changes.get("kwargs", job.kwargs)),
        call=call_of(func, inline=inline),
        policy=policy_of({name: value for name, value in changes.items() if name in OPTIONS}, job.policy),
        tags=tags_of(changes.get("tags", job.tags)),
        name=text_of("name", changes.get("name", job.name)),
    )
    return Update(definition, changes.get("start"))


def settled(value: Any) -> Any:
    """An iterator as what it gives out, so that it can be looked at twice."""
    return tuple(value) if isinstance(value, Iterator) else value


def apart(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Changes of a stored job, with arguments of its own: it is called with what is stored, whatever the caller does
    with what was given.
    """
    return {name: copied(value) if name in {"args", "kwargs"} else value for name, value in changes.items()}


class Updates:
    """The changes of one scheduler's jobs."""

    def __init__(self, core: Core, planners: Planners, *, lateness: Lateness, tasks: Tasks, early: Early) -> None:
        self._core = core
        self._lock = core.jobs.lock
        self._planners = planners
        self._lateness = lateness
        self._tasks = tasks
        self._early = early

    # -- in the thread that asks ---------------------------------------------------------------------------------------

    def update(self, job: Job, schedule: Schedule | str | None, changes: Mapping[str, Any]) -> None:
        """Change the job as `Job.update` says, which also says what is raised."""
        if job.unfit is not None:
            msg = f"job {job.id!r} cannot be updated, because it is parked: {job.error}"
            raise InvalidJob(msg)
        changes = {name: settled(value) for name, value in changes.items()}
        task = job.task
        if task is not None and "func" in changes:
            task, changes["func"], _ = self._tasks.resolve(changes["func"], inline=False, durable=True)
        update = update_of(job, changes)
        self._core.runs.check_needs(update.definition.policy.needs)
        if schedule is None and update.start is not None:
            msg = "start can only be updated together with a schedule"
            raise InvalidJob(msg)
        with self._lock:
            start = self.dated_start(job) if update.start is None else update.start
            first = None if schedule is None else self.first_start(schedule_of(schedule), job.id, start)
        if task is not None:
            stored_job(job.id, task, job.schedule if first is None else first.schedule, update.definition)
        self._early.ask(job, self._apply, job, changes if task is None else apart(changes), first, task)

    def first_start(self, schedule: Schedule, id: str, start: Start) -> FirstStart:
        """When a job with that schedule would start for the first time. Raises InvalidJob if never."""
        with self._lock:
            return FirstStart(*self._planners.first(schedule, id, start))

    def first_start_known(self, schedule: Schedule, id: str) -> FirstStart:
        """The schedule as it stands for a job whose next start is known already."""
        with self._lock:
            bound, planner = self._planners.planner_of(schedule, id)
        return FirstStart(bound, planner, at_once=False, due_us=None)

    def dated_start(self, job: Job) -> datetime | None:
        """The first start that was given as a datetime, if it is still to come: no new schedule brings it forward."""
        has_run = job.statistics().runs
        if job.dated_us is None or job.dated_us != job.due_us or job.is_due_by_hand or has_run:
            return None
        return instant_of(self._core.timeline.reported(job.dated_us, steady=job.planner.steady))

    # -- on the loop ---------------------------------------------------------------------------------------------------

    def _apply(self, job: Job, changes: Mapping[str, Any], first: FirstStart | None, task: str | None) -> None:
        """Change a job as it is by now by changes that have been checked."""
        if job.is_removed:
            return
        definition = update_of(job, changes).definition
        job.task = task
        self.fill(job, definition, first)

    def renew(self, job: Job, source: Job, first: FirstStart | None) -> None:
        """Let the job be what another of its id was meant to be. `first`: how that would start; None: as the job."""
        if job.is_removed:
            return
        if job.unfit is not None:
            first = self.first_start(source.schedule, job.id, None) if first is None else first
            job.unfit = None
        definition = source.definition
        was_same = first is None and is_same(job, source)
        job.task = source.task
        if not was_same:
            self.fill(job, definition, first)

    def fill(self, job: Job, definition: Definition, first: FirstStart | None, *, stored: bool = False) -> None:
        """Let the job be what the definition says, and start as `first` says if that is not None. `stored`: its row
        says it already.
        """
        core = self._core
        count_what_runs(job)
        with self._lock:
            lateness = self._lateness.of(definition.policy.kind)
        job.become(definition, lateness)
        core.pausing.reconsider(job)
        has_given_up = core.starts.look_at_owed(job)
        if first is not None:
            core.starts.replan(job, first)
        elif has_given_up and job.due_us is None:  # what was owed was the next thing to do
            core.starts.after_end(job)
        core.starts.try_owed(job)
        core.runs.enroll(job)
        if not stored:
            core.journal.remember(job)
        core.listeners.tell(JobChanged(job.id, job.state, "updated"))
