"""Jobs that several nodes run. Such a job, the whole, is on no node itself. It has parts, which are jobs.

    s.add("backup", "@daily", id="backup", agents=3)      backup#1, backup#2, backup#3   on one node each
    s.add("sweep", "@hourly", id="sweep", agents="all")   sweep@web-1, sweep@web-2   on the nodes of these names

A verb of the whole acts on each known part, in the same commit. A node that comes later adds its own part. Two nodes
may write at the same moment, so a part's node compares it with a changed whole a little later. A node that takes up a
dead node's part removes it if the store lacks the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from logging import getLogger
from typing import Any, Final, assert_never

from attrs import evolve

from schedule import Schedule, ScheduleError
from timerqueue import Lifecycle, LifecycleError

from .._jobs import AskedRun, Call, Job, Tasks, answer_together
from .._loop import Core
from .._placement import EVERY_AGENT, OfAgent, OneOf, fits, read_part
from .._plan import Start
from .._shape import APART, SomeSchedule, args_of, schedule_of
from .._values import Pause, Policy, SchedulerError
from .conflict import OnConflict, duplicate
from .new_jobs import refuse_without_id
from .registry import Registry

logger = getLogger(__name__)

PARTS_LAG_S: Final = 1.0
"""Seconds. The node that changed a whole has changed its parts meanwhile."""

Part = OneOf | OfAgent
_Add = Callable[[Part, OnConflict], Job]

_OF_PART: Final[Mapping[OnConflict, OnConflict]] = {
    "error": "keep", "keep": "keep", "update": "update", "replace": "replace",
}  # fmt: skip


class PartedRegistry(Registry):
    _new: dict[str, OnConflict]

    def __init__(self, core: Core, lifecycle: Lifecycle, tasks: Tasks, *, has_store: bool) -> None:
        super().__init__(core, lifecycle, tasks, has_store=has_store)
        self._new = {}
        self._without_whole: dict[str, float] = {}
        self._look: Callable[[], object] = _nothing
        self._jobs.watch_parts(self.whole_or_part_gone)

    def add_parted(  # noqa: PLR0917 - as for `add`
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
        """Add a whole with its parts. Raises as Scheduler.add does."""
        self._jobs.check_placement(policy, is_stored=task is not None)
        if id is None:
            refuse_without_id(task)
            id = ""  # `add` refuses it
        schedule, args = schedule_of(schedule), args_of(args)
        tags = (tags,) if isinstance(tags, str) else tuple(tags)
        before = self._by_id.get(id)
        for part in numbered(policy):
            self._refuse_stranger(id, part)
        job = self.add(id, schedule, start, policy, on_conflict, task, func, call, args, kwargs, name, tags)
        if job is before and on_conflict == "keep":
            return job

        def add(part: Part, how: OnConflict) -> Job:
            own = policy_of_part(policy, job.id, part)
            return self.add(
                id_of_part(job.id, part), schedule, start, own, how, task, func, call, args, kwargs, name, tags
            )

        if self.early.is_waiting:
            self._new[job.id] = on_conflict
        try:
            self._add_parts(job, add, _OF_PART[on_conflict])
        except SchedulerError:  # for example, the id of a part may be too long
            if job is not before:
                self.remove(job)
            raise
        return job

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
        parts = numbered(policy)
        for part in parts:
            self._refuse_stranger(id, part)
        for part in parts[-1:]:  # the longest id
            own = policy_of_part(policy, id, part)
            super().check_new(id_of_part(id, part), schedule, own, task, func, call, args, kwargs, name, tags)
        return super().check_new(id, schedule, policy, task, func, call, args, kwargs, name, tags)

    def find(self, id: str) -> Job | None:
        return self._by_id.get(id)

    def owned_by(self, owner: str) -> list[Job]:
        """Leave out parts: they go with the whole job."""
        return [job for job in self._jobs.jobs() if job.policy.owner == owner and not job.policy.is_part]

    def _refuse_stranger(self, id: str, part: Part) -> None:
        found = self._by_id.get(id_of_part(id, part))
        if found is not None and not (found.policy.is_part and found.policy.place == id):
            raise duplicate(found.id)

    def _add_parts(self, job: Job, add: _Add, how: OnConflict) -> None:
        parts: list[Part] = [*numbered(job.policy), *self._of_agents(job)]
        for part in parts:
            self._jobs.note_part(add(part, how))
        for known in self.parts_of(job):
            found = read_part(known.policy.where or "")
            if isinstance(found, OfAgent) and found not in parts:
                add(found, how)

    def _of_agents(self, job: Job) -> Iterator[OfAgent]:
        view = self._jobs.ownership.view
        if job.policy.agents == EVERY_AGENT and view is not None:
            for peer in view.peers:
                part = OfAgent(job.policy.where, peer.name)
                if fits(peer, part.text):
                    yield part

    def parts_of(self, job: Job) -> list[Job]:
        if job.policy.agents is None:
            return []
        return self._jobs.parts_of(job.id)

    def ids_of(self, id: str | None) -> list[str | None]:
        job = None if id is None else self._jobs.find(id)
        return [id] if job is None or job.policy.agents is None else [part.id for part in self.parts_of(job)]

    # -- verbs of the whole
    # -----------------------------------------------------------------------------------------------

    def remove(self, job: Job) -> None:
        parts = self.parts_of(job)
        super().remove(job)
        for part in parts:
            super().remove(part)

    def pause(self, job: Job, reason: str | None, until: datetime | None = None) -> None:
        super().pause(job, reason, until)
        for part in self.parts_of(job):
            super().pause(part, reason, until)

    def resume(self, job: Job) -> None:
        super().resume(job)
        for part in self.parts_of(job):
            super().resume(part)

    def run_now(self, job: Job) -> AskedRun:
        parts = self.parts_of(job)
        if not parts:
            return super().run_now(job)
        whole = AskedRun(job.id, self._open, self._lifecycle)
        answer_together(whole, [super(PartedRegistry, self).run_now(part) for part in parts])
        return whole

    def set_next_start(self, job: Job, at: datetime) -> None:
        for each in self.parts_of(job) or [job]:
            super().set_next_start(each, at)

    def skip(self, job: Job) -> None:
        for each in self.parts_of(job) or [job]:
            super().skip(each)

    def supersede(self, job: Job) -> None:
        for each in self.parts_of(job) or [job]:
            super().supersede(each)

    def update(self, job: Job, schedule: SomeSchedule | None, changes: Mapping[str, Any]) -> None:
        parts = self.parts_of(job)
        if parts:
            changes = {name: list(value) if isinstance(value, Iterator) else value for name, value in changes.items()}
        super().update(job, schedule, changes)
        for part in parts:
            super().update(part, schedule, changes)

    def why_with_nobody(self, job: Job) -> str | None:
        if job.policy.agents is None:
            return super().why_with_nobody(job)
        errors = (super(PartedRegistry, self).why_with_nobody(part) for part in self.parts_of(job))
        return next(filter(None, errors), None) or super().why_with_nobody(job)

    # -- on the loop ---------------------------------------------------------------------------------------------------

    def begin_parts(self, look: Callable[[], object]) -> None:
        """Update all parts: the store has been read. `look`: reads the latest changes of others."""
        self._look = look
        for id, how in self._new.items():
            job = self._jobs.find(id)
            if job is not None and how in {"update", "replace"}:
                self._renew_parts(job, _OF_PART[how])
        self._new = {}
        for job in self._jobs.jobs():
            if job.policy.agents is not None:
                self.see_whole(job)
            elif job.policy.is_part:
                self.see_part(job)

    def _renew_parts(self, job: Job, how: OnConflict) -> None:
        policy = job.policy
        for old in self.parts_of(job):
            part = read_part(old.policy.where or "")
            match part:
                case OneOf():
                    is_still = part in numbered(policy)
                case OfAgent():
                    is_still = policy.agents == EVERY_AGENT and part.labels == policy.where
                case None:
                    continue
                case _ as never:
                    assert_never(never)
            if not is_still:
                super().remove(old)
            elif isinstance(part, OfAgent):
                self._add_like(job, part, how)

    def drop_surplus(self, job: Job) -> None:
        """Remove numbered parts above the number of nodes."""
        for part in self.parts_of(job):
            found = read_part(part.policy.where or "")
            if isinstance(found, OneOf) and found.number > len(numbered(job.policy)):
                super().remove(part)

    def see_whole(self, job: Job) -> None:
        view = self._jobs.ownership.view
        us = next((peer for peer in view.peers if peer.epoch == view.me), None) if view is not None else None
        if us is None or job.policy.agents != EVERY_AGENT or job.unfit is not None:
            return
        part = OfAgent(job.policy.where, us.name)
        id = id_of_part(job.id, part)
        if fits(us, part.text) and self._jobs.find(id) is None:
            try:
                new = self._add_like(job, part, "keep")
            except (SchedulerError, ScheduleError) as exc:  # for example, its schedule may be over
                logger.info("job %r gets no part on this node: %s", job.id, exc)
                return
            if job.paused_by is not None:
                self._core.pausing.pause(new, job.paused_by.reason, job.paused_by.until)

    def see_part(self, part: Job) -> None:
        """Note a part without a whole: its maker may have died as the whole was removed."""
        id = part.policy.place or ""
        if self._jobs.find(id) is None:
            if not self._without_whole:
                self._later(self._look_for_wholes)
            self._without_whole[id] = self._core.monotonic()

    def _look_for_wholes(self) -> None:
        self._without_whole = {id: at for id, at in self._without_whole.items() if self._jobs.find(id) is None}
        if self._without_whole:
            self._look()

    def has_followed(self, asked_at: float) -> None:
        """Remove parts without a whole. `asked_at`: earlier changes of others are known here."""
        if not self._without_whole:
            return
        for id, seen_at in list(self._without_whole.items()):
            if seen_at < asked_at:
                del self._without_whole[id]
                self._clear(id)
        if self._without_whole:
            self._later(self._look_for_wholes)

    def whole_changed(self, job: Job, was_paused: Pause | None) -> None:
        """Let our parts follow the changed whole a little later."""
        self._later(self._follow, job.id, _said(job.paused_by) != _said(was_paused))
        self.see_whole(job)

    def whole_or_part_gone(self, id: str) -> None:
        """Remove our parts without a whole, or a whole without parts, a little later."""
        self._later(self._clear, id)

    def _later(self, func: Callable[..., object], *args: object) -> None:
        with suppress(LifecycleError):  # the queue has stopped
            self._queue.push(self._core.monotonic() + PARTS_LAG_S, func, *args)

    def _follow(self, id: str, is_paused_anew: bool) -> None:  # noqa: FBT001 - a call that is kept
        """A part's own pause stays unless the whole's changes."""
        job = self._jobs.find(id)
        if job is None or job.unfit is not None:
            return
        for part in self.parts_of(job):
            found = read_part(part.policy.where or "")
            if part.is_elsewhere or found is None or part.unfit is not None:
                continue
            if not _is_like(part, job, found):
                self._add_like(job, found, "update")
            pause = job.paused_by
            if is_paused_anew and _said(pause) != _said(part.paused_by):
                if pause is None:
                    super().resume(part)
                else:
                    super().pause(part, pause.reason, pause.until)

    def _clear(self, id: str) -> None:
        job = self._jobs.find(id)
        if job is None:
            for part in self._jobs.parts_of(id):
                if not part.is_elsewhere or self._jobs.agent_of(part) is None:
                    super().remove(part)
        elif job.policy.agents is not None and job.unfit is None and not self.parts_of(job) and self._is_over(job):
            super().remove(job)

    def _is_over(self, job: Job) -> bool:
        now_us = self._core.timeline.us(self._core.monotonic(), steady=job.planner.steady)
        return not job.planner.waits_for_end and job.planner.first(job.key, now_us) is None

    def _add_like(self, job: Job, part: Part, how: OnConflict) -> Job:
        policy = policy_of_part(job.policy, job.id, part)
        new = self.add(
            id_of_part(job.id, part), job.schedule, None, policy, how, job.task, job.func, job.call, job.args,
            job.kwargs, job.name, job.tags,
        )  # fmt: skip
        self._jobs.note_part(new)
        return new


def numbered(policy: Policy) -> list[OneOf]:
    if not isinstance(policy.agents, int):
        return []
    return OneOf(policy.where, 1, policy.agents, policy.apart or APART).siblings()


def id_of_part(id: str, part: Part) -> str:
    return f"{id}#{part.number}" if isinstance(part, OneOf) else f"{id}@{part.agent}"


def policy_of_part(policy: Policy, id: str, part: Part) -> Policy:
    return evolve(policy, agents=None, apart=None, place=id, where=part.text)


def _is_like(part: Job, job: Job, found: Part) -> bool:
    wanted = evolve(job.definition, policy=policy_of_part(job.policy, job.id, found))
    return part.task == job.task and part.schedule == job.schedule and part.definition == wanted


def _nothing() -> None:
    """Do nothing."""


def _said(pause: Pause | None) -> tuple[str | None, datetime | None] | None:
    """Leave out the beginning of a pause, which differs from node to node."""
    return None if pause is None else (pause.reason, pause.until)
