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
"""Shards of jobs without labels. The number is in the tables of stores and must not change."""

SHARDS_OF_LABELS: Final = 16
"""Shards of the jobs of one label text, numbered from SHARDS on. This must not change, either."""


def shard_of(place: str, where: str | None = None) -> int:
    """Return the shard of a place, which is a job's id unless the job names one. The tables compute the same.

    `where`: the labels that its node must have; None: any node may have it.
    """
    drawn = int.from_bytes(_digest(place)[:4])
    return drawn % SHARDS if where is None else _first_shard(where) + drawn % SHARDS_OF_LABELS


def where_of(options: str | None) -> str | None:
    """Return the labels in a job's stored options. The tables compute the same."""
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
    """Return the node, by its epoch, to which each shard belongs if these nodes are there. 0: none.

    Each shard goes to the node that draws the highest number for it. So all nodes that know the same nodes know the
    same owners. A new node takes a fair share from each of the others; a node that leaves spreads its share over them.
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
    """Return a node's draws for all shards. They are cached, because a takeover is urgent."""
    return array("Q", (int.from_bytes(_draw(agent, shard)) for shard in range(SHARDS)))


def _draw(agent: int, shard: int) -> bytes:
    return blake2b(b"%d %d" % (agent, shard), digest_size=8).digest()


@lru_cache(maxsize=65_536)
def _rightful_owner(shard: int, agents: tuple[int, ...]) -> int:
    """Return the node to which a shard of labels belongs. 0: there are none."""
    return max(((_draw(agent, shard), agent) for agent in agents), default=(b"", 0))[1]


class Rightful:
    """The assignment of shards to living nodes whose clocks are right and whose labels fit.

    An unsettled node counts only where there is no other. `gone`: nodes that no longer count. The shards of the parts
    of one job each belong to a different chosen node.
    """

    def __init__(self, view: View, gone: Collection[int] = ()) -> None:
        self._view = view
        self._living = [p for p in view.peers if p.left >= 0 and not p.is_off and p.epoch not in gone]
        self._owners = _rightful_owners(_settled(self._living))
        self._fit: dict[str, list[Peer]] = {}
        self._assigned: dict[int, list[int]] = {}
        """The owners of the parts, in their order, by the number of the first part's shard."""

    def __getitem__(self, shard: int) -> int:
        """Return the owner, by its epoch. 0: there is none."""
        if shard < SHARDS:
            return self._owners[shard]
        found = self._view.labelled.get(shard)
        if found is None:  # its row has been deleted
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
    """Return the epochs of the settled nodes, or of all nodes if none is settled."""
    return tuple(peer.epoch for peer in living if not peer.is_unsettled) or tuple(peer.epoch for peer in living)


def heirs(view: View, gone: Collection[int]) -> dict[int, int]:
    """Return the owners of these nodes' shards once they have gone, and of shards without an owner."""
    rightful = Rightful(view, gone)
    given = {shard: rightful[shard] for shard, owner in view.shards() if not owner or owner in gone}
    return {shard: owner for shard, owner in given.items() if owner}


class Shares:
    """The shards that are ours, and the owners of the others. Changed on the loop; any thread may ask."""

    is_shared = True
    """Nodes that share the store have jobs of their own, and add some."""
    are_asked = True
    """The owners of other shards may be asked for acts on their jobs."""
    know_parts = True
    """Jobs that several nodes run have parts in this store."""

    def __init__(self, sharing: Sharing | None = None) -> None:
        self._ours = bytearray(SHARDS)
        self._labelled: set[int] = set()
        self._sharing = sharing

    @property
    def know_labels(self) -> bool:
        """Whether jobs with labels go to nodes that have them."""
        return True

    def holds(self, id: str, place: str | None = None, where: str | None = None) -> bool:
        """Whether the job of that id is ours. `place` None: its own id. `where`: see `shard_of`."""
        return self._has(shard_of(place or id, where))

    def begin(self, id: str, place: str | None = None, where: str | None = None, *, at_once: bool) -> bool:  # noqa: ARG002 - for owners that hold jobs
        """Whether a job of that id, which is added here, is ours. `at_once`: it has a start now."""
        return self.holds(id, place, where)

    def agent_of(self, id: str, place: str | None = None, where: str | None = None) -> str | None:
        """Return the name of the node that has the job of that id, as last seen; None: none has it."""
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
        """The nodes and their shards as last seen; None: not yet."""
        return None if self._sharing is None else self._sharing.last

    def take(self, shards: Iterable[int]) -> None:
        """Make these shards ours."""
        for shard in shards:
            if shard < SHARDS:
                self._ours[shard] = 1
            else:
                self._labelled.add(shard)

    def give(self, shards: Iterable[int]) -> None:
        """Make these shards no longer ours."""
        for shard in shards:
            if shard < SHARDS:
                self._ours[shard] = 0
            else:
                self._labelled.discard(shard)

    def let_go(self) -> None:
        """Have nothing any more: others have taken us for dead, and what we had."""
        self.give(self.all())

    def is_idle(self) -> bool:
        """Whether no shard is ours."""
        return not any(self._ours) and not self._labelled

    def all(self) -> list[int]:
        """Return the numbers of our shards."""
        return [*(shard for shard, is_ours in enumerate(self._ours) if is_ours), *sorted(self._labelled)]
