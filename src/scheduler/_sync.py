"""A whole set of jobs in one call: what differs is changed, and the owner's other jobs are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Event
from typing import Any, Final

from attrs import Factory, define, frozen

from schedule import parse
from timerqueue import LifecycleError

from ._control import PartedRegistry, refuse
from ._jobs import Call, Job, Tasks, is_inline, is_like
from ._loop import Loop
from ._shape import SHARED_POLICIES, JobSpec, path_of, policy_of
from ._values import DuplicateJob, InvalidJob, Policy, SchedulerError, WrongOwner, shown

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

    spec: JobSpec
    policy: Policy
    task: str | None
    func: Callable[..., Any]
    call: Call
    present: Job | None


@define
class _Plan:
    added: list[_Ready] = Factory(list)
    changed: list[_Ready] = Factory(list)
    unchanged: list[str] = Factory(list)
    removed: list[Job] = Factory(list)
    ended: list[str] = Factory(list)

    def told(self) -> Synced:
        return Synced(
            added=tuple(each.spec.id for each in self.added),
            changed=tuple(each.spec.id for each in self.changed),
            unchanged=tuple(self.unchanged),
            removed=tuple(job.id for job in self.removed),
            ended=tuple(self.ended),
        )


class Sync:
    """Any thread. Everything is checked before anything changes."""

    def __init__(self, registry: PartedRegistry, loop: Loop, tasks: Tasks, *, has_store: bool) -> None:
        self._registry = registry
        self._loop = loop
        self._tasks = tasks
        self._has_store = has_store
        self._owned: dict[tuple[Policy, str], Policy] = {}

    def sync(self, specs: Iterable[JobSpec], owner: str, *, prune: bool, dry_run: bool) -> Synced:
        """See `Scheduler.sync`."""
        if self._registry.early.is_waiting:
            msg = "cannot sync yet: it compares with the jobs in the store, which are read as the scheduler starts"
            raise LifecycleError(msg)
        self._registry.refuse_if_stopped()
        plan = self._plan(_by_id(specs), owner)
        if prune:
            kept = {*plan.unchanged, *plan.ended, *(each.spec.id for each in (*plan.added, *plan.changed))}
            plan.removed = [job for job in self._registry.owned_by(owner) if job.id not in kept]
        if not dry_run:
            self._carry_out(plan)
        return plan.told()

    def _plan(self, specs: dict[str, JobSpec], owner: str) -> _Plan:
        plan = _Plan()
        for index, spec in enumerate(specs.values()):
            try:
                self._place(plan, spec, owner)
            except (SchedulerError, LookupError, ValueError) as exc:
                if isinstance(exc, InvalidJob):
                    exc.path = ".".join(filter(None, (f"jobs[{index}]", exc.path or path_of(str(exc)))))
                refuse(index, exc)
        return plan

    def _place(self, plan: _Plan, spec: JobSpec, owner: str) -> None:
        policy = self._policy_of(spec, owner)
        present = self._registry.find(spec.id)
        if present is not None:
            _refuse_owner(present, owner)
        task, func, call = self._resolved(spec)
        if present is not None and self._is_same(present, spec, policy, func, call):
            plan.unchanged.append(spec.id)
            return
        ready = _Ready(spec, policy, task, func, call, present)
        if self._registry.check_new(
            spec.id, parse(spec.schedule), policy, task, func, call, spec.args, spec.kwargs, spec.name, spec.tags
        ):
            (plan.added if present is None else plan.changed).append(ready)
        elif present is None:
            plan.ended.append(spec.id)
        else:
            msg = f"schedule: {spec.schedule} has no start after now, and the job has others: leave it out to remove it"
            raise InvalidJob(msg)

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

    def _carry_out(self, plan: _Plan) -> None:
        for job in plan.removed:
            job.remove()
        for index, ready in enumerate((*plan.changed, *plan.added), start=1):
            self._put(ready)
            if index % SLICE == 0:
                self._let_the_loop_follow()

    def _put(self, ready: _Ready) -> None:
        spec, policy, registry = ready.spec, ready.policy, self._registry
        present = registry.find(spec.id)
        if present is not None:
            _refuse_owner(present, policy.owner)
        add = registry.add if policy.agents is None else registry.add_parted
        can_stay = present is None or registry.may_become(present, policy, is_stored=ready.task is not None)
        add(
            spec.id, parse(spec.schedule), None, policy, "update" if can_stay else "replace", ready.task, ready.func,
            ready.call, spec.args, spec.kwargs, spec.name, spec.tags,
        )  # fmt: skip

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


def _refuse_owner(job: Job, owner: str | None) -> None:
    other = job.policy.owner
    if other == owner and not job.policy.is_part:
        return
    whose = "code" if other is None else repr(other)
    what = f"is a part of job {job.policy.place!r}" if job.policy.is_part else f"belongs to {whose}"
    msg = f"job {job.id!r} {what}, not to {owner!r}: change it there, or choose another id"
    error = WrongOwner(msg)
    error.owner = other
    raise error
