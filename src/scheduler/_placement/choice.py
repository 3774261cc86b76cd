"""The choice of agents. All who know the same agents choose the same, without a word.

Each agent draws a number for whatever is to be placed, and the highest are chosen: so agents have like shares, and when
one goes, only what it had is chosen anew. The draw goes by the name of an agent, which a restart need not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Protocol, TypeVar


class Candidate(Protocol):
    """An agent that is there, as far as a choice looks at it. `epoch`: of its incarnation, which no other has."""

    @property
    def name(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


C = TypeVar("C", bound=Candidate)


def chosen(key: str, agents: Iterable[C], count: int | None, apart: str) -> tuple[C, ...]:
    """Choose so many of these agents for what has that key; None: all of them. First: who drew the most.

    `apart`: the label in which they differ as far as there is a choice.
    """
    ranked = sorted(agents, key=lambda agent: (_draw(key, agent), agent.epoch), reverse=True)
    return tuple(ranked) if count is None else tuple(_spread(ranked, apart)[:count])


def _draw(key: str, agent: Candidate) -> bytes:
    return blake2b(f"{agent.name}\0{key}".encode("utf-8", "replace"), digest_size=8).digest()


def _spread(ranked: list[C], label: str) -> list[C]:
    """Put the first of each value of the label before the second of any, and so on. Who has none is its own value."""
    rounds: dict[str, int] = {}
    keyed = []
    for place, agent in enumerate(ranked):
        value = agent.labels.get(label, f"\0{agent.epoch}")
        rounds[value] = rounds.get(value, 0) + 1
        keyed.append((rounds[value], place, agent))
    return [agent for _, _, agent in sorted(keyed, key=lambda each: each[:2])]


def assigned(owners: Sequence[int], chosen: Sequence[int]) -> list[int]:
    """To whom each part belongs, by right. 0: to nobody, for the parts are more than the chosen.

    `owners`: who has each now; 0: nobody. `chosen`: who is to have one each. Whoever is chosen and has a part keeps it,
    or a death would move the parts of all others. The rest goes to those who have none, in their order.
    """
    kept: dict[int, int] = {}
    for part, owner in enumerate(owners):
        if owner in chosen and owner not in kept.values():
            kept[part] = owner
    without = iter([agent for agent in chosen if agent not in kept.values()])
    return [kept[part] if part in kept else next(without, 0) for part in range(len(owners))]
