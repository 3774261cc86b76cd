"""Changes of jobs: `Job.update`, and on_conflict="update".

The calling thread checks a change against the job after all earlier changes. The loop applies it to the job as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from logging import getLogger
from typing import Any, Final

from schedule import Schedule

from .._jobs import Definition, Job, Tasks, call_of, check_args, on_the_loop
from .._journal import stored_job
from .._loop import Core
from .._plan import FirstStart, Planners, Start, instant_of
from .._runs import count_what_runs
from .._shape import SomeSchedule, args_of, copied, flag_of, kwargs_of, policy_of, schedule_of, tags_of, text_of
from .._values import OPTIONS, InvalidJob, JobChanged
from ..stores import Act
from .conflict import is_same, refuse_to_move
from .early import Early
from .lateness import Lateness

logger = getLogger(__name__)

_CALL: Final = frozenset({"func", "args", "kwargs"})
_DEFINITION: Final = _CALL | {"inline", "tags", "name", "start"}


Change = Callable[[Definition], Definition]
"""A change of a job's definition. Raises InvalidJob."""


def changed(job: Definition, changes: Mapping[str, Any]) -> Definition:
    """Return the definition with these changes. Raises InvalidJob."""
    unknown = sorted(set(changes) - set(OPTIONS) - _DEFINITION)
    if unknown:
        msg = f"update has no {unknown[0]!r}; it has schedule, {', '.join(sorted({*OPTIONS, *_DEFINITION}))}"
        raise InvalidJob(msg)
    func = changes.get("func", job.func)
    inline = flag_of("inline", changes.get("inline", job.call is on_the_loop))
    definition = Definition(
        func=func,
        args=args_of(changes.get("args", job.args)),
        kwargs=kwargs_of(changes.get("kwargs", job.kwargs)),
        call=call_of(func, inline=inline),
        policy=policy_of({name: value for name, value in changes.items() if name in OPTIONS}, job.policy),
        tags=tags_of(changes.get("tags", job.tags)),
        name=text_of("name", changes.get("name", job.name)),
    )
    if not _CALL.isdisjoint(changes):
        check_args(func, definition.args, definition.kwargs)
    return definition


def settled(value: Any) -> Any:
    """Return a tuple for an iterator, which cannot be read twice."""
    return tuple(value) if isinstance(value, Iterator) else value


def apart(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: copied(value) if name in {"args", "kwargs"} else value for name, value in changes.items()}


class Updates:
    def __init__(self, core: Core, planners: Planners, *, lateness: Lateness, tasks: Tasks, early: Early) -> None:
        self._core = core
        self._lock = core.jobs.lock
        self._planners = planners
        self._lateness = lateness
        self._tasks = tasks
        self._early = early
        self._asked: dict[Job, list[Change]] = {}
        self.is_asked: Callable[[Job], bool] = self._asked.__contains__
        """Whether a change waits. Any thread. Adding many jobs asks it for each."""

    # -- in the calling thread
    # ---------------------------------------------------------------------------------------------

    def update(self, job: Job, schedule: SomeSchedule | None, changes: Mapping[str, Any]) -> None:
        """See `Job.update`."""
        if job.unfit is not None:
            msg = f"job {job.id!r} cannot be updated, because it is parked: {job.error}"
            raise InvalidJob(msg)
        changes = {name: settled(value) for name, value in changes.items()}
        task = job.task
        if task is not None and "func" in changes:
            task, changes["func"], _ = self._tasks.resolve(changes["func"], inline=False, durable=True)
        start = changes.pop("start", None)
        if schedule is None and start is not None:
            msg = "start can only be updated together with a schedule"
            raise InvalidJob(msg)
        is_here = self._core.loop.is_here and not self._early.holds(job)
        with self._lock:
            start = self.dated_start(job) if start is None else start
            first = None if schedule is None else self.first_start(schedule_of(schedule), job.key, start)
            change = partial(changed, changes=changes if task is None else apart(changes))
            definition = self._foreseen(job, change, is_here=is_here)
            refuse_to_move(job, definition.policy)
            self._core.runs.check_needs(definition.policy.needs)
            if task is not None:
                stored_job(job.id, task, job.schedule if first is None else first.schedule, definition)
            self._note(job, change, is_here=is_here)
            new_task = task if "func" in changes else None
            if not is_here:
                self._early.ask(job, self._apply_later, job, change, first, new_task)
        if is_here:  # outside the lock, because listeners are told
            self._early.ask(job, self._apply, job, change, first, new_task)

    def foreseen(self, job: Job) -> Definition:
        """Return the job's definition after all changes that wait. Any thread."""
        with self._lock:
            definition = job.definition
            for each in self._asked.get(job, ()):
                definition = each(definition)
            return definition

    def ask_to_renew(self, job: Job, source: Job, first: FirstStart | None) -> None:
        """Change the job into `source`, added under its id. `first`: its next start; None: unchanged.

        Hold the lock of the job list, and call `begin_to_renew` without it afterwards.
        """
        change: Change = lambda _: source.definition  # noqa: E731 - its identity tells it from others
        is_here, is_early = self._core.loop.is_here, self._early.holds(job)
        self._note(job, change, is_here=is_here and not is_early)
        if is_here or is_early:
            self._early.ask(job, self._renew, job, change, source, first)
        else:
            self._early.renewals.put(job, partial(self._renew, job, change, source, first))

    def begin_to_renew(self) -> None:
        self._early.renewals.begin()

    def _foreseen(self, job: Job, change: Change, *, is_here: bool) -> Definition:
        """Return the job after all changes. `is_here`: this one comes first."""
        definition = job.definition
        asked = self._asked.get(job, ())
        for each in (change, *asked) if is_here else (*asked, change):
            definition = each(definition)
        return definition

    def _note(self, job: Job, change: Change, *, is_here: bool) -> None:
        asked = self._asked.setdefault(job, [])
        asked.insert(0 if is_here else len(asked), change)

    def _forget(self, job: Job, change: Change) -> None:
        with self._lock:
            asked = self._asked[job]
            asked.remove(change)
            if not asked:
                del self._asked[job]

    def first_start(self, schedule: Schedule, key: str, start: Start) -> FirstStart:
        """Raises InvalidJob if there is none."""
        with self._lock:
            return FirstStart(*self._planners.first(schedule, key, start))

    def first_start_known(self, schedule: Schedule, key: str) -> FirstStart:
        with self._lock:
            bound, planner = self._planners.planner_of(schedule, key)
        return FirstStart(bound, planner, at_once=False, due_us=None)

    def dated_start(self, job: Job) -> datetime | None:
        """No new schedule brings forward a first start given as a datetime."""
        has_run = job.statistics().runs
        if job.dated_us is None or job.dated_us != job.due_us or job.is_due_by_hand or has_run:
            return None
        return instant_of(self._core.timeline.reported(job.dated_us, steady=job.planner.steady))

    # -- on the loop ---------------------------------------------------------------------------------------------------

    def _apply(self, job: Job, change: Change, first: FirstStart | None, task: str | None) -> None:
        self._forget(job, change)
        if job.is_removed:
            return
        definition = change(job.definition)
        if task is not None:
            job.task = task
        self.fill(job, definition, first, is_change=True)

    def _apply_later(self, job: Job, change: Change, first: FirstStart | None, task: str | None) -> None:
        """A refusal is logged: the caller is gone."""
        try:
            self._apply(job, change, first, task)
        except InvalidJob as exc:  # the stored row has changed since the check
            logger.error("job %r is not updated, its row has changed since that was asked for: %s", job.id, exc)  # noqa: TRY400 - the text says it all

    def _renew(self, job: Job, change: Change, source: Job, first: FirstStart | None) -> None:
        self._forget(job, change)
        if job.is_removed:
            return
        if job.unfit is not None:
            first = self.first_start(source.schedule, job.key, None) if first is None else first
            job.unfit = None
        definition = source.definition
        was_same = first is None and is_same(job, source)
        job.task = source.task
        if not was_same:
            self.fill(job, definition, first)

    def fill(
        self,
        job: Job,
        definition: Definition,
        first: FirstStart | None,
        *,
        stored: bool = False,
        is_change: bool = False,
    ) -> None:
        """`first`: the next start; None: unchanged. `stored`: the job's row has the change.

        `is_change`: the job was there when that was asked for. It does not come back if another removes it meanwhile.
        """
        core = self._core
        count_what_runs(job)
        with self._lock:
            lateness = self._lateness.of(definition.policy.kind)
        job.become(definition, lateness)
        core.pausing.reconsider(job)
        has_given_up = core.starts.look_at_owed(job)
        if first is not None and job.is_elsewhere:
            job.schedule, job.planner = first.schedule, first.planner
        elif first is not None:
            core.starts.replan(job, first)
        elif has_given_up and job.due_us is None:  # the owed tick was its next start
            core.starts.after_end(job)
        core.starts.try_owed(job)
        core.runs.enroll(job)
        if not stored:
            core.journal.remember(job, is_change=is_change)
            if first is not None and first.is_dated and first.due_us is not None and job.is_elsewhere:
                core.journal.ask(job, Act.START_AT, core.timeline.reported(first.due_us, steady=first.planner.steady))
        core.listeners.tell(JobChanged(job.id, job.state, "updated"))
