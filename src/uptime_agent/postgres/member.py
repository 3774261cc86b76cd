"""Targets with their state."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from logging import getLogger

from attrs import define, field, frozen

from schedule import Schedule
from timerqueue import Clock

from ..checks import Resolver, Unresolved
from .budget import CostBudget
from .contract import Failure, OutcomeKind, ProbeOutcome, Row
from .databases import Databases
from .identity import Key, changes, key_of
from .reach import Breaker, Connections, Dialler, ServerReach, Spawn
from .target import PostgresTarget

logger = getLogger(__name__)


@frozen
class MemberDeps:
    """Shared by all members."""

    resolver: Resolver
    spawn: Spawn
    clock: Clock


@define(eq=False)
class Member:
    """A target as it is probed. `told`: failures in the log.

    `usual`: schedules of probes in a burst, until `burst_until`, monotonic seconds. `key`: of that server alone;
    `key_before`: the last one.
    """

    target: PostgresTarget
    reach: ServerReach
    databases: Databases
    budget: CostBudget
    usual: dict[str, Schedule] = field(factory=dict)
    burst_until: float = 0.0
    addresses: frozenset[str] = frozenset()
    identity: Row | None = None
    key: Key | None = None
    key_before: Key | None = None
    ends: Counter[OutcomeKind] = field(factory=Counter)
    told: dict[tuple[str, str | None], str | None] = field(factory=dict)

    @property
    def has_failed(self) -> bool:
        """Whether a probe has failed."""
        return bool(self.ends[OutcomeKind.FAILED])

    def summary(self) -> str:
        """Say how the probes ended."""
        parts = [f"{self.ends[kind]:,} {kind.value}" for kind in OutcomeKind if self.ends[kind]]
        return f"{self.target.name}: {', '.join(parts) or 'no probe was run'}"

    def become(self, target: PostgresTarget, around: MemberDeps) -> Member | None:
        """Follow a changed target. Return the member left at the old place, if any.

        Running probes end unchanged.
        """
        before, self.target = self.target, target
        self.budget.share = target.budget
        left = None
        if target.server.place != before.server.place:
            left = Member(before, self.reach, self.databases, self.budget, key=self.key, key_before=self.key_before)
            self.reach = _reach(target, around)
            self.databases = Databases(target, self.reach, around.clock)
            self.key, self.key_before, self.addresses = None, None, frozenset()
        elif target.server != before.server:
            self.reach.connections.follow(_dialler(target, around))
            self.reach.breaker = Breaker()
        self.reach.connections.resize(target.limit)
        self.databases.follow(target)
        return left

    def is_same_as(self, other: Member) -> bool:
        """Whether both lead to one server, by address or identity.

        One of them notices a restart first: its former key counts until the other has noticed.
        """
        here, there = self.target.server, other.target.server
        if here.port == there.port and (here.host.lower() == there.host.lower() or self.addresses & other.addresses):
            return True
        ours, theirs = ({self.key, self.key_before}, {other.key, other.key_before})
        return bool(({self.key} & theirs | ours & {other.key}) - {None})

    async def look_up(self, around: MemberDeps) -> None:
        """Look up addresses. A failure shows when dialled."""
        server = self.target.server
        if not server.is_local:
            with suppress(Unresolved):
                self.addresses = frozenset(await around.resolver.addresses(server.host))

    def identify(self, identity: Row) -> bool:
        """Note the server, and log changes. True: it is another one."""
        for text in changes(self.identity, identity):
            logger.info("%s: %s", self.target.name, text)
        self.identity, before, key = identity, self.key, key_of(identity)
        if key == before:
            return False
        self.key, self.key_before = key, before
        return True

    def tell(self, outcome: ProbeOutcome) -> None:
        """Log a failure, and its end, once; of an unreachable server once for all probes."""
        if outcome.kind is OutcomeKind.SKIPPED:
            return
        is_of_server = outcome.failure is Failure.CONNECT
        name = None if outcome.failure is None else outcome.failure.value
        self._tell("", None, name if is_of_server else None, outcome.reason)
        if not is_of_server:
            self._tell(outcome.probe, outcome.database, name, outcome.reason)

    def _tell(self, probe: str, database: str | None, failure: str | None, reason: str | None) -> None:
        if self.told.get((probe, database)) == failure:
            return
        what = f"{self.target.name}: {probe or 'the server'}" + (f" in {database}" if database else "")
        if failure is None:
            del self.told[probe, database]
            logger.warning("%s works again", what)
        else:
            self.told[probe, database] = failure
            logger.warning("%s fails (%s): %s", what, failure, reason)


def member_of(target: PostgresTarget, around: MemberDeps) -> Member:
    """Return a new target's member."""
    reach = _reach(target, around)
    return Member(target, reach, Databases(target, reach, around.clock), CostBudget(target.budget))


def _reach(target: PostgresTarget, around: MemberDeps) -> ServerReach:
    connections = Connections(_dialler(target, around), target.limit, around.spawn, around.clock)
    return ServerReach(connections, Breaker(), around.spawn, around.clock)


def _dialler(target: PostgresTarget, around: MemberDeps) -> Dialler:
    return Dialler(target.server, around.resolver, around.clock)
