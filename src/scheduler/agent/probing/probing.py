"""The fleet of a configuration: made once a server is there, and brought up to date with each new configuration."""

# ruff: noqa: PLC0415 - see the face

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup, TaskStatus

from scheduler import Scheduler
from timerqueue import Clock

from ..checks import Resolver
from ..config import Config

if TYPE_CHECKING:
    from ..postgres import Changes, Drained, Fleet, PostgresTarget, ReadableStore


def server_of(config: Config, name: str) -> PostgresTarget:
    """Return the server of that name. Raises LookupError, with the names that there are."""
    found = next((each for each in config.postgres if each.name == name), None)
    if found is None:
        names = ", ".join(each.name for each in config.postgres) or "none at all"
        msg = f"there is no [[postgres]] with the name {name!r}, but: {names}"
        raise LookupError(msg)
    return found


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
        self._store: ReadableStore | None = None
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

    @property
    def report(self) -> Drained | None:
        """How the metrics that were still to be stored at the end fared; None: there are none, or nobody knows."""
        return None if self._fleet is None else self._fleet.report

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
        if self._store is not None:
            self._store.retention = config.metrics.retention(config.store, config.postgres)
        if self.places != before:
            self._resized()
        return changes

    async def _live(self, fleet: Fleet, *, task_status: TaskStatus[None]) -> None:
        async with fleet.running():
            task_status.started()
            await self._over.wait()

    def _made(self, servers: tuple[PostgresTarget, ...]) -> Fleet:
        from ..postgres import CATALOGUE, Fleet

        self._store, spool = self._config.metrics.make(self._config.store, servers)
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
