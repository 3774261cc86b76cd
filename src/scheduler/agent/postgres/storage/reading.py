"""Reading: what stores answer to who looks into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from attrs import frozen

from ..contract import MetricStore, OutcomeKind, ProbeOutcome
from .retention import Retention

LAST_KINDS: Final = frozenset({OutcomeKind.STORED, OutcomeKind.PARTIAL})
"""Ends of a probe that answered: `last` tells of these."""


@frozen
class StoredSample:
    """A sample as it is stored. `at`: UTC seconds. The rows are in the order of `columns`, in the form of storage."""

    target: str
    probe: str
    database: str | None
    at: float
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    left_out: int = 0


class MetricReader(Protocol):
    """The part of a store that is for people. Newest first, at most `limit`; of one target and probe, or of all."""

    def samples(self, target: str | None = None, probe: str | None = None, *, limit: int = 100) -> list[StoredSample]:
        """Return stored samples."""

    def outcomes(self, target: str | None = None, probe: str | None = None, *, limit: int = 100) -> list[ProbeOutcome]:
        """Return records of probes that were due."""


class ReadableStore(MetricStore, MetricReader, Protocol):
    """A store that can be looked into, and whose retention may change while it is open: each of ours."""

    retention: Retention


def newest_of_each(samples: Sequence[StoredSample]) -> list[StoredSample]:
    """Return the first sample of each target, probe and database, in their order."""
    firsts: dict[tuple[str, str, str | None], StoredSample] = {}
    for sample in samples:
        firsts.setdefault((sample.target, sample.probe, sample.database), sample)
    return list(firsts.values())
