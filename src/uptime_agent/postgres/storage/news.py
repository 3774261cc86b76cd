"""News of storage for the log."""

from __future__ import annotations

from attrs import frozen

from .spool import Counts


@frozen
class StoreLost:
    """Batches go to the spool."""

    error: str

    def __str__(self) -> str:
        return f"metrics are kept in the spool, because of: {self.error}"


@frozen
class StoreBack:
    """The store works again."""

    waiting: Counts

    def __str__(self) -> str:
        return f"metrics are stored again; to be replayed: {self.waiting}"


@frozen
class Replayed:
    """The whole spool is stored."""

    counts: Counts

    def __str__(self) -> str:
        return f"the spool is empty, replayed: {self.counts}"


@frozen
class SamplesLost:
    """Measurements are gone."""

    counts: Counts
    why: str

    def __str__(self) -> str:
        return f"metrics are lost ({self.why}): {self.counts}"


@frozen
class SampleRefused:
    """No store can hold a sample."""

    target: str
    probe: str
    error: str

    def __str__(self) -> str:
        return f"a sample of probe {self.probe} on {self.target} cannot be stored: {self.error}"


StorageNews = StoreLost | StoreBack | Replayed | SamplesLost | SampleRefused
