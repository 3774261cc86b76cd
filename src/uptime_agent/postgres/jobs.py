"""A fleet's jobs: one for each enabled probe on each target.

A pair of target and probe keeps its phase: an interval that changes back returns to its grid.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final
from zlib import crc32

from anyio.lowlevel import checkpoint
from attrs import define

from schedule import Every, Missed
from scheduler import Job, JobNotFound, Overlap, Scheduler
from timerqueue import Clock

from .changes import compared
from .choices import Plan
from .contract import Probe, Scope
from .member import Member
from .target import PostgresTarget

TASK: Final = "probe"
TOGETHER: Final = 50
"""Jobs that are added before other tasks get a turn."""
SPREAD_S: Final = 10.0
"""Seconds that spread first starts."""

Key = tuple[str, str]
"""Target and probe."""
Lasts = Callable[[list[Key]], Awaitable[list[float | None]]]
"""Last samples' due instants, in UTC seconds."""


@define(eq=False)
class Pair:
    """A probe on a target. `anchor`: an instant of its grid, UTC; None: no job yet."""

    member: Member
    plan: Plan
    anchor: datetime | None = None


class ProbeJobs:
    """Jobs by target and probe."""

    def __init__(self, scheduler: Scheduler, clock: Clock, probes: Mapping[str, Probe], lasts: Lasts) -> None:
        self.pairs: dict[Key, Pair] = {}
        self._scheduler = scheduler
        self._clock = clock
        self._probes = probes
        self._lasts = lasts

    def follow(self, before: Collection[str], after: Sequence[Member]) -> tuple[Key, ...]:
        """Plan jobs for enabled probes; return new pairs, for `begin`. `before`: targets with jobs."""
        known = {key: pair.plan for key, pair in self.pairs.items() if key[0] in before}
        members = {member.target.name: member for member in after}
        targets = [member.target for member in after]
        plans = {(each.name, name): each.plan(probe) for each in targets for name, probe in self._probes.items()}
        changes = compared(known, {key: plan for key, plan in plans.items() if plan.is_enabled})
        for key in changes.removed:
            self._drop(key)
        for key in changes.changed:
            self._change(self.pairs[key], plans[key])
        for name, probe in changes.added:
            self.pairs[name, probe] = Pair(members[name], plans[name, probe])
        for target in targets:
            self._tag(target)
        return changes.added

    async def begin(self, keys: Sequence[Key]) -> None:
        """Add missing jobs, continuing after last samples."""
        new = {key: pair for key in keys if (pair := self.pairs.get(key)) is not None and pair.anchor is None}
        lasts = await self._lasts(list(new))
        for number, ((key, pair), last) in enumerate(zip(new.items(), lasts, strict=True)):
            if self.pairs.get(key) is pair:  # it is still wanted
                self._add_job(pair, last)
            if not (number + 1) % TOGETHER:
                await checkpoint()

    def of(self, target: str, probe: str) -> Job | None:
        """Return a probe's job, if any."""
        try:
            return self._scheduler.get(job_id(target, probe))
        except JobNotFound:
            return None

    def pair_of(self, id: str) -> Pair | None:
        """Return the job's pair, if any."""
        task, _, rest = id.partition(":")
        target, _, probe = rest.rpartition(":")
        return self.pairs.get((target, probe)) if task == TASK else None

    def _drop(self, key: Key) -> None:
        """End a probe, on the server too."""
        member, probe = self.pairs.pop(key).member, key[1]
        with suppress(JobNotFound):  # it has not been added yet
            self._scheduler.remove(job_id(*key))
        member.usual.pop(probe, None)
        member.budget.factors.pop(probe, None)
        for told in [each for each in member.told if each[0] == probe]:
            del member.told[told]

    def _change(self, pair: Pair, plan: Plan) -> None:
        before, pair.plan = pair.plan, plan
        if pair.anchor is None or plan.every == before.every:
            return
        start = _slot(pair.anchor, plan.every, self._clock.wall())
        member, probe = pair.member, plan.probe.name
        if probe in member.usual:
            member.usual[probe] = Every(plan.every, anchor=start)
        elif (job := self.of(member.target.name, probe)) is not None:
            job.update(schedule=Every(plan.every), start=start, grace=_grace(plan.every))

    def _tag(self, target: PostgresTarget) -> None:
        for probe in self._probes:
            job = self.of(target.name, probe) if (target.name, probe) in self.pairs else None
            if job is not None and job.tags != frozenset(_tags(target)):
                job.update(tags=_tags(target))

    def _add_job(self, pair: Pair, last: float | None) -> None:
        target, plan = pair.member.target, pair.plan
        pair.anchor = first_start(target.name, plan.probe, plan.every, last, self._clock.wall())
        self._scheduler.add(
            TASK,
            Every(plan.every),
            id=job_id(target.name, plan.probe.name),
            args=(target.name, plan.probe.name),
            overlap=Overlap.SKIP,
            missed=Missed.SKIP,
            grace=_grace(plan.every),
            start=pair.anchor,
            tags=_tags(target),
            durable=False,
            on_conflict="replace",
        )


def job_id(target: str, probe: str) -> str:
    """Return the job's id."""
    return f"{TASK}:{target}:{probe}"


def _tags(target: PostgresTarget) -> tuple[str, ...]:
    return TASK, f"postgres:{target.name}", *target.tags


def _grace(every: float) -> float:
    return max(every / 10, 1.0)


def _slot(anchor: datetime, every: float, now: float) -> datetime:
    """The newest instant, not after `now`."""
    first = anchor.timestamp()
    return datetime.fromtimestamp(first + (now - first) // every * every, UTC)


def first_start(target: str, probe: Probe, every: float, last: float | None, now: float) -> datetime:
    """Return a probe's first start: an interval after its last sample, or soon.

    A sample from the future, after a clock was set back, counts as one of now. A target's cheap probes start together
    to share connections; so do costly ones of databases.
    """
    if last is not None and (coming := min(last, now) + every) > now:
        return datetime.fromtimestamp(coming, UTC)
    spread = _share(target) * min(SPREAD_S, every)
    if not probe.is_cheap:
        by = "databases" if probe.scope is Scope.DATABASE else probe.name
        spread += _share(f"{target} {by}") * min(SPREAD_S, every)
    return datetime.fromtimestamp(now + spread, UTC)


def _share(text: str) -> float:
    """A number from 0 to 1, fixed for each text."""
    return crc32(text.encode()) / 2**32
