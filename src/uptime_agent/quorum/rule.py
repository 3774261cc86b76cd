"""Quorum: several nodes check a target, and enough of them must find it down."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen


@frozen(kw_only=True)
class Quorum:
    """Which nodes check a target, and how many must find it down.

    `where`: labels that these nodes have. `agents`: how many nodes check it; None: all of these. `apart`: the label in
    which the chosen nodes differ if possible. `votes`: how many must find it down; None: more than half. `least`: how
    many must be present; None: as `votes`.
    """

    where: Mapping[str, str] = field(factory=dict, hash=False)
    agents: int | None = 1
    apart: str = "zone"
    votes: int | None = None
    least: int | None = None

    def votes_of(self, asked: int) -> int:
        """How many of `asked` nodes must find the target down."""
        wanted = asked if self.agents is None else self.agents
        votes = wanted // 2 + 1 if self.votes is None else self.votes
        return max(min(votes, asked), 1)

    def least_of(self, asked: int) -> int:
        """How many nodes must be present."""
        if self.least is not None:
            return self.least
        wanted = asked if self.agents is None else self.agents
        return wanted // 2 + 1 if self.votes is None else self.votes
