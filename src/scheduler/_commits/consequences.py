"""Consequences: what follows from a commit for other nodes, or for a queue."""

from __future__ import annotations

from typing import Protocol

from ..stores import Batch, Receipt, StoredJob, StoreError, StoreTakenOver


class Consequences(Protocol):
    """The consequences of one scheduler's commits. Called on the loop; `committed` and `lost` at its end, too."""

    def tried(self, error: Exception | None) -> None:
        """Note that a commit has been answered. None: it got through."""

    def failed(self, error: StoreError) -> bool:
        """Note that the store has failed. Return whether that is the end: another scheduler has it for good."""

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        """Act on a batch that is durable, and on its refused parts."""

    def lost(self, batch: Batch) -> None:
        """Act on a batch that no store can take."""

    def give_way(self, row: StoredJob, on_conflict: str) -> Exception | None:
        """Replace a job of ours by this row, which another node has added first. Return the error, if any."""


class NoConsequences:
    """The consequences for a store that is not shared: none."""

    def tried(self, error: Exception | None) -> None:
        """Do nothing."""

    def failed(self, error: StoreError) -> bool:
        """Return whether another scheduler has taken over the store."""
        return isinstance(error, StoreTakenOver)

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        """Do nothing."""

    def lost(self, batch: Batch) -> None:
        """Do nothing."""

    def give_way(self, row: StoredJob, on_conflict: str) -> Exception | None:  # noqa: ARG002 - no other node adds rows
        """Return None: no other row is there."""
        return None
