"""Metric stores.

Verbs are called on the store's thread, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .outcome import ProbeOutcome
from .sample import Sample


class StoreUnavailable(Exception):
    """The store cannot write now. The same batch may be written later."""


class MetricStore(Protocol):
    """Keeps samples and outcomes. Each verb may raise StoreUnavailable."""

    def open(self) -> None:
        """Connect, and make missing tables and columns."""

    def write(self, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome]) -> None:
        """Keep these in one transaction, except repeated `on_change` samples."""

    def newest(self, target: str, probe: str, database: str | None) -> str | None:
        """Return the fingerprint of the newest `on_change` sample."""

    def last(self, target: str, probe: str) -> float | None:
        """Return the last sample's due instant, in UTC seconds: a start continues its grid."""

    def maintain(self, now: float) -> None:
        """Remove old data, prepare coming writes. `now`: UTC seconds."""

    def close(self) -> None:
        """Close everything."""
