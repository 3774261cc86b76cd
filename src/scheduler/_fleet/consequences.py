"""The consequences of commits for a node of a fleet, with or without a queue."""

from __future__ import annotations

from attrs import frozen

from .._commits import Consequences
from ..stores import Batch, Receipt, StoredJob, StoreError
from .lease import LeaseGuard, Ways
from .queue import Dispatch
from .requests import Requests


@frozen(eq=False)
class SharedConsequences:
    """The consequences in a shared store. A node that the others bury joins them again."""

    lease_guard: LeaseGuard
    ways: Ways
    requests: Requests

    def tried(self, error: Exception | None) -> None:
        """Note whether we can commit at all."""
        self.ways.tried("commits", error)

    def failed(self, error: StoreError) -> bool:
        """Doubt that our jobs are ours. Return False."""
        self.lease_guard.doubt(error)
        return False

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        """Do nothing."""

    def lost(self, batch: Batch) -> None:
        """Do nothing."""

    def give_way(self, row: StoredJob, on_conflict: str) -> Exception | None:
        """See Consequences."""
        return self.requests.give_way(row, on_conflict)


@frozen(eq=False)
class QueuedConsequences:
    """The consequences with a queue, in addition to those of other nodes."""

    others: Consequences
    dispatch: Dispatch
    requests: Requests

    def tried(self, error: Exception | None) -> None:
        """See Consequences."""
        self.others.tried(error)

    def failed(self, error: StoreError) -> bool:
        """See Consequences."""
        return self.others.failed(error)

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        """Tell the queue what is durable now."""
        self.dispatch.committed(batch, receipt)

    def lost(self, batch: Batch) -> None:
        """Release what the lost batch would have released."""
        self.dispatch.lost(batch)

    def give_way(self, row: StoredJob, on_conflict: str) -> Exception | None:
        """See Consequences."""
        return self.requests.give_way(row, on_conflict)
