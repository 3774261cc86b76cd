"""The probing of the PostgreSQL servers in a configuration."""

# ruff: noqa: PLC0415 - see __init__.py

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup, TaskStatus

from scheduler import AlreadyStopped, Scheduler
from timerqueue import Clock, SystemClock

from ..checks import Resolver
from ..config import Config
from ..quorum import LOOKS_EVERY, Duties
from ..text import wording

if TYPE_CHECKING:
    from ..postgres import Drained, Fleet, PlanChanges, PostgresTarget, ReadableStore
    from ..tables import FoundRows, TablesPlace


def server_of(config: Config, name: str) -> PostgresTarget:
    """Return a server of the file or its tables. Blocks. Raises LookupError, TablesUnread."""
    servers = config.postgres
    if config.tables is not None and name not in {each.name for each in servers}:
        from ..tables import read_once

        names = [each.name for each in servers]
        found = anyio.run(partial(read_once, config.tables, Resolver(config.hosts), SystemClock(), names))
        servers += found.targets(config.probes)
    for each in servers:
        if each.name == name:
            return each
    names_of_all = ", ".join(each.name for each in servers) or "none at all"
    msg = f"there is no [[postgres]] with the name {name!r}, but: {names_of_all}"
    raise LookupError(msg)


def in_words(changes: PlanChanges[str]) -> str:
    """Name what has changed."""
    kinds = (("added", changes.added), ("removed", changes.removed), ("changed", changes.changed))
    return ", ".join(f"{len(names):,} {what} ({wording.some(names)})" for what, names in kinds if names)


class Probing:
    """The servers of the file and its tables.

    `resized` is called with a new `places`, `learn` with passwords, `say` with notices. `duties` None: all servers are
    ours.
    """

    def __init__(
        self,
        config: Config,
        scheduler: Scheduler,
        resolver: Resolver,
        clock: Clock,
        resized: Callable[[int], None],
        *,
        learn: Callable[[frozenset[str]], None],
        say: Callable[[str], None],
        is_once: bool = False,
        duties: Duties | None = None,
    ) -> None:
        self._is_once = is_once
        self._duties = duties
        self._config = config
        self._scheduler = scheduler
        self._resolver = resolver
        self._clock = clock
        self._resized = resized
        self._learn = learn
        self._say = say
        self._found: FoundRows | None = None
        self._following: anyio.CancelScope | None = None
        self._following_duties: anyio.CancelScope | None = None
        self._is_unread = False
        self._group: TaskGroup | None = None
        self._over = anyio.Event()
        self._store: ReadableStore | None = None
        self._fleet: Fleet | None = self._made(self._servers) if config.postgres else None

    @property
    def places(self) -> int:
        """The number of tasks that may run at a time: one for each probe, so that no check waits."""
        return 0 if self._fleet is None else len(self._fleet.members) * len(self._fleet.probes)

    @property
    def has_failed(self) -> bool:
        """Whether a probe has failed, or tables were unread."""
        members = () if self._fleet is None else self._fleet.members.values()
        return self._is_unread or any(each.has_failed for each in members)

    def summaries(self) -> list[str]:
        """Say for each server how its probes ended."""
        return [] if self._fleet is None else [each.summary() for each in self._fleet.members.values()]

    @property
    def report(self) -> Drained | None:
        """The fate of metrics that were not stored at the end. None: not known yet, or no server is probed."""
        return None if self._fleet is None else self._fleet.report

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Probe while the body runs."""
        async with anyio.create_task_group() as group:
            self._group = group
            if self._is_once and self._config.tables is not None:
                await self._read_once(self._config.tables)
            elif self._config.tables is not None:
                self._enter_tables(group, self._config.tables)
            if self._fleet is not None:
                await group.start(self._live, self._fleet)
            if self._duties is not None:
                group.start_soon(self._follow_duties, self._duties)
            yield
            self._over.set()
            if self._following_duties is not None:
                self._following_duties.cancel()
            self._leave_tables()

    async def follow(self, config: Config) -> PlanChanges[str] | None:
        """Probe this configuration's servers. Return the changes; None: there never was a server."""
        before, self._config = self._config.tables, config
        if config.tables != before:
            self._leave_tables()
            self._found = None
            if config.tables is not None and self._group is not None:
                self._enter_tables(self._group, config.tables)
        return await self._act()

    @property
    def _servers(self) -> tuple[PostgresTarget, ...]:
        return tuple(each for each in self._all_servers if self._duties is None or self._duties.is_ours(_duty(each)))

    @property
    def _all_servers(self) -> tuple[PostgresTarget, ...]:
        """The servers of the file and its tables. If both have a name, the file's server counts."""
        own = self._config.postgres
        names = {each.name for each in own}
        of_tables = () if self._found is None else self._found.targets(self._config.probes)
        return (*own, *(each for each in of_tables if each.name not in names))

    async def _act(self) -> PlanChanges[str] | None:
        """Follow the present servers. Servers that come while the agent stops are left alone."""
        with suppress(AlreadyStopped):
            return await self._acted(self._servers)
        return None

    async def _acted(self, servers: tuple[PostgresTarget, ...]) -> PlanChanges[str] | None:
        if self._fleet is None and not servers:
            return None
        if self._fleet is None:
            self._fleet = self._made(())
            assert self._group is not None, "a configuration is followed while the agent runs"
            await self._group.start(self._live, self._fleet)
        before = self.places
        self._learn(frozenset().union(*(each.server.secrets for each in servers)))
        changes = self._fleet.follow(servers)
        if self._store is not None:
            self._store.retention = self._config.metrics.retention(self._config.store, self._all_servers)
        if self.places != before:
            self._resized(self.places)
        return changes

    def _enter_tables(self, group: TaskGroup, place: TablesPlace) -> None:
        self._following = anyio.CancelScope()
        group.start_soon(self._follow_tables, place, self._following)

    async def _follow_tables(self, place: TablesPlace, scope: anyio.CancelScope) -> None:
        from ..tables import Tables

        resolver = Resolver(self._config.hosts)  # without `reach`: it bounds targets, and the tables are none
        tables = Tables(
            place,
            resolver,
            self._clock,
            follow=self._take,
            say=self._say,
            named=lambda: [each.name for each in self._config.postgres],
        )
        with scope:
            await tables.run()

    async def _take(self, found: FoundRows) -> None:
        self._found = found
        changes = await self._act()
        if changes:
            self._say(f"{self._config.tables}: {in_words(changes)}")

    async def _follow_duties(self, duties: Duties) -> None:
        probed: list[str] = []
        with anyio.CancelScope() as self._following_duties:
            while True:
                duties.look()
                before, probed = probed, [each.name for each in self._servers]
                if probed != before and (changes := await self._act()):
                    self._say(f"servers that this agent probes: {in_words(changes)}")
                await self._clock.sleep(LOOKS_EVERY)

    def _leave_tables(self) -> None:
        if self._following is not None:
            self._following.cancel()
            self._following = None

    async def _read_once(self, place: TablesPlace) -> None:
        from ..tables import TablesUnread, read_once

        try:
            names = [each.name for each in self._config.postgres]
            self._found = await read_once(place, Resolver(self._config.hosts), self._clock, names)
        except TablesUnread as exc:
            self._is_unread = True
            self._say(str(exc))
            return
        for each in self._found.wrong:
            self._say(f"a row of {place} is not used: {each}")
        if self._fleet is None and self._servers:
            self._fleet = self._made(())
        if self._fleet is not None:
            self._learn(frozenset().union(*(each.server.secrets for each in self._servers)))
            self._fleet.follow(self._servers)
            self._resized(self.places)

    async def _live(self, fleet: Fleet, *, task_status: TaskStatus[None]) -> None:
        async with fleet.running():
            task_status.started()
            await self._over.wait()

    def _made(self, servers: tuple[PostgresTarget, ...]) -> Fleet:
        from ..postgres import CATALOGUE, Fleet

        self._store, spool = self._config.metrics.make(self._config.store, self._all_servers)
        return Fleet(
            servers,
            CATALOGUE,
            self._scheduler,
            store=self._store,
            spool=spool,
            resolver=self._resolver,
            clock=self._clock,
            is_once=self._is_once,
        )


def _duty(server: PostgresTarget) -> str:
    return f"postgres:{server.name}"
