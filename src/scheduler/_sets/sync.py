"""A whole set of jobs in one call: what differs is changed, and the owner's other jobs are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Event
from typing import Any, Final, NoReturn

from attrs import Factory, define, frozen

from schedule import At, Schedule, parse
from timerqueue import LifecycleError

from .._control import PartedRegistry, refuse
from .._jobs import Call, Job, Tasks, is_inline, is_like
from .._loop import Core
from .._shape import SHARED_POLICIES, JobSpec, path_of, policy_of
from .._values import DuplicateJob, InvalidJob, Policy, SchedulerError, WrongOwner, shown

SLICE: Final = 50
"""Jobs that the loop takes in one turn."""

PATIENCE_S: Final = 1.0


@frozen(kw_only=True)
class Synced:
    """The ids of the jobs that `Scheduler.sync` added, changed, left alone and removed.

    `ended`: in the set, and not added, because the schedule has no start after now.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


@frozen
class _Ready:
    """A checked spec. `task`: the name to store; None: there is no store. `present`: the job to change."""

    index: int
    spec: JobSpec
    schedule: Schedule
    policy: Policy
    task: str | None
    func: Callable[..., Any]
    call: Call
    present: Job | None


@define
class _Plan:
    added: list[_Ready] = Factory(list)
    changed: list[_Ready] = Factory(list)
    unchanged: list[Job] = Factory(list)
    removed: list[Job] = Factory(list)
    ended: list[str] = Factory(list)

    def told(self) -> Synced:
        return Synced(
            added=tuple(each.spec.id for each in self.added),
            changed=tuple(each.spec.id for each in self.changed),
            unchanged=tuple(job.id for job in self.unchanged),
            removed=tuple(job.id for job in self.removed),
            ended=tuple(self.ended),
        )


class Sync:
    """Any thread. Everything is checked before anything changes."""

    def __init__(self, registry: PartedRegistry, core: Core, tasks: Tasks, *, has_store: bool) -> None:
        self._registry = registry
        self._loop = core.loop
        self._lock = core.jobs.lock
        self._tasks = tasks
        self._has_store = has_store
        self._owned: dict[tuple[Policy, str], Policy] = {}

    def sync(self, specs: Iterable[JobSpec], owner: str, *, prune: bool, dry_run: bool) -> Synced:
        """See `Scheduler.sync`."""
        if self._registry.early.is_waiting:
            msg = "cannot sync yet: it compares with the jobs in the store, which are read as the scheduler starts"
            raise LifecycleError(msg)
        self._registry.refuse_if_stopped()
        wanted = _by_id(specs)
        while True:
            plan = self._plan(wanted, owner)
            if prune:
                plan.removed = [job for job in self._registry.owned_by(owner) if job.id not in wanted]
            if dry_run or self._carry_out(plan, owner):
                return plan.told()

    def _plan(self, specs: dict[str, JobSpec], owner: str) -> _Plan:
        plan = _Plan()
        for index, spec in enumerate(specs.values()):
            try:
                self._place(plan, index, spec, owner)
            except (SchedulerError, LookupError, ValueError) as exc:
                _refuse(index, exc)
        return plan

    def _place(self, plan: _Plan, index: int, spec: JobSpec, owner: str) -> None:
        policy = self._policy_of(spec, owner)
        present = self._registry.find(spec.id)
        if present is not None:
            _refuse_owner(self._registry, present, owner)
        task, func, call = self._resolved(spec)
        if present is not None and self._is_same(present, spec, policy, func, call):
            plan.unchanged.append(present)
            return
        ready = _Ready(index, spec, parse(spec.schedule), policy, task, func, call, present)
        if self._registry.check_new(
            spec.id, ready.schedule, policy, task, func, call, spec.args, spec.kwargs, spec.name, spec.tags
        ):
            (plan.added if present is None else plan.changed).append(ready)
        else:
            _note_ended(plan, spec, present)

    def _policy_of(self, spec: object, owner: str) -> Policy:
        """Return the policy with the owner, one for all jobs with equal options."""
        if not isinstance(spec, JobSpec):
            msg = f"it must be a JobSpec, such as from_json(JobSpec, {{...}}), not {shown(spec)}"
            raise InvalidJob(msg)
        if spec.owner not in {None, owner}:
            msg = f"owner: it is {spec.owner!r}, and this is the set of {owner!r}: leave it out"
            raise InvalidJob(msg)
        key = spec.policy, owner
        if (found := self._owned.get(key)) is None:
            if len(self._owned) >= SHARED_POLICIES:
                self._owned = {}
            found = self._owned[key] = policy_of({"owner": owner}, spec.policy)
        return found

    def _resolved(self, spec: JobSpec) -> tuple[str | None, Callable[..., Any], Call]:
        if spec.task is None:
            msg = "task: the job must name one, because a set has no functions: register it, as in s.register(...)"
            raise InvalidJob(msg)
        self._tasks.task(spec.task)  # refuses a name that is not registered, without a store too
        return self._tasks.resolve(spec.task, inline=spec.inline, durable=True)

    def _is_same(self, job: Job, spec: JobSpec, policy: Policy, func: object, call: Call) -> bool:
        if self._registry.updates.is_asked(job) or (job.task is None) == self._has_store:
            return False
        tasks = self._tasks
        return is_like(job, spec, policy, func, inline=is_inline(call, spec.task, tasks), tasks=tasks)

    def _carry_out(self, plan: _Plan, owner: str) -> bool:
        """Add and change, then remove. False: other threads have changed these jobs since they were planned."""
        rest = [*plan.changed, *plan.added]
        with self._lock:
            if not self._is_as_planned(plan, owner):
                return False
            plan.changed, plan.added = [], []
            self._put_some(plan, rest[:SLICE])
        for at in range(SLICE, len(rest), SLICE):
            self._let_the_loop_follow()
            with self._lock:
                self._put_some(plan, rest[at : at + SLICE])
        plan.removed = [job for job in plan.removed if self._remove(job, owner)]
        return True

    def _is_as_planned(self, plan: _Plan, owner: str) -> bool:
        """Return whether the same jobs are there, still the owner's, and no start has passed."""
        registry, todo = self._registry, [*plan.changed, *plan.added]
        if any(registry.find(each.spec.id) is not each.present for each in todo):
            return False
        if any(registry.find(job.id) is not job or registry.updates.is_asked(job) for job in plan.unchanged):
            return False
        present = [*plan.unchanged, *(each.present for each in plan.changed if each.present is not None)]
        if not all(_is_owned(registry, job, owner) for job in present):
            return False
        dated = [each for each in todo if isinstance(each.schedule, At)]
        return all(registry.has_start(each.spec.id, each.schedule, each.policy) for each in dated)

    def _put_some(self, plan: _Plan, some: list[_Ready]) -> None:
        for ready in some:
            try:
                self._put(plan, ready)
            except (SchedulerError, LookupError, ValueError) as exc:
                _refuse(ready.index, exc)

    def _put(self, plan: _Plan, ready: _Ready) -> None:
        spec, policy, registry = ready.spec, ready.policy, self._registry
        present = registry.find(spec.id)
        if present is not None:
            _refuse_owner(registry, present, policy.owner)
        add = registry.add if policy.agents is None else registry.add_parted
        can_stay = present is None or registry.may_become(present, policy, is_stored=ready.task is not None)
        try:
            add(
                spec.id, ready.schedule, None, policy, "update" if can_stay else "replace", ready.task, ready.func,
                ready.call, spec.args, spec.kwargs, spec.name, spec.tags,
            )  # fmt: skip
        except InvalidJob:
            if registry.has_start(spec.id, ready.schedule, policy):
                raise
            _note_ended(plan, spec, present)
        else:
            (plan.added if present is None else plan.changed).append(ready)

    def _remove(self, job: Job, owner: str) -> bool:
        with self._lock:
            if self._registry.find(job.id) is not job or not _is_owned(self._registry, job, owner):
                return False
            job.remove()
        return True

    def _let_the_loop_follow(self) -> None:
        """Wait until the loop has done its part: all at once, it would start other jobs late."""
        if not self._loop.is_here:
            followed = Event()
            self._loop.call(followed.set)
            followed.wait(PATIENCE_S)


def _by_id(specs: Iterable[JobSpec]) -> dict[str, JobSpec]:
    if isinstance(specs, (str, bytes)) or not isinstance(specs, Iterable):
        msg = f"specs must be a list of JobSpecs, not {shown(specs)}"
        raise InvalidJob(msg)
    found: dict[str, JobSpec] = {}
    for index, spec in enumerate(specs):
        id = getattr(spec, "id", None)
        if id in found:
            first = list(found).index(id)
            msg = f"jobs[{index}]: its id {id!r} is that of jobs[{first}] too"
            raise DuplicateJob(msg)
        found[id if isinstance(id, str) else f"#{index}"] = spec
    return found


def _note_ended(plan: _Plan, spec: JobSpec, present: Job | None) -> None:
    if present is not None:
        msg = f"schedule: {spec.schedule} has no start after now, and the job has others: leave it out to remove it"
        raise InvalidJob(msg)
    plan.ended.append(spec.id)


def _refuse(index: int, error: Exception) -> NoReturn:
    if isinstance(error, InvalidJob):
        error.path = ".".join(filter(None, (f"jobs[{index}]", error.path or path_of(str(error)))))
    refuse(index, error)


def _policy_of(registry: PartedRegistry, job: Job) -> Policy:
    """Return the policy after changes that other threads have asked for."""
    return registry.updates.foreseen(job).policy if registry.updates.is_asked(job) else job.policy


def _is_owned(registry: PartedRegistry, job: Job, owner: str | None) -> bool:
    policy = _policy_of(registry, job)
    return policy.owner == owner and not policy.is_part


def _refuse_owner(registry: PartedRegistry, job: Job, owner: str | None) -> None:
    if _is_owned(registry, job, owner):
        return
    other, is_part = _policy_of(registry, job).owner, job.policy.is_part
    whose = "code" if other is None else repr(other)
    what = f"is a part of job {job.policy.place!r}" if is_part else f"belongs to {whose}"
    msg = f"job {job.id!r} {what}, not to {owner!r}: change it there, or choose another id"
    error = WrongOwner(msg)
    error.owner = other
    raise error
