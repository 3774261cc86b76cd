"""Rules of quorum: which agents check a target, and how many of them must find it down."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen


@frozen(kw_only=True)
class Quorum:
    """A rule of quorum for one target.

    `where`: labels that an agent must have. `agents`: how many of those check it; None: each. `apart`: the label in
    which they differ as far as there is a choice. `votes`: how many must find it down; None: more than half of those
    that are asked. `least`: how many must be there; None: as many as `votes`.
    """

    where: Mapping[str, str] = field(factory=dict, hash=False)
    agents: int | None = 1
    apart: str = "zone"
    votes: int | None = None
    least: int | None = None

    def votes_of(self, asked: int) -> int:
        """How many must find it down, of so many that are asked: of fewer than there should be, all at the most."""
        wanted = asked if self.agents is None else self.agents
        votes = wanted // 2 + 1 if self.votes is None else self.votes
        return max(min(votes, asked), 1)

    def least_of(self, asked: int) -> int:
        """How many agents must be there, where so many are asked now."""
        if self.least is not None:
            return self.least
        wanted = asked if self.agents is None else self.agents
        return wanted // 2 + 1 if self.votes is None else self.votes
