"""Parts: a job that several nodes run is divided into jobs of one node each. A text says which node may have a part.

    region=eu                          any node with that label: no part
    region=eu | 2 of 3 apart by zone   the second of three nodes with that label
    any | agent web-1                  the node of that name, whatever its labels are

To versions that know no parts these are labels that no node has. The texts stand in stores: they may not change.
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
    """One of `count` parts, each on another node with these labels. `number` counts from 1.

    `apart`: the label in which these nodes differ as far as there is a choice.
    """

    labels: str | None
    number: int
    count: int
    apart: str

    @property
    def text(self) -> str:
        """The part's text in a store."""
        return f"{self.labels or _ANY}{_BETWEEN}{self.number} of {self.count} apart by {self.apart}"

    def siblings(self) -> list[OneOf]:
        """Return all parts, in their order."""
        return [OneOf(self.labels, number, self.count, self.apart) for number in range(1, self.count + 1)]


@frozen
class OfAgent:
    """The part of the node of that name, if it has these labels."""

    labels: str | None
    agent: str

    @property
    def text(self) -> str:
        """The part's text in a store."""
        return f"{self.labels or _ANY}{_BETWEEN}{_OF_AGENT}{self.agent}"


def is_part(where: str | None) -> bool:
    """Return whether the text is that of a part."""
    return where is not None and _BETWEEN in where and read_part(where) is not None


@lru_cache(maxsize=4_096)
def read_part(where: str) -> OneOf | OfAgent | None:
    """Read the text of a part. None: it is none."""
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
    """Return whether the node may have a job for these labels, or that part. False for any other text."""
    part = read_part(where)
    if part is None:
        return has_labels(agent.labels, where)
    if isinstance(part, OfAgent) and part.agent != agent.name:
        return False
    return part.labels is None or has_labels(agent.labels, part.labels)


def lacks(where: str, agents: Iterable[Candidate]) -> bool:
    """Return whether these nodes are too few for such labels, or for all parts of that part's job."""
    part = read_part(where)
    wanted = part.count if isinstance(part, OneOf) else 1
    return sum(fits(agent, where) for agent in agents) < wanted


def lack_text(where: str) -> str:
    """Return the words for what is lacking when nodes are too few."""
    match read_part(where):
        case None:
            return f"no agent has {where}"
        case OfAgent(labels, agent):
            return f"agent {agent!r} is not there" if labels is None else f"no agent {agent!r} has {labels}"
        case OneOf(labels, _, count, _):
            return f"fewer than {count} agents {'are there' if labels is None else f'have {labels}'}"
