"""A target's parents: the targets that it depends on. Its checks ask how they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

import anyio

from scheduler import StoreError

from ..checks import Status
from ..standing import Recall, TargetStatus, has_instants
from .elsewhere import Elsewhere
from .here import Here
from .parents import Parents

PATIENCE: Final = 4.0
"""Seconds to read other nodes' targets."""


class Above:
    """The parents of targets. `elsewhere`: see `Here`."""

    def __init__(
        self,
        targets: Mapping[str, TargetStatus],
        parents: Parents,
        here: Here,
        recall: Recall,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._targets = targets
        self._parents = parents
        self._here = here
        self._recall = recall
        self._elsewhere = elsewhere
        self._complete: set[str] = set()
        self._undecided: dict[str, float] = {}
        """UTC seconds when a target's first undecided check began."""

    def follow(self, parents: Mapping[str, Sequence[str]]) -> None:
        """Replace all parents."""
        self._parents.follow(parents)
        voted = {name for name in self._targets if has_instants(self._targets, name)}
        for name, of in parents.items():
            self._targets[name].waits = bool(voted and of) and not voted.isdisjoint(self._parents.above(name))
        self._complete.clear()

    def forget(self, name: str) -> None:
        """Forget a removed target."""
        self._here.forget(name)
        self._undecided.pop(name, None)
        self._complete.clear()

    async def recall(self, name: str) -> None:
        """Recall a target and its parents."""
        self._here.arrive(name)
        if name in self._complete and self._recall.has(name):  # saves a walk per check: there may be thousands above
            return
        # Targets of other nodes are read when a verdict needs them.
        wanted = (name, *(self._parents.above(name) if self._elsewhere is None else ()))
        missing = [each for each in wanted if each in self._targets and not self._recall.has(each)]
        if len(missing) == 1:
            await self._recall.recall(missing[0])
        elif missing:
            async with anyio.create_task_group() as group:
                for each in missing:
                    group.start_soon(self._recall.recall, each)
        if name in self._targets and all(self._recall.has(each) for each in wanted if each in self._targets):
            self._complete.add(name)

    def unchecked(self, name: str, began: float) -> Sequence[str]:
        """The parents not checked since `began` (UTC seconds).

        Nodes that vote on a parent check it at its own instants. Such a parent must be checked since the target's first
        undecided check began.
        """
        status = self._targets[name]
        if not status.waits:
            return self._parents.unchecked(name, began)
        is_waiting = status.tried > 0 and status.last is not None and bool(status.last.asks)
        since = self._undecided.get(name, began) if is_waiting else began
        self._undecided[name] = since
        silent = [each for each in self._parents.unchecked(name, inf) if self._is_silent(each, since)]
        return silent if is_waiting else tuple(dict.fromkeys((*self._parents.unchecked(name, began), *silent)))

    async def look(self, name: str) -> str | None:
        """Read the status of parents that other nodes check. Returns an error, or None."""
        away = [each for each in self._parents.above(name) if not self._here.is_here(each)]
        if not away or self._elsewhere is None:
            return None
        said = f"no answer within {PATIENCE:g} s"
        with anyio.move_on_after(PATIENCE):
            try:
                await self._elsewhere.read(away)
                return None
            except StoreError as exc:
                said = str(exc)
        return f"nobody knows how the targets above it stand: {said}"

    def _is_silent(self, name: str, since: float) -> bool:
        found = self._here.known(name)
        if found is None or not has_instants(self._targets, name):
            return False
        run, last = found.last_run, found.last
        return run is None or run.started.timestamp() < since or last is None or last.status is Status.UNKNOWN
