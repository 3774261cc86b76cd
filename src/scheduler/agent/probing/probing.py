"""The fleet of a configuration: made once a server is there, and brought up to date with each new configuration."""

# ruff: noqa: PLC0415 - see the face

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from scheduler import Scheduler
from timerqueue import Clock

from ..checks import Resolver
from ..config import Config

if TYPE_CHECKING:
    from ..postgres import Changes, Fleet, PostgresTarget

MEMORY_KEEPS: Final = 3_600.0
"""Seconds for which an agent without a store remembers what probes of PostgreSQL found."""


class Probing:
    """The servers that are probed by now. `resized` is called when `places` has changed."""

    def __init__(
        self,
        config: Config,
        scheduler: Scheduler,
        resolver: Resolver,
        clock: Clock,
        resized: Callable[[], None],
        *,
        is_once: bool = False,
    ) -> None:
        self._is_once = is_once
        self._config = config
        self._scheduler = scheduler
        self._resolver = resolver
        self._clock = clock
        self._resized = resized
        self._group: TaskGroup | None = None
        self._over = anyio.Event()
        self._fleet: Fleet | None = self._made(config.postgres) if config.postgres else None

    @property
    def places(self) -> int:
        """How many tasks its jobs need: each probe has one, so that no check waits for it."""
        return 0 if self._fleet is None else len(self._fleet.members) * len(self._fleet.probes)

    @property
    def has_failed(self) -> bool:
        """Whether a probe has failed."""
        return self._fleet is not None and any(each.has_failed for each in self._fleet.members.values())

    def summaries(self) -> list[str]:
        """Say in a line for each server what became of its probes."""
        return [] if self._fleet is None else [each.summary() for each in self._fleet.members.values()]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Probe while the body runs."""
        async with anyio.create_task_group() as group:
            self._group = group
            if self._fleet is not None:
                await group.start(self._live, self._fleet)
            yield
            self._over.set()

    async def follow(self, config: Config) -> Changes[str] | None:
        """Probe the servers of this configuration from now on. Returns what has changed; None: there never was any."""
        self._config = config
        if self._fleet is None and not config.postgres:
            return None
        if self._fleet is None:
            self._fleet = self._made(())
            assert self._group is not None, "a configuration is followed while the agent runs"
            await self._group.start(self._live, self._fleet)
        before = self.places
        changes = self._fleet.follow(config.postgres)
        if self.places != before:
            self._resized()
        return changes

    async def _live(self, fleet: Fleet, *, task_status: TaskStatus[None]) -> None:
        async with fleet.running():
            task_status.started()
            await self._over.wait()

    def _made(self, servers: tuple[PostgresTarget, ...]) -> Fleet:
        from ..postgres import CATALOGUE, Fleet, MemoryMetrics, Retention, Spool, SpooledMetrics, SqliteMetrics

        file = self._config.store.file
        if file is None:
            store = SpooledMetrics(MemoryMetrics(Retention(default=MEMORY_KEEPS)), None, self._clock)
        else:
            spool = Spool(file.with_suffix(".metrics.spool"))
            store = SpooledMetrics(SqliteMetrics(file.with_suffix(".metrics.db")), spool, self._clock)
        return Fleet(
            servers,
            CATALOGUE,
            self._scheduler,
            store=store,
            resolver=self._resolver,
            clock=self._clock,
            is_once=self._is_once,
        )
