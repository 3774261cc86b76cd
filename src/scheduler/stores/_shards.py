"""Shards: the parts into which the jobs of a shared store are divided, and which of them are ours."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b, md5
from typing import Final

from .._placement import OneOf, assigned, chosen, read_part
from ._sharing import Peer, Sharing, View

SHARDS: Final = 1_024
"""Shards of jobs that any agent may have. A number that may not change: it stands in the tables of stores."""

SHARDS_OF_LABELS: Final = 16
"""Shards of the jobs of one label text, with numbers from SHARDS on. This may not change, either."""


def shard_of(place: str, where: str | None = None) -> int:
    """The shard of a place, which is a job's id unless the job says otherwise: the same here and in the tables.

    `where`: the labels that its agent must have, as the job says it; None: any agent may have it.
    """
    drawn = int.from_bytes(_digest(place)[:4])
    return drawn % SHARDS if where is None else _first_shard(where) + drawn % SHARDS_OF_LABELS


def where_of(options: str | None) -> str | None:
    """The labels that a job asks for, by the options in its row: the same here and in the tables."""
    if options is None or '"where"' not in options:
        return None
    try:
        where = json.loads(options).get("where")
    except (ValueError, AttributeError, RecursionError):
        return None
    return where if isinstance(where, str) else None


@lru_cache(maxsize=4_096)
def _first_shard(where: str) -> int:
    return SHARDS + int.from_bytes(_digest(where)[:6]) * SHARDS_OF_LABELS


def _digest(text: str) -> bytes:
    return md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()


def rightful_owners(agents: Iterable[int]) -> list[int]:
    """The agent, by the epoch of its incarnation, to whom each shard belongs when these are there. 0: there is none.

    Each shard goes to the agent that draws the highest number for it. So all who know the same agents know the same
    owners; an agent that comes takes a fair part from each, and one that goes leaves a fair part to each.
    """
    return list(_rightful_owners(tuple(agents)))


@lru_cache(maxsize=4)
def _rightful_owners(agents: tuple[int, ...]) -> list[int]:
    best = [(-1, 0)] * SHARDS
    for agent in agents:
        for shard, draw in enumerate(_draws(agent)):
            best[shard] = max(best[shard], (draw, agent))
    return [agent for _, agent in best]


@lru_cache(maxsize=256)
def _draws(agent: int) -> Sequence[int]:
    """The numbers that an agent draws for all shards. They are kept: who hears that an agent has gone is in a hurry."""
    return array("Q", (int.from_bytes(_draw(agent, shard)) for shard in range(SHARDS)))


def _draw(agent: int, shard: int) -> bytes:
    return blake2b(b"%d %d" % (agent, shard), digest_size=8).digest()


@lru_cache(maxsize=65_536)
def _rightful_owner(shard: int, agents: tuple[int, ...]) -> int:
    """To whom of these agents a shard of labels belongs. 0: there are none."""
    return max(((_draw(agent, shard), agent) for agent in agents), default=(b"", 0))[1]


class Rightful:
    """To whom each shard belongs by right: to those who are there, whose clocks are right, and who have the labels that
    it is for. Who is unsettled is counted only where there is nobody else. `gone`: agents that are not to be counted
    any more.

    Shards of the parts of jobs that several agents run each belong to one of the chosen, and to no two the same.
    """

    def __init__(self, view: View, gone: Collection[int] = ()) -> None:
        self._view = view
        self._living = [p for p in view.peers if p.left >= 0 and not p.is_off and p.epoch not in gone]
        self._owners = _rightful_owners(_settled(self._living))
        self._fit: dict[str, list[Peer]] = {}
        self._assigned: dict[int, list[int]] = {}
        """To whom the parts belong, in their order, by the number of the shard of the first."""

    def __getitem__(self, shard: int) -> int:
        """Return the owner, by the epoch of its incarnation. 0: there is none."""
        if shard < SHARDS:
            return self._owners[shard]
        found = self._view.labelled.get(shard)
        if found is None:  # somebody has deleted its row
            return 0
        if found.where not in self._fit:
            self._fit[found.where] = [peer for peer in self._living if peer.fits(found.where)]
        fit, part = self._fit[found.where], read_part(found.where)
        if isinstance(part, OneOf):
            return self._owner_of_part(part, (shard - SHARDS) % SHARDS_OF_LABELS, fit)
        return _rightful_owner(shard, _settled(fit))

    def _owner_of_part(self, part: OneOf, place: int, fit: Sequence[Peer]) -> int:
        shards = [_first_shard(each.text) + place for each in part.siblings()]
        first = shards[0]
        if first not in self._assigned:
            unsettled = [peer for peer in fit if peer.is_unsettled]
            ours = chosen(str(first), [peer for peer in fit if not peer.is_unsettled], part.count, part.apart)
            ours += chosen(str(first), unsettled, part.count - len(ours), part.apart)
            owners = [self._view.owner_of(shard) for shard in shards]
            self._assigned[first] = assigned(owners, [peer.epoch for peer in ours])
        return self._assigned[first][part.number - 1]


def _settled(living: Sequence[Peer]) -> tuple[int, ...]:
    """The epochs of those who have read the store, and stay; of all where there are none."""
    return tuple(peer.epoch for peer in living if not peer.is_unsettled) or tuple(peer.epoch for peer in living)


def heirs(view: View, gone: Collection[int]) -> dict[int, int]:
    """To whom the shards of these agents belong by right once they have gone, and those that nobody has."""
    rightful = Rightful(view, gone)
    given = {shard: rightful[shard] for shard, owner in view.shards() if not owner or owner in gone}
    return {shard: owner for shard, owner in given.items() if owner}


class Shares:
    """The shards that are ours, and who has the others. Changed on the loop; any thread may ask."""

    is_shared = True
    """Agents that share the store have jobs of their own, and add some."""
    are_asked = True
    """The agents that have the others may be asked for what concerns them."""
    know_parts = True
    """Jobs that several agents run have their parts at these."""

    def __init__(self, sharing: Sharing | None = None) -> None:
        self._ours = bytearray(SHARDS)
        self._labelled: set[int] = set()
        self._sharing = sharing

    @property
    def know_labels(self) -> bool:
        """Whether jobs that are for agents with some labels go to these."""
        return True

    def holds(self, id: str, place: str | None = None, where: str | None = None) -> bool:
        """Whether the job of that id is ours. `place` None: it is one by itself. `where`: see `shard_of`."""
        return self._has(shard_of(place or id, where))

    def begin(self, id: str, place: str | None = None, where: str | None = None, *, at_once: bool) -> bool:  # noqa: ARG002 - for who holds jobs
        """Whether a job of that id, which is added here, is ours. `at_once`: it has a start now."""
        return self.holds(id, place, where)

    def agent_of(self, id: str, place: str | None = None, where: str | None = None) -> str | None:
        """The name of the agent that has the job of that id, as was seen last; None: nobody has it."""
        view = self.view
        if view is None:
            return None
        shard = shard_of(place or id, where)
        owner = view.me if self._has(shard) else view.owner_of(shard)
        return next((peer.name for peer in view.peers if peer.epoch == owner), None)

    def _has(self, shard: int) -> bool:
        return bool(self._ours[shard]) if shard < SHARDS else shard in self._labelled

    @property
    def view(self) -> View | None:
        """The agents and their shards as they were seen last; None: not at all."""
        return None if self._sharing is None else self._sharing.last

    def take(self, shards: Iterable[int]) -> None:
        """Have these from now on."""
        for shard in shards:
            if shard < SHARDS:
                self._ours[shard] = 1
            else:
                self._labelled.add(shard)

    def give(self, shards: Iterable[int]) -> None:
        """Have these no more."""
        for shard in shards:
            if shard < SHARDS:
                self._ours[shard] = 0
            else:
                self._labelled.discard(shard)

    def is_idle(self) -> bool:
        """Whether no job of the store can be planned by our clock."""
        return not any(self._ours) and not self._labelled

    def all(self) -> list[int]:
        """The numbers of all that are ours."""
        return [*(shard for shard, is_ours in enumerate(self._ours) if is_ours), *sorted(self._labelled)]
