"""Shards: the parts into which the jobs of a shared store are divided, and which of them are ours."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from hashlib import blake2b, md5
from typing import Final

from ._sharing import Sharing, View

SHARDS: Final = 1_024
"""A number that may not change: it stands in the tables of stores."""


def shard_of(place: str) -> int:
    """The shard of a place, which is a job's id unless the job says otherwise: the same here and in the tables."""
    digest = md5(place.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4]) % SHARDS


def rightful_owners(agents: Iterable[int]) -> list[int]:
    """The agent, by the epoch of its incarnation, to whom each shard belongs when these are there. 0: there is none.

    Each shard goes to the agent that draws the highest number for it. So all who know the same agents know the same
    owners; an agent that comes takes a fair part from each, and one that goes leaves a fair part to each.
    """
    return list(_rightful_owners(tuple(agents)))


@lru_cache(maxsize=4)
def _rightful_owners(agents: tuple[int, ...]) -> list[int]:
    best = [(b"", 0)] * SHARDS
    for agent in agents:
        for shard, draw in enumerate(_draws(agent)):
            best[shard] = max(best[shard], (draw, agent))
    return [agent for _, agent in best]


def _draws(agent: int) -> Iterable[bytes]:
    for shard in range(SHARDS):
        yield blake2b(b"%d %d" % (agent, shard), digest_size=8).digest()


def heirs(view: View, gone: Collection[int]) -> dict[int, int]:
    """To whom the shards of these agents belong by right once they have gone, and those that nobody has."""
    living = [peer.epoch for peer in view.peers if peer.left >= 0 and not peer.is_off and peer.epoch not in gone]
    rightful = rightful_owners(living)
    return {n: rightful[n] for n, owner in enumerate(view.owners) if living and (not owner or owner in gone)}


class Shares:
    """The shards that are ours, and who has the others. Changed on the loop; any thread may ask."""

    are_asked = True
    """The agents that have the others may be asked for what concerns them."""

    def __init__(self, sharing: Sharing | None = None) -> None:
        self._ours = bytearray(SHARDS)
        self._sharing = sharing

    def holds(self, id: str, place: str | None = None) -> bool:
        """Whether the job of that id is ours, which is at that place; None: it is one by itself."""
        return bool(self._ours[shard_of(place or id)])

    def begin(self, id: str, place: str | None = None, *, at_once: bool) -> bool:  # noqa: ARG002 - for who holds jobs
        """Whether a job of that id, which is added here, is ours. `at_once`: it has a start now."""
        return self.holds(id, place)

    def agent_of(self, id: str, place: str | None = None) -> str | None:
        """The name of the agent that has the job of that id, as was seen last; None: nobody has it."""
        view = self.view
        if view is None:
            return None
        shard = shard_of(place or id)
        owner = view.me if self._ours[shard] else view.owners[shard]
        return next((peer.name for peer in view.peers if peer.epoch == owner), None)

    @property
    def view(self) -> View | None:
        """The agents and their shards as they were seen last; None: not at all."""
        return None if self._sharing is None else self._sharing.last

    def take(self, shards: Iterable[int]) -> None:
        """Have these from now on."""
        for shard in shards:
            self._ours[shard] = 1

    def give(self, shards: Iterable[int]) -> None:
        """Have these no more."""
        for shard in shards:
            self._ours[shard] = 0

    def is_idle(self) -> bool:
        """Whether no job of the store can be planned by our clock."""
        return not any(self._ours)

    def all(self) -> list[int]:
        """The numbers of all that are ours."""
        return [shard for shard, is_ours in enumerate(self._ours) if is_ours]
