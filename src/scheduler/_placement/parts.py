"""A job that several nodes run has a part for each. A text says which node may have it.

    region=eu                          any node with that label: no part
    region=eu | 2 of 3 apart by zone   the second of three such nodes
    any | agent web-1                  the node of that name

To versions without parts, no node has such labels. Stores hold these texts: they may not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from attrs import frozen

from .choice import Candidate
from .labels import has_labels, labels_of

EVERY_AGENT: Final = "all"

_BETWEEN: Final = " | "
_ANY: Final = "any"
_ONE_OF: Final = re.compile(r"([1-9][0-9]{0,3}) of ([1-9][0-9]{0,3}) apart by ([^\s=,]{1,63})")
_OF_AGENT: Final = "agent "


@frozen
class OneOf:
    """`number` counts from 1.

    `apart`: the label in which the nodes differ if possible.
    """

    labels: str | None
    number: int
    count: int
    apart: str

    @property
    def text(self) -> str:
        """As stored."""
        return f"{self.labels or _ANY}{_BETWEEN}{self.number} of {self.count} apart by {self.apart}"

    def siblings(self) -> list[OneOf]:
        return [OneOf(self.labels, number, self.count, self.apart) for number in range(1, self.count + 1)]


@frozen
class OfAgent:
    labels: str | None
    agent: str

    @property
    def text(self) -> str:
        """As stored."""
        return f"{self.labels or _ANY}{_BETWEEN}{_OF_AGENT}{self.agent}"


def is_part(where: str | None) -> bool:
    return where is not None and _BETWEEN in where and read_part(where) is not None


@lru_cache(maxsize=4_096)
def read_part(where: str) -> OneOf | OfAgent | None:
    before, found, said = where.partition(_BETWEEN)
    if not found:
        return None
    labels = None if before == _ANY else before
    try:
        if labels is not None:
            labels_of(labels)
    except ValueError:
        return None
    if said.startswith(_OF_AGENT):
        return OfAgent(labels, said.removeprefix(_OF_AGENT))
    numbers = _ONE_OF.fullmatch(said)
    if numbers is None or int(numbers[1]) > int(numbers[2]):
        return None
    return OneOf(labels, int(numbers[1]), int(numbers[2]), numbers[3])


def fits(agent: Candidate, where: str) -> bool:
    part = read_part(where)
    if part is None:
        return has_labels(agent.labels, where)
    if isinstance(part, OfAgent) and part.agent != agent.name:
        return False
    return part.labels is None or has_labels(agent.labels, part.labels)


def lacks(where: str, agents: Iterable[Candidate]) -> bool:
    """Too few nodes for the labels, or all parts."""
    part = read_part(where)
    wanted = part.count if isinstance(part, OneOf) else 1
    return sum(fits(agent, where) for agent in agents) < wanted


def lack_text(where: str) -> str:
    match read_part(where):
        case None:
            return f"no node has {where}"
        case OfAgent(labels, agent):
            return f"node {agent!r} is not there" if labels is None else f"no node {agent!r} has {labels}"
        case OneOf(labels, _, count, _):
            return f"fewer than {count} nodes {'are there' if labels is None else f'have {labels}'}"
