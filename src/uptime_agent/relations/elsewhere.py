"""Targets on other nodes, by their last reports in the shared store.

Questions during a reading share the next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from itertools import islice
from typing import Final

import anyio
from anyio.to_thread import run_sync

from scheduler import record_of
from scheduler.stores import Store, StoredTick, capabilities

from ..standing import Marks, TargetStatus, restore

MAX_TARGETS: Final = 1_000
"""Targets per statement."""


class Elsewhere:
    """Reads targets of other nodes. `clean` masks secrets."""

    def __init__(self, latest: Callable[[Collection[str]], Iterable[StoredTick]], clean: Callable[[str], str]) -> None:
        self._latest = latest
        self._clean = clean
        self._found: dict[str, TargetStatus] = {}
        self._wanted: dict[str, None] = {}
        self._one_at_a_time = anyio.Lock()

    def of(self, name: str) -> TargetStatus:
        """Return a target as last read, at first unknown."""
        found = self._found.get(name)
        return TargetStatus(name, "", "") if found is None else found

    async def read(self, names: Iterable[str]) -> None:
        """Read the present status of targets. Raises StoreError."""
        asked = dict.fromkeys(names)
        self._wanted |= asked
        async with self._one_at_a_time:
            while not asked.keys().isdisjoint(self._wanted):
                await self._read(dict.fromkeys(islice(self._wanted, MAX_TARGETS)))

    async def _read(self, names: dict[str, None]) -> None:
        for name in names:  # before the store answers: later questions need a new answer
            del self._wanted[name]
        try:
            ticks = await run_sync(self._latest, list(names), abandon_on_cancel=True)
        except BaseException:
            self._wanted |= names
            raise
        self._found |= {name: TargetStatus(name, "", "", marks=unmarked) for name in names}
        for tick in ticks:
            with suppress(KeyError, ValueError):  # other programs may have written it
                restore(self._found[tick.job_id], [record_of(tick)], self._clean)


def unmarked(_name: str) -> Marks:
    """On a shared store, jobs keep groups' states."""
    return {}


def elsewhere_of(store: Store | None, clean: Callable[[str], str]) -> Elsewhere | None:
    """Make an `Elsewhere`; None if the store is not shared."""
    voting = capabilities(store).voting
    return None if voting is None else Elsewhere(voting.latest, clean)
