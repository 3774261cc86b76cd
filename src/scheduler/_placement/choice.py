"""Nodes that know the same nodes choose the same, without a message.

Each draws a number for each key, and the highest win: shares are like, and when a node goes, only its jobs move. A node
draws by its name, which survives a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Protocol, TypeVar


class Candidate(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


C = TypeVar("C", bound=Candidate)


def chosen(key: str, agents: Iterable[C], count: int | None, apart: str) -> tuple[C, ...]:
    """The highest draw first. `count` None: all.

    `apart`: the label in which they differ if possible.
    """
    ranked = sorted(agents, key=lambda agent: (_draw(key, agent), agent.epoch), reverse=True)
    return tuple(ranked) if count is None else tuple(_spread(ranked, apart)[:count])


def _draw(key: str, agent: Candidate) -> bytes:
    return blake2b(f"{agent.name}\0{key}".encode("utf-8", "replace"), digest_size=8).digest()


def _spread(ranked: list[C], label: str) -> list[C]:
    """The first node of each value of the label, then the second of each.

    A node without the label is its own value.
    """
    rounds: dict[str, int] = {}
    keyed = []
    for place, agent in enumerate(ranked):
        value = agent.labels.get(label, f"\0{agent.epoch}")
        rounds[value] = rounds.get(value, 0) + 1
        keyed.append((rounds[value], place, agent))
    return [agent for _, _, agent in sorted(keyed, key=lambda each: each[:2])]


def assigned(owners: Sequence[int], chosen: Sequence[int]) -> list[int]:
    """Return the epoch of each part's rightful owner. 0: there are too few nodes.

    A chosen node keeps its part: a death moves no other's. The rest goes, in order, to chosen nodes without one.
    """
    kept: dict[int, int] = {}
    for part, owner in enumerate(owners):
        if owner in chosen and owner not in kept.values():
            kept[part] = owner
    without = iter([agent for agent in chosen if agent not in kept.values()])
    return [kept[part] if part in kept else next(without, 0) for part in range(len(owners))]
