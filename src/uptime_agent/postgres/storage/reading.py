"""Reading: what stores answer to who looks into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from attrs import evolve, frozen

from ..contract import Failure, MetricStore, OutcomeKind, ProbeOutcome
from .retention import Retention

LAST_KINDS: Final = frozenset({OutcomeKind.STORED, OutcomeKind.PARTIAL})
"""Ends of a probe that answered: `last` tells of these."""

FIGURES: Final = ("lateness", "waited", "executed", "stored", "rows", "cost")


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


@frozen
class Stock:
    """An account of what is stored of a probe on a target. `last`: UTC seconds. `bytes`: its share of the probe's
    table, by rows; None: nobody knows.
    """

    target: str
    probe: str
    databases: int
    samples: int
    rows: int
    last: float
    bytes: int | None = None


class MetricReader(Protocol):
    """The part of a store that is for people. Newest first, at most `limit`; of one target and probe, or of all."""

    def samples(self, target: str | None = None, probe: str | None = None, *, limit: int = 100) -> list[StoredSample]:
        """Return stored samples."""

    def outcomes(self, target: str | None = None, probe: str | None = None, *, limit: int = 100) -> list[ProbeOutcome]:
        """Return records of probes that were due."""

    def stock(self) -> list[Stock]:
        """Return how much there is of each target and probe, in the order of their names."""


def with_sizes(found: Sequence[Stock], sizes: Mapping[str, int]) -> list[Stock]:
    """Share out the bytes of each probe's table among targets, by their rows."""
    rows: Counter[str] = Counter()
    for each in found:
        rows[each.probe] += each.rows
    return [
        evolve(each, bytes=sizes[each.probe] * each.rows // max(rows[each.probe], 1)) if each.probe in sizes else each
        for each in found
    ]


class ReadableStore(MetricStore, MetricReader, Protocol):
    """A store that can be looked into, and whose retention may change while it is open: each of ours."""

    retention: Retention


def outcome_of(target: str, probe: str, database: str, due: float, row: Sequence[Any]) -> ProbeOutcome:
    """Return a record. `row`: kind, failure, reason, then the figures in the order of FIGURES, as tables have them."""
    kind, failure, reason, *figures = row
    return ProbeOutcome(
        probe=probe,
        target=target,
        database=database or None,
        due=due,
        kind=OutcomeKind(kind),
        failure=Failure(failure) if failure else None,
        reason=reason,
        **dict(zip(FIGURES, figures, strict=True)),
    )
