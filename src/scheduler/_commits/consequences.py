"""Consequences: what follows from a commit for whoever else has the store, or holds its jobs."""

from __future__ import annotations

from typing import Protocol

from ..stores import Batch, Receipt, StoredJob, StoreError, StoreTakenOver


class Consequences(Protocol):
    """The consequences of one scheduler's commits. Called on the loop; `committed` and `lost` at its end, too."""

    def tried(self, error: Exception | None) -> None:
        """Take note that a commit has been answered. None: it got through."""

    def failed(self, error: StoreError) -> bool:
        """Take note that the store has failed. Return whether that is the end: somebody else has it for good."""

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        """Act on a batch that is durable, and on what of it was not carried out."""

    def lost(self, batch: Batch) -> None:
        """Act on a batch that no store can take."""

    def give_way(self, row: StoredJob, on_conflict: str) -> Exception | None:
        """Let a job of ours be as this row, which another node has added at the same moment. Return what is lost."""


class NoConsequences:
    """The consequences where the store is ours alone: there are none."""

    def tried(self, error: Exception | None) -> None:
        """Do nothing."""

    def failed(self, error: StoreError) -> bool:
        """Return whether another scheduler has taken the store over."""
        return isinstance(error, StoreTakenOver)

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        """Do nothing."""

    def lost(self, batch: Batch) -> None:
        """Do nothing."""

    def give_way(self, row: StoredJob, on_conflict: str) -> Exception | None:  # noqa: ARG002 - nobody else adds rows
        """Return None: no other row is there."""
        return None
