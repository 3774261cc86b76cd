"""Metric stores.

Verbs are called on the store's thread, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .outcome import ProbeOutcome
from .sample import Sample


class StoreUnavailable(Exception):
    """The store cannot write now. The batch may be written later."""


class MetricStore(Protocol):
    """Keeps samples and outcomes. Each verb may raise StoreUnavailable."""

    def open(self) -> None:
        """Connect, and make missing tables and columns."""

    def write(self, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome]) -> None:
        """Keep these in one transaction, except `on_change` samples equal to the newest."""

    def newest(self, target: str, probe: str, database: str | None) -> str | None:
        """Return the fingerprint of an `on_change` probe's newest sample."""

    def last(self, target: str, probe: str) -> float | None:
        """Return when the last sample was due, in UTC seconds. A start continues its grid."""

    def maintain(self, now: float) -> None:
        """Remove data beyond its retention, prepare coming writes. `now`: UTC seconds."""

    def close(self) -> None:
        """Close everything. Written data stays."""
