"""The protocol by which the nodes of a store exchange votes and last results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from attrs import frozen

from ._rows import StoredTick


@frozen
class Vote:
    """A vote, `said` as JSON, by the node of this epoch about a subject at an instant."""

    subject: str
    due_us: int
    epoch: int
    said: str


class Voting(Protocol):
    """The methods of votes. Synchronous; they raise like Store. Any thread.

    Votes are no records: the deciding node keeps what they said.
    """

    def cast(self, votes: Sequence[Vote]) -> None:
        """Store our votes. A second vote on the same, or a dead node's, is ignored."""

    def votes(self, asked: Collection[tuple[str, int]]) -> list[Vote]:
        """Return the votes so far about these subjects and instants."""

    def forget(self, before_us: int) -> int:
        """Delete the votes about earlier instants. Return their number."""

    def latest(self, jobs: Collection[str]) -> list[StoredTick]:
        """Return each job's last record with a result, if any."""
