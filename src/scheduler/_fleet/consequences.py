"""Consequences of commits for a node, with or without a queue."""

from __future__ import annotations

from attrs import frozen

from .._commits import Consequences
from ..stores import Batch, Receipt, StoredJob, StoreError
from .lease import LeaseGuard, StoreWays
from .queue import Dispatch
from .requests import Requests


@frozen(eq=False)
class SharedConsequences:
    lease_guard: LeaseGuard
    ways: StoreWays
    requests: Requests

    def tried(self, error: Exception | None) -> None:
        self.ways.tried("commits", error)

    def failed(self, error: StoreError) -> bool:
        self.lease_guard.doubt(error)
        return False

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        """Do nothing."""

    def lost(self, batch: Batch) -> None:
        """Do nothing."""

    def give_way(self, row: StoredJob, on_conflict: str) -> Exception | None:
        return self.requests.give_way(row, on_conflict)


@frozen(eq=False)
class QueuedConsequences:
    others: Consequences
    dispatch: Dispatch
    requests: Requests

    def tried(self, error: Exception | None) -> None:
        self.others.tried(error)

    def failed(self, error: StoreError) -> bool:
        return self.others.failed(error)

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        self.dispatch.committed(batch, receipt)

    def lost(self, batch: Batch) -> None:
        self.dispatch.lost(batch)

    def give_way(self, row: StoredJob, on_conflict: str) -> Exception | None:
        return self.requests.give_way(row, on_conflict)
