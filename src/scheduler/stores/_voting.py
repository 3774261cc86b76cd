"""The seam over which agents that share a store tell each other what they have found at one instant."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from attrs import frozen


@frozen
class Vote:
    """A vote: `said`, JSON, by the agent of that epoch, about a subject at an instant, in UTC microseconds."""

    subject: str
    due_us: int
    epoch: int
    said: str


class Voting(Protocol):
    """The verbs of votes. All are synchronous, and raise what those of a Store raise. One thread at a time calls them.

    Votes are no records: whoever decides keeps what they said.
    """

    def cast(self, votes: Sequence[Vote]) -> None:
        """Put down what we say. A second vote of one agent on the same is not taken. Of the dead none is."""

    def votes(self, asked: Collection[tuple[str, int]]) -> list[Vote]:
        """Return what has been said so far about these, each a subject and an instant."""

    def forget(self, before_us: int) -> int:
        """Delete the votes about instants before that one. Return how many there were."""
