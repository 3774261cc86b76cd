"""Read the configuration again: when its file has changed, and on SIGHUP.

A change counts once two looks agree: editors write in parts, and half a file may look whole. A wrong file is told, and
the agent continues unchanged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import anyio
from anyio.to_thread import run_sync
from attrs import evolve, fields, frozen

from timerqueue import Clock

from .config import Config, over
from .text import wording
from .toml import ConfigError, Problem, what_else

LOOK_EVERY: Final = 0.5
"""Seconds."""

MOST_SAID: Final = 3

FOLLOWED: Final = frozenset(
    {"targets", "limits", "hosts", "reach", "maintenance", "groups", "channels", "rules"}
    | {"postgres", "probes", "tables", "warnings", "file", "lines"}
)
"""Parts that take effect without a restart."""

_WRITTEN: Final = {"store": "store", "retention": "[history]"}
"""Parts that are not called [NAME] in a file."""

_OTHER: Final = {
    "limits": "other limits",
    "hosts": "other hosts",
    "reach": "another reach",
    "maintenance": "other maintenance",
    "groups": "other groups",
    "channels": "other channels",
    "rules": "other rules of notification",
}

Stamp = tuple[int, int, int] | None
"""A file's time, size and identity; None: unreadable."""


class Changed(Protocol):
    """Changes of a configuration, by name."""

    @property
    def added(self) -> tuple[str, ...]:
        """New names."""

    @property
    def removed(self) -> tuple[str, ...]:
        """Names that are gone."""

    @property
    def changed(self) -> tuple[str, ...]:
        """Names whose content differs."""


@frozen
class Source:
    """A configuration's file. `read` raises ConfigError."""

    file: Path
    read: Callable[[], Config]


class Reload:
    """`follow` gets each new configuration, `notice` sentences for the user."""

    def __init__(
        self, source: Source, clock: Clock, follow: Callable[[Config], Awaitable[None]], notice: Callable[[str], None]
    ) -> None:
        self._source = source
        self._clock = clock
        self._follow = follow
        self._notice = notice
        self._asked = anyio.Event()
        self._known = stamp_of(source.file)

    def ask(self) -> None:
        """Read the file even if it looks unchanged."""
        self._asked.set()

    async def run(self) -> None:
        """Follow the file until cancelled."""
        seen = self._known
        while True:
            await self._wait()
            before, seen = seen, await run_sync(stamp_of, self._source.file)
            if self._asked.is_set() or (seen == before and seen != self._known):
                self._asked = anyio.Event()
                self._known = seen
                await self._read()

    async def _wait(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_asked, group.cancel_scope)
            await self._clock.sleep(LOOK_EVERY)
            group.cancel_scope.cancel()

    async def _until_asked(self, waiting: anyio.CancelScope) -> None:
        await self._asked.wait()
        waiting.cancel()

    async def _read(self) -> None:
        try:
            config = await run_sync(self._read_and_check)
        except ConfigError as exc:
            self._notice(
                f"the changed configuration is not used, the old one goes on: {in_short(exc, self._source.file)}"
            )
            return
        await self._follow(config)

    def _read_and_check(self) -> Config:
        """Raises ConfigError, also for a pipe: opening it waits for a writer."""
        with suppress(OSError):  # which is told by who reads it
            if (strange := what_else(self._source.file.stat().st_mode)) is not None:
                raise ConfigError(str(self._source.file), [Problem(0, strange)])
        config = self._source.read()
        ended = over(config, datetime.fromtimestamp(self._clock.wall(), UTC))
        if ended:
            problems = [Problem(0, f"check {each.name!r}: {each.schedule} has no start after now") for each in ended]
            raise ConfigError(str(self._source.file), problems)
        return config


def stamp_of(file: Path) -> Stamp:
    """Look at a file without reading it."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def told_of(changes: Changed, before: Config, after: Config, servers: Changed | None = None) -> Iterator[str]:
    """Say what has changed, and what waits for a restart."""
    parts = [*_counts(changes), *(f"PostgreSQL: {each}" for each in _counts(servers))]
    parts += [what for name, what in _OTHER.items() if getattr(before, name) != getattr(after, name)]
    if after.metrics.kept != before.metrics.kept:
        parts.append("other ages of metrics")
    names = [each.name for each in fields(Config) if each.name not in FOLLOWED]
    held = evolve(after, metrics=after.metrics.keeping(before.metrics))
    later = [name for name in names if getattr(before, name) != getattr(held, name)]
    if parts or not later:
        yield f"configuration read again: {', '.join(parts) or 'nothing has changed'}"
    for name in later:
        said = _WRITTEN.get(name, f"[{name}]")
        yield f"{said} has changed in the configuration: that takes effect when the agent starts again"


def _counts(changes: Changed | None) -> list[str]:
    if changes is None:
        return []
    kinds = (("added", changes.added), ("removed", changes.removed), ("changed", changes.changed))
    return [f"{len(names):,} {what} ({wording.some(names)})" for what, names in kinds if names]


def in_short(error: ConfigError, file: Path) -> str:
    """The first problems, without a path too long for a terminal."""
    lines = [each.at(file.name) for each in error.problems]
    more = f"; and {len(lines) - MOST_SAID} more" if len(lines) > MOST_SAID else ""
    return "; ".join(lines[:MOST_SAID]) + more
