"""The fleet: a job for each (probe, target), an outcome for each due database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from logging import getLogger
from typing import Final

import anyio
from anyio.abc import TaskGroup
from anyio.from_thread import run_sync
from anyio.lowlevel import current_token
from attrs import evolve, frozen

from schedule import Every
from scheduler import AlreadyStopped, MissedReason, RunMissed, Scheduler, current_run
from timerqueue import Clock

from ..checks import Resolver
from . import burst
from .changes import PlanChanges, compared
from .contract import MetricStore, OutcomeKind, Probe, ProbeOutcome, Row, Sample, Scope
from .identity import IDENTITY, identity_of
from .jobs import TASK, ProbeJobs
from .member import Member, MemberDeps, member_of
from .reach import CUT_OFF, ProbeRequest, Result, ServerReach, skipped
from .recorder import Recorder
from .storage import Drained, Spool
from .target import PostgresTarget

logger = getLogger(__name__)

FLUSH_WITHIN: Final = 5.0
LOOK_UP_WITHIN: Final = 2.0
"""Seconds. Then the first connections begin."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class Due:
    """A due probe. `at`: UTC seconds. `lateness`: seconds."""

    member: Member
    probe: Probe
    at: float
    lateness: float


class Fleet:
    """All targets with their probes. Use `async with fleet.running():` around its scheduler's run.

    `is_once`: all jobs exist before the body.
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
        spool: Spool | None = None,
        is_once: bool = False,
    ) -> None:
        self._is_once = is_once
        self.probes = probes
        self.members: dict[str, Member] = {}
        self._scheduler = scheduler
        self._clock = clock
        self._around = MemberDeps(resolver, self._spawn, clock)
        self._recorder = Recorder(store, spool, clock)
        self.report: Drained | None = None
        """None: not ended in time."""
        self._group: TaskGroup | None = None
        self._jobs = ProbeJobs(scheduler, clock, probes, self._lasts)
        self._left: list[Member] = []
        """Removed targets with unreleased connections."""
        self.follow(targets)
        scheduler.register(TASK, self.run)
        scheduler.listen(self._missed, RunMissed)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run jobs, connections and the store's thread."""
        self._recorder.start()
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                if self._is_once:
                    await self._begin(list(self._jobs.pairs))
                else:
                    group.start_soon(self._begin, list(self._jobs.pairs))
                try:
                    yield
                finally:
                    ways = self._close()
                with anyio.move_on_after(FLUSH_WITHIN):
                    while not all(reach.is_idle for reach in ways):
                        await self._clock.sleep(0.02)
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                self.report = await anyio.to_thread.run_sync(self._recorder.close, FLUSH_WITHIN)
            if self.report is None:
                logger.warning("the metric store did not end; in memory were %d records", self._recorder.waiting)

    def _close(self) -> list[ServerReach]:
        ways = [member.reach for member in (*self.members.values(), *self._left)]
        for reach in ways:
            reach.close()
        return ways

    def follow(self, targets: Sequence[PostgresTarget]) -> PlanChanges[str]:
        """Probe these targets and no others. Return the changes by target.

        A removed or disabled probe stops at once, on the server too. A changed interval keeps its phase.
        """
        wanted = {target.name: target for target in targets if target.is_enabled}
        changes = compared({name: member.target for name, member in self.members.items()}, wanted)
        for name in changes.removed:
            self._leave(self.members.pop(name))
        for name in changes.changed:
            left = self.members[name].become(wanted[name], self._around)
            if left is not None:
                self._leave(left)
                self._share(self.members[name])
        for name in changes.added:
            self.members[name] = member_of(wanted[name], self._around)
            self._share(self.members[name])
        after = [self.members[name] for name in (*changes.changed, *changes.added)]
        new = self._jobs.follow({*changes.changed, *changes.removed}, after)
        if new and self._group is not None:  # else they begin with the others
            self._group.start_soon(self._begin, new)
        return changes

    async def _begin(self, new: Sequence[tuple[str, str]]) -> None:
        """Add jobs once addresses are known: no first connection exceeds a shared limit."""
        if len(self.members) > 1:
            with anyio.move_on_after(LOOK_UP_WITHIN):
                async with anyio.create_task_group() as group:
                    for member in self.members.values():
                        group.start_soon(member.look_up, self._around)
            for member in list(self.members.values()):
                self._share(member)
        with suppress(AlreadyStopped):  # the agent stops meanwhile
            await self._jobs.begin(new)

    def _leave(self, member: Member) -> None:
        self._left = [each for each in self._left if not each.reach.is_idle]
        self._left.append(member)
        member.reach.close()

    async def run(self, target: str, probe: str) -> None:
        """Run a probe on a target's databases."""
        pair = self._jobs.pairs[target, probe]
        member, found = pair.member, pair.plan.probe
        at = current_run().due.timestamp()
        due = Due(member, found, at, max(self._clock.wall() - at, 0.0))
        member.reach.connections.sweep()
        if member.usual and self._clock.monotonic() >= member.burst_until:
            self._end_burst(member)
        if not member.budget.admits(probe, at, burst.SAMPLE_S if probe in member.usual else pair.plan.every):
            self._record_unasked(due, self._stretched(member, probe))
            return
        databases: Sequence[str | None] = (None,)
        if found.scope is Scope.DATABASE:
            known = await self._databases(due)
            if isinstance(known, Result):
                self._record_unasked(due, known)
                return
            databases = known
        await self._ask(due, databases)

    async def _ask(self, due: Due, databases: Sequence[str | None]) -> None:
        left, done = len(databases), anyio.Event()
        if not left:
            return

        def ended(request: ProbeRequest) -> None:
            nonlocal left
            assert request.result is not None
            self._record(due, request.database, request.result)
            left -= 1
            if not left:
                done.set()

        now = self._clock.monotonic()
        until = now + due.member.target.wait
        requests = [ProbeRequest(due.probe, each, now, until, ended) for each in databases]
        try:
            for request in requests:
                due.member.reach.ask(request)
            await done.wait()
        finally:
            due.member.reach.give_up(requests)

    async def _databases(self, due: Due) -> Sequence[str] | Result:
        try:
            return await due.member.databases.all()
        except BaseException:
            self._record_unasked(due, skipped(CUT_OFF))
            raise

    def _record_unasked(self, due: Due, result: Result) -> None:
        known = due.member.databases.known if due.probe.scope is Scope.DATABASE else ()
        for database in known or (None,):
            self._record(due, database, result)

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
        sample = Sample(IDENTITY, member.target.name, None, found_by.due, (identity,))
        self._recorder.add(sample, evolve(found_by, probe=IDENTITY.name, rows=1, cost=0.0))
        if member.identify(identity):
            self._share(member)

    def _share(self, member: Member) -> None:
        """Give targets that are one server one limit. The server counts leaving targets, too."""
        connections = member.reach.connections
        others = [each for each in (*self.members.values(), *self._left) if each is not member]
        same = [each.reach.connections for each in others if each.is_same_as(member)]
        if not any(each.places is connections.places for each in same):
            connections.places.part(connections)
        for each in same:
            connections.share(each)

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
        if member.budget.load > member.budget.share:
            return
        member.burst_until = now + burst.LASTS
        for probe in burst.CLOSE:
            job = self._jobs.of(member.target.name, probe)
            if job is not None and probe not in member.usual:
                member.usual[probe] = job.schedule
                job.update(schedule=Every(burst.SAMPLE_S, anchor=EPOCH))
                logger.warning("%s: %s every second for a minute: %s", member.target.name, probe, reason)

    def _end_burst(self, member: Member) -> None:
        for probe, schedule in member.usual.items():
            job = self._jobs.of(member.target.name, probe)
            if job is not None:
                job.update(schedule=schedule)
        member.usual.clear()

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

    def _missed(self, event: RunMissed) -> None:
        pair = self._jobs.pair_of(event.job_id)
        if pair is not None:
            self._record_missed(pair.member, pair.plan.probe, event)

    def _record_missed(self, member: Member, probe: Probe, event: RunMissed) -> None:
        step = (event.last_due - event.first_due) / max(event.count - 1, 1)
        result = Result(kind=OutcomeKind.SKIPPED, reason=event.reason.value)
        for number in range(1 if event.reason is MissedReason.PAUSED else event.count):  # which may be a year
            self._record_unasked(Due(member, probe, (event.first_due + number * step).timestamp(), 0.0), result)
