"""The reading of stores, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from attrs import evolve, frozen

from ..contract import Failure, MetricStore, OutcomeKind, ProbeOutcome
from .retention import Retention

LAST_KINDS: Final = frozenset({OutcomeKind.STORED, OutcomeKind.PARTIAL})
"""The probe answered."""

FIGURES: Final = ("lateness", "waited", "executed", "stored", "rows", "cost")


@frozen
class StoredSample:
    """A stored sample. `at`: UTC seconds. Values are in the form of storage."""

    target: str
    probe: str
    database: str | None
    at: float
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    left_out: int = 0


@frozen
class Stock:
    """A probe's amount. `last`: UTC seconds. `bytes`: by rows; None: unknown."""

    target: str
    probe: str
    databases: int
    samples: int
    rows: int
    last: float
    bytes: int | None = None


class MetricReader(Protocol):
    """A store for people. Newest first; target or probe None: all."""

    def samples(
        self, target: str | None = None, probe: str | None = None, *, database: str | None = None, limit: int = 100
    ) -> list[StoredSample]:
        """Return stored samples. `database` None: of the server, and of each database."""

    def outcomes(self, target: str | None = None, probe: str | None = None, *, limit: int = 100) -> list[ProbeOutcome]:
        """Return records of due probes."""

    def stock(self) -> list[Stock]:
        """Return amounts, sorted."""


def with_sizes(found: Sequence[Stock], sizes: Mapping[str, int]) -> list[Stock]:
    """Divide probes' bytes among targets, by rows."""
    rows: Counter[str] = Counter()
    for each in found:
        rows[each.probe] += each.rows
    return [
        evolve(each, bytes=sizes[each.probe] * each.rows // max(rows[each.probe], 1)) if each.probe in sizes else each
        for each in found
    ]


class ReadableStore(MetricStore, MetricReader, Protocol):
    """A readable store, whose retention may change while open."""

    retention: Retention


def outcome_of(target: str, probe: str, database: str, due: float, row: Sequence[Any]) -> ProbeOutcome:
    """Return a record. `row`: kind, failure, reason, FIGURES."""
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
