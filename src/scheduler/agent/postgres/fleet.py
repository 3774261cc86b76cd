"""The fleet: a job for each (probe, target) on a scheduler, an outcome for each (probe, target, database) due."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from logging import getLogger
from typing import Final
from zlib import crc32

import anyio
from anyio.abc import TaskGroup
from anyio.from_thread import run_sync
from anyio.lowlevel import current_token
from attrs import evolve, frozen

from schedule import Every, Missed
from scheduler import Job, JobNotFound, Overlap, RunMissed, Scheduler, current_run
from timerqueue import Clock

from ..checks import Resolver
from . import burst
from .budget import Budget
from .contract import MetricStore, OutcomeKind, Probe, ProbeOutcome, Row, Sample, Scope
from .databases import Databases
from .identity import IDENTITY, identity_of
from .member import Member
from .reach import Breaker, Connections, Dialler, Reach, Request, Result
from .recorder import Recorder
from .target import PostgresTarget

logger = getLogger(__name__)

TASK: Final = "probe"
"""The name of the task, and a tag of the jobs."""
SOON: Final = 10.0
"""Seconds over which the first starts of targets are spread."""
FLUSH_WITHIN: Final = 5.0
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class Due:
    """A probe that is due on a target: `at`, UTC seconds, and begun `lateness` seconds later."""

    member: Member
    probe: Probe
    at: float
    lateness: float


class Fleet:
    """All targets with their probes. Use it as `async with fleet.running():` around the run of its scheduler.

    `is_once`: that run is `run_once`, for which all jobs have to be there when the body begins.
    """

    def __init__(
        self,
        targets: Sequence[PostgresTarget],
        probes: Mapping[str, Probe],
        scheduler: Scheduler,
        *,
        store: MetricStore,
        resolver: Resolver,
        clock: Clock,
        is_once: bool = False,
    ) -> None:
        self._is_once = is_once
        self.probes = probes
        self.members: dict[str, Member] = {}
        self._scheduler = scheduler
        self._clock = clock
        self._resolver = resolver
        self._recorder = Recorder(store, clock.monotonic)
        self._group: TaskGroup | None = None
        self._pairs: dict[str, tuple[Member, Probe]] = {}
        """What the jobs are for, by their ids."""
        for target in targets:
            self.members[target.name] = self._member(target)
            self._share(self.members[target.name])
        scheduler.register(TASK, self.run)
        scheduler.listen(self._missed, RunMissed)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Add the jobs, and have what they need until the body ends: connections, the store's thread."""
        self._recorder.start()
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                if self._is_once:
                    await self._add_jobs()
                else:
                    group.start_soon(self._add_jobs)
                yield
                for member in self.members.values():
                    member.reach.close()
                with anyio.move_on_after(FLUSH_WITHIN):
                    while not all(member.reach.is_idle for member in self.members.values()):
                        await self._clock.sleep(0.02)
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                lost = await anyio.to_thread.run_sync(self._recorder.close, FLUSH_WITHIN)
            if lost:
                logger.warning("%d records of probes were not stored within %g s", lost, FLUSH_WITHIN)

    async def run(self, target: str, probe: str) -> None:
        """Run a probe on all databases of a target. Each has its outcome handed to the recorder as soon as it ends."""
        member, found = self.members[target], self.probes[probe]
        at = current_run().due.timestamp()
        due = Due(member, found, at, max(self._clock.wall() - at, 0.0))
        member.reach.connections.sweep()
        if member.usual and self._clock.monotonic() >= member.burst_until:
            self._end_burst(member)
        if not member.budget.admits(
            probe, at, burst.EVERY if probe in member.usual else member.target.choice(found)[1]
        ):
            self._record(due, None, self._stretched(member, probe))
            return
        databases: Sequence[str | None] = (None,)
        if found.scope is Scope.DATABASE:
            known = await member.databases.all()
            if isinstance(known, Result):
                self._record(due, None, known)
                return
            databases = known
        await self._ask(due, databases)

    async def _ask(self, due: Due, databases: Sequence[str | None]) -> None:
        left, done = len(databases), anyio.Event()
        if not left:
            return

        def ended(request: Request) -> None:
            nonlocal left
            assert request.result is not None
            self._record(due, request.database, request.result)
            left -= 1
            if not left:
                done.set()

        now = self._clock.monotonic()
        until = now + due.member.target.wait
        requests = [Request(due.probe, each, now, until, ended) for each in databases]
        try:
            for request in requests:
                due.member.reach.ask(request)
            await done.wait()
        finally:
            due.member.reach.give_up(requests)

    def _record(self, due: Due, database: str | None, result: Result) -> None:
        target = due.member.target.name
        outcome = ProbeOutcome(
            probe=due.probe.name,
            target=target,
            database=database,
            due=due.at,
            kind=result.kind,
            lateness=due.lateness,
            failure=result.failure,
            reason=result.reason,
            waited=result.waited,
            executed=result.executed,
            rows=len(result.rows),
            cost=result.cost,
        )
        has_rows = result.kind in {OutcomeKind.STORED, OutcomeKind.PARTIAL}
        sample = Sample(due.probe, target, database, due.at, result.rows, result.left_out) if has_rows else None
        due.member.ends[outcome.kind] += 1
        self._recorder.add(sample, outcome)
        identity = identity_of(due.probe, result.rows)
        if identity is not None:
            self._identified(due.member, identity, outcome)
        now = self._clock.monotonic()
        due.member.budget.spend(due.probe.name, result.cost, now)
        reason = burst.calls_for_burst(due.probe, result.rows)
        if reason is not None:
            self._begin_burst(due.member, reason, now)
        due.member.tell(outcome)

    def _identified(self, member: Member, identity: Row, found_by: ProbeOutcome) -> None:
        """Have it stored which server this is, and find out whose places it shares."""
        sample = Sample(IDENTITY, member.target.name, None, found_by.due, (identity,))
        self._recorder.add(sample, evolve(found_by, probe=IDENTITY.name, rows=1, cost=0.0))
        if member.identify(identity):
            self._share(member)

    def _share(self, member: Member) -> None:
        """Have targets that are one server, by its address or by what it says of itself, share one limit."""
        connections = member.reach.connections
        same = [
            each.reach.connections for each in self.members.values() if each is not member and each.is_same_as(member)
        ]
        if not any(each.places is connections.places for each in same):
            connections.places.part(connections)
        for each in same:
            connections.share(each)

    def _member(self, target: PostgresTarget) -> Member:
        dialler = Dialler(target.server, self._resolver, self._clock)
        connections = Connections(dialler, target.limit, self._spawn, self._clock)
        reach = Reach(connections, Breaker(), self._spawn, self._clock)
        return Member(target, reach, Databases(target, reach, self._clock), Budget(target.budget))

    def _spawn(self, func: Callable[..., object], *args: object) -> None:
        assert self._group is not None, "nothing is asked of a server before the fleet runs"
        self._group.start_soon(func, *args)  # type: ignore[arg-type] # a coroutine function

    @staticmethod
    def _stretched(member: Member, probe: str) -> Result:
        budget = member.budget
        reason = (
            f"budget: {budget.load:.2%} of a core, {budget.share:.2%} allowed; stretched {budget.factors[probe]} times"
        )
        return Result(kind=OutcomeKind.SKIPPED, reason=reason)

    def _begin_burst(self, member: Member, reason: str, now: float) -> None:
        """Look closely for a minute from now, if the budget has room for that."""
        if member.budget.load > member.budget.share:
            return
        member.burst_until = now + burst.LASTS
        for probe in burst.CLOSE:
            job = self._job(member, probe)
            if job is not None and probe not in member.usual:
                member.usual[probe] = job.schedule
                job.update(schedule=Every(burst.EVERY, anchor=EPOCH))
                logger.warning("%s: %s every second for a minute: %s", member.target.name, probe, reason)

    def _end_burst(self, member: Member) -> None:
        """Give the probes of a burst their schedules back, with their places."""
        for probe, schedule in member.usual.items():
            job = self._job(member, probe)
            if job is not None:
                job.update(schedule=schedule)
        member.usual.clear()

    def _job(self, member: Member, probe: str) -> Job | None:
        try:
            return self._scheduler.get(job_id(member.target.name, probe))
        except JobNotFound:
            return None

    # Jobs

    async def _add_jobs(self) -> None:
        """Add a job for each enabled probe of each target, to start where its last sample leaves off."""
        pairs = [
            (member.target, probe)
            for member in self.members.values()
            for probe in self.probes.values()
            if member.target.is_enabled and member.target.choice(probe)[0]
        ]
        lasts = await self._lasts([(target.name, probe.name) for target, probe in pairs])
        for (target, probe), last in zip(pairs, lasts, strict=True):
            self._add_job(target, probe, last)

    async def _lasts(self, pairs: list[tuple[str, str]]) -> list[float | None]:
        def ask(store: MetricStore) -> list[float | None]:
            return [store.last(*pair) for pair in pairs]

        found = await self._asked(ask)
        return [None] * len(pairs) if found is None else found

    async def _asked(self, ask: Callable[[MetricStore], list[float | None]]) -> list[float | None] | None:
        answers: list[list[float | None] | None] = []
        done, token = anyio.Event(), current_token()

        def answered(found: list[float | None] | None) -> None:
            answers.append(found)
            run_sync(done.set, token=token)

        self._recorder.call(ask, answered)
        await done.wait()
        return answers[0]

    def _add_job(self, target: PostgresTarget, probe: Probe, last: float | None) -> Job:
        _, every = target.choice(probe)
        self._pairs[job_id(target.name, probe.name)] = self.members[target.name], probe
        return self._scheduler.add(
            TASK,
            Every(every),
            id=job_id(target.name, probe.name),
            args=(target.name, probe.name),
            overlap=Overlap.SKIP,
            missed=Missed.SKIP,
            grace=max(every / 10, 1.0),
            start=first_start(target.name, probe, every, last, self._clock.wall()),
            tags=(TASK, f"postgres:{target.name}", *target.tags),
            durable=False,
            on_conflict="replace",
        )

    def _missed(self, event: RunMissed) -> None:
        """Record ticks that will have no run: one outcome for each database that is known."""
        pair = self._pairs.get(event.job_id)
        if pair is not None:
            self._record_missed(*pair, event)

    def _record_missed(self, member: Member, probe: Probe, event: RunMissed) -> None:
        databases = member.databases.known if probe.scope is Scope.DATABASE else (None,)
        step = (event.last_due - event.first_due) / max(event.count - 1, 1)
        result = Result(kind=OutcomeKind.SKIPPED, reason=event.reason.value)
        for number in range(event.count):
            due = Due(member, probe, event.first_due + number * step, 0.0)
            for database in databases or (None,):
                self._record(due, database, result)


def job_id(target: str, probe: str) -> str:
    """Return the id of the job of a probe on a target."""
    return f"{TASK}:{target}:{probe}"


def first_start(target: str, probe: Probe, every: float, last: float | None, now: float) -> datetime:
    """Return when a probe starts: an interval after its last sample, or soon if that has passed.

    A sample of the future, by a clock that was set back, counts as one of now. All cheap probes of a target that have
    none start at the same instant, so that they share connections from then on; a costly one by itself.
    """
    if last is not None and (coming := min(last, now) + every) > now:
        return datetime.fromtimestamp(coming, UTC)
    spread = _share(target) * min(SOON, every)
    if not probe.is_cheap:
        spread += _share(f"{target} {probe.name}") * min(SOON, every)
    return datetime.fromtimestamp(now + spread, UTC)


def _share(text: str) -> float:
    """Return a number from 0 to 1 that is always the same for the same text."""
    return crc32(text.encode()) / 2**32
