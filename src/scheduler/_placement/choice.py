"""The choice of nodes. Nodes that know the same nodes choose the same, without a message.

Each node draws a number for each key, and the highest are chosen. So nodes have like shares, and when a node goes, only
its jobs are chosen again. The draw uses the name of a node, which a restart need not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Protocol, TypeVar


class Candidate(Protocol):
    """A present node, as a choice sees it. `epoch`: of its incarnation, which no other has."""

    @property
    def name(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


C = TypeVar("C", bound=Candidate)


def chosen(key: str, agents: Iterable[C], count: int | None, apart: str) -> tuple[C, ...]:
    """Choose `count` of these nodes for that key, the highest draw first. None: all of them.

    `apart`: the label in which they differ as far as there is a choice.
    """
    ranked = sorted(agents, key=lambda agent: (_draw(key, agent), agent.epoch), reverse=True)
    return tuple(ranked) if count is None else tuple(_spread(ranked, apart)[:count])


def _draw(key: str, agent: Candidate) -> bytes:
    return blake2b(f"{agent.name}\0{key}".encode("utf-8", "replace"), digest_size=8).digest()


def _spread(ranked: list[C], label: str) -> list[C]:
    """Put the first node of each value of the label before the second of any, and so on.

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
    """Return the epoch of each part's rightful owner. 0: none, because there are more parts than chosen nodes.

    `owners`: the present owner of each part; 0: none. `chosen`: the nodes that should have one part each. A chosen node
    that has a part keeps it; otherwise a death would move the parts of all others. The other parts go to chosen nodes
    without a part, in their order.
    """
    kept: dict[int, int] = {}
    for part, owner in enumerate(owners):
        if owner in chosen and owner not in kept.values():
            kept[part] = owner
    without = iter([agent for agent in chosen if agent not in kept.values()])
    return [kept[part] if part in kept else next(without, 0) for part in range(len(owners))]
