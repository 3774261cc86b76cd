"""The seam over which agents that share a store hear what others have found: at one instant, and last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from attrs import frozen

from ._rows import StoredTick


@frozen
class Vote:
    """A vote: `said`, JSON, by the agent of that epoch, about a subject at an instant, in UTC microseconds."""

    subject: str
    due_us: int
    epoch: int
    said: str


class Voting(Protocol):
    """The verbs of votes. All are synchronous, and raise what those of a Store raise. Any thread.

    Votes are no records: whoever decides keeps what they said.
    """

    def cast(self, votes: Sequence[Vote]) -> None:
        """Put down what we say. A second vote of one agent on the same is not taken. Of the dead none is."""

    def votes(self, asked: Collection[tuple[str, int]]) -> list[Vote]:
        """Return what has been said so far about these, each a subject and an instant."""

    def forget(self, before_us: int) -> int:
        """Delete the votes about instants before that one. Return how many there were."""

    def latest(self, jobs: Collection[str]) -> list[StoredTick]:
        """Return of each of these jobs the last record that has a result, if it has one; in any order."""
