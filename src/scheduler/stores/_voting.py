"""The protocol over which the nodes of a store exchange votes about one instant, and the last results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from attrs import frozen

from ._rows import StoredTick


@frozen
class Vote:
    """A vote: `said`, JSON, by the node of that epoch, about a subject at an instant, in UTC microseconds."""

    subject: str
    due_us: int
    epoch: int
    said: str


class Voting(Protocol):
    """The verbs of votes. Synchronous. Each raises what Store's verbs raise. Any thread.

    Votes are no records: the node that decides keeps what they said.
    """

    def cast(self, votes: Sequence[Vote]) -> None:
        """Store our votes. A node's second vote on the same is not taken, nor is a dead node's."""

    def votes(self, asked: Collection[tuple[str, int]]) -> list[Vote]:
        """Return the votes so far about these, each a subject and an instant."""

    def forget(self, before_us: int) -> int:
        """Delete the votes about instants before that one. Return how many there were."""

    def latest(self, jobs: Collection[str]) -> list[StoredTick]:
        """Return of each of these jobs the last record that has a result, if it has one; in any order."""
