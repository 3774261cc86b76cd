"""Consequences of a commit for other nodes, or for a queue."""

from __future__ import annotations

from typing import Protocol

from ..stores import Batch, Receipt, StoredJob, StoreError, StoreTakenOver


class Consequences(Protocol):
    """Consequences of one scheduler's commits. On the loop; `committed` and `lost` also after its end."""

    def tried(self, error: Exception | None) -> None:
        """Note the answer to a commit. None: success."""

    def failed(self, error: StoreError) -> bool:
        """Return whether another scheduler has the store for good."""

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        """Act on a durable batch."""

    def lost(self, batch: Batch) -> None:
        """Act on a batch that no store can take."""

    def give_way(self, row: StoredJob, on_conflict: str) -> Exception | None:
        """Replace our job by another node's earlier row. Return the error, if any."""


class NoConsequences:
    def tried(self, error: Exception | None) -> None:
        """Do nothing."""

    def failed(self, error: StoreError) -> bool:
        return isinstance(error, StoreTakenOver)

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        """Do nothing."""

    def lost(self, batch: Batch) -> None:
        """Do nothing."""

    def give_way(self, row: StoredJob, on_conflict: str) -> Exception | None:  # noqa: ARG002 - no other node adds rows
        return None
