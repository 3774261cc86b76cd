"""The shards into which the jobs of a shared store are divided."""

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
"""Shards of jobs without labels. Stored: must not change."""

SHARDS_OF_LABELS: Final = 16
"""Shards of each text of labels, numbered from SHARDS on. Must not change."""


def shard_of(place: str, where: str | None = None) -> int:
    """Return the shard of a place: the job's id or its `place`. SQL computes the same.

    `where`: the labels that its node needs.
    """
    drawn = int.from_bytes(_digest(place)[:4])
    return drawn % SHARDS if where is None else _first_shard(where) + drawn % SHARDS_OF_LABELS


def where_of(options: str | None) -> str | None:
    """Return a job's labels from its stored options, as SQL does."""
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
    """Return the epoch of each shard's rightful owner; 0: none.

    Each shard goes to the node that draws the highest number for it, so nodes that know the same nodes agree. A new
    node takes a fair share from each of the others; a leaving node spreads its share over them.
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
    """Cached, because a takeover is urgent."""
    return array("Q", (int.from_bytes(_draw(agent, shard)) for shard in range(SHARDS)))


def _draw(agent: int, shard: int) -> bytes:
    return blake2b(b"%d %d" % (agent, shard), digest_size=8).digest()


@lru_cache(maxsize=65_536)
def _rightful_owner(shard: int, agents: tuple[int, ...]) -> int:
    return max(((_draw(agent, shard), agent) for agent in agents), default=(b"", 0))[1]


class Assignment:
    """Assigns shards to living nodes whose clocks are right and whose labels fit.

    An unsettled node counts only if no settled node fits. The parts of one job go to different nodes. `gone`: nodes to
    leave out.
    """

    def __init__(self, view: View, gone: Collection[int] = ()) -> None:
        self._view = view
        self._living = [p for p in view.peers if p.left >= 0 and not p.is_off and p.epoch not in gone]
        self._owners = _rightful_owners(_settled(self._living))
        self._fit: dict[str, list[Peer]] = {}
        self._assigned: dict[int, list[int]] = {}
        """Owners of a job's parts, by the first part's shard."""

    def __getitem__(self, shard: int) -> int:
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
    return tuple(peer.epoch for peer in living if not peer.is_unsettled) or tuple(peer.epoch for peer in living)


def heirs(view: View, gone: Collection[int]) -> dict[int, int]:
    """Return new owners of these nodes' and of ownerless shards."""
    rightful = Assignment(view, gone)
    given = {shard: rightful[shard] for shard, owner in view.shards() if not owner or owner in gone}
    return {shard: owner for shard, owner in given.items() if owner}


class OwnedShards:
    """Our shards and the others' owners. Changed on the loop; any thread may ask."""

    is_shared = True
    are_asked = True
    know_parts = True

    def __init__(self, sharing: Sharing | None = None) -> None:
        self._ours = bytearray(SHARDS)
        self._labelled: set[int] = set()
        self._sharing = sharing

    @property
    def know_labels(self) -> bool:
        return True

    def holds(self, id: str, place: str | None = None, where: str | None = None) -> bool:
        return self._has(shard_of(place or id, where))

    def begin(self, id: str, place: str | None = None, where: str | None = None, *, at_once: bool) -> bool:  # noqa: ARG002 - for owners that hold jobs
        """Whether a job added here is ours."""
        return self.holds(id, place, where)

    def agent_of(self, id: str, place: str | None = None, where: str | None = None) -> str | None:
        """Return the name of the job's last seen node, if any."""
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
        return None if self._sharing is None else self._sharing.last

    def take(self, shards: Iterable[int]) -> None:
        for shard in shards:
            if shard < SHARDS:
                self._ours[shard] = 1
            else:
                self._labelled.add(shard)

    def give(self, shards: Iterable[int]) -> None:
        for shard in shards:
            if shard < SHARDS:
                self._ours[shard] = 0
            else:
                self._labelled.discard(shard)

    def let_go(self) -> None:
        """Give up all: others took us for dead."""
        self.give(self.all())

    def is_idle(self) -> bool:
        return not any(self._ours) and not self._labelled

    def all(self) -> list[int]:
        return [*(shard for shard, is_ours in enumerate(self._ours) if is_ours), *sorted(self._labelled)]
