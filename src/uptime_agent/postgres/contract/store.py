"""Metric stores: where samples and outcomes are kept, and how much of that for how long.

The verbs are synchronous and are called on one thread, the store's own, one after the other. `write` is a transaction:
after an error nothing of it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .outcome import ProbeOutcome
from .sample import Sample


class StoreUnavailable(Exception):
    """The store cannot be reached or cannot write now: the same batch may be written later."""


class MetricStore(Protocol):
    """Keeps what probes found. Each verb may raise StoreUnavailable."""

    def open(self) -> None:
        """Connect, and make what is missing: tables, columns that a newer version of us has."""

    def write(self, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome]) -> None:
        """Keep these, in one transaction. Of an `on_change` probe a sample equal to the newest one is left out."""

    def newest(self, target: str, probe: str, database: str | None) -> str | None:
        """Return the fingerprint of the newest sample of an `on_change` probe, or None."""

    def last(self, target: str, probe: str) -> float | None:
        """Return when the last sample was due, in UTC seconds, or None: where a start takes up the grid again."""

    def maintain(self, now: float) -> None:
        """Remove what is older than its retention, and make ready what will be written to. `now`: UTC seconds."""

    def close(self) -> None:
        """Let go of everything. What was written stays."""
