"""Elsewhere: how targets stand that another agent has, by their last reports in the store that agents share.

Nothing of that is kept up to date: it is read when a verdict depends on it, so it does not matter who has what. Who
asks while others are being answered shares the next reading: many checks that fail together cost a few statements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from itertools import islice
from typing import Final

import anyio
from anyio.to_thread import run_sync

from scheduler import record_of
from scheduler.stores import Store, StoredTick, Voting

from ..targets import Marks, TargetStatus, restore

MOST: Final = 1_000
"""Targets that are asked for in one statement."""


class Elsewhere:
    """Targets that other agents have. `latest`: asks the store for the last reports of some. `clean` masks secrets."""

    def __init__(self, latest: Callable[[Collection[str]], Iterable[StoredTick]], clean: Callable[[str], str]) -> None:
        self._latest = latest
        self._clean = clean
        self._found: dict[str, TargetStatus] = {}
        self._wanted: dict[str, None] = {}
        self._one_at_a_time = anyio.Lock()

    def of(self, name: str) -> TargetStatus:
        """The target of that name as it was when it was read last. Of one that was never read nothing is known."""
        found = self._found.get(name)
        return TargetStatus(name, "", "") if found is None else found

    async def read(self, names: Iterable[str]) -> None:
        """Return when it is known how these stand now. Raises StoreError."""
        asked = dict.fromkeys(names)
        self._wanted |= asked
        async with self._one_at_a_time:
            while not asked.keys().isdisjoint(self._wanted):
                await self._read(dict.fromkeys(islice(self._wanted, MOST)))

    async def _read(self, names: dict[str, None]) -> None:
        for name in names:  # before the store answers: who asks for one meanwhile wants to know it anew
            del self._wanted[name]
        try:
            ticks = await run_sync(self._latest, list(names), abandon_on_cancel=True)
        except BaseException:
            self._wanted |= names
            raise
        self._found |= {name: TargetStatus(name, "", "", marks=unmarked) for name in names}
        for tick in ticks:
            with suppress(KeyError, ValueError):  # others have written it: it may make no sense
                restore(self._found[tick.job_id], [record_of(tick)], self._clean)


def unmarked(_name: str) -> Marks:
    """Say nothing of groups in the report of a target: they have jobs of their own. What older reports say is read."""
    return {}


def elsewhere_of(store: Store | None, clean: Callable[[str], str]) -> Elsewhere | None:
    """Make what an agent knows of the targets of others. None: nobody shares its store."""
    voting: Voting | None = getattr(store, "voting", None)
    return None if voting is None else Elsewhere(voting.latest, clean)
