"""News of storage: what a person should find in the log. Each says itself in its text."""

from __future__ import annotations

from attrs import frozen

from .spool import Counts


@frozen
class StoreLost:
    """The store does not take what it is given; it goes to the spool."""

    error: str

    def __str__(self) -> str:
        return f"metrics are kept in the spool, because of: {self.error}"


@frozen
class StoreBack:
    """The store works again; the spool is being replayed."""

    waiting: Counts

    def __str__(self) -> str:
        return f"metrics are stored again; to be replayed: {self.waiting}"


@frozen
class Replayed:
    """All that waited in the spool is stored."""

    counts: Counts

    def __str__(self) -> str:
        return f"the spool is empty, replayed: {self.counts}"


@frozen
class Lost:
    """Measurements are gone: the spool was full, damaged or could not be written, or the queue was full."""

    counts: Counts
    why: str

    def __str__(self) -> str:
        return f"metrics are lost ({self.why}): {self.counts}"


@frozen
class Refused:
    """A sample that no store can hold."""

    target: str
    probe: str
    error: str

    def __str__(self) -> str:
        return f"a sample of probe {self.probe} on {self.target} cannot be stored: {self.error}"


StorageNews = StoreLost | StoreBack | Replayed | Lost | Refused
