"""Metric stores: where samples and outcomes are kept, and for how long.

The verbs are synchronous and called on the store's thread, one after the other. `write` is a transaction: an error
undoes all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .outcome import ProbeOutcome
from .sample import Sample


class StoreUnavailable(Exception):
    """The store cannot be reached or cannot write now. The same batch may be written later."""


class MetricStore(Protocol):
    """Keeps samples and outcomes. Each verb may raise StoreUnavailable."""

    def open(self) -> None:
        """Connect, and make what is missing: tables, columns of a newer release."""

    def write(self, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome]) -> None:
        """Keep these in one transaction. Of an `on_change` probe a sample equal to the newest one is left out."""

    def newest(self, target: str, probe: str, database: str | None) -> str | None:
        """Return the fingerprint of the newest sample of an `on_change` probe, or None."""

    def last(self, target: str, probe: str) -> float | None:
        """Return when the last sample was due, in UTC seconds, or None. A start continues its grid."""

    def maintain(self, now: float) -> None:
        """Remove what is older than its retention, and prepare coming writes. `now`: UTC seconds."""

    def close(self) -> None:
        """Close everything. Written data stays."""
