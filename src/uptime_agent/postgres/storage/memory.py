"""Metrics in memory: a store in its shortest form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen

from ...instants import microseconds
from ..contract import ProbeOutcome, Sample
from .reading import LAST_KINDS, Stock, StoredSample
from .retention import Retention
from .shape import columns_to_add
from .values import fingerprint, normal_columns

Series = tuple[str, str, str]
"""Target, probe, and the database or ""."""


@frozen
class _Kept:
    columns: list[tuple[Any, ...]]
    names: tuple[str, ...]
    left_out: int
    hash: str | None


class MemoryMetrics:
    """A metric store in memory."""

    def __init__(self, retention: Retention | None = None) -> None:
        self.retention = retention or Retention()
        self._types: dict[str, dict[str, str]] = defaultdict(dict)
        self._samples: dict[Series, dict[int, _Kept]] = defaultdict(dict)
        self._outcomes: dict[Series, dict[int, ProbeOutcome]] = defaultdict(dict)

    def open(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def write(self, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome]) -> None:
        """Keep all, or none: raises Unstorable."""
        prepared = [(sample, columns_to_add(sample.probe, self._types[sample.probe.name])) for sample in samples]
        given = [normal_columns(sample) for sample in samples]
        hashes = [fingerprint(sample) if sample.probe.on_change else None for sample in samples]
        for (sample, added), columns, hash_ in zip(prepared, given, hashes, strict=True):
            self._types[sample.probe.name] |= {column.name: column.type.value for column in added}
            self._keep(sample, columns, hash_)
        for outcome in outcomes:
            series = (outcome.target, outcome.probe, outcome.database or "")
            self._outcomes[series].setdefault(microseconds(outcome.due), outcome)

    def newest(self, target: str, probe: str, database: str | None) -> str | None:
        """See MetricStore."""
        kept = self._samples.get((target, probe, database or ""))
        return kept[max(kept)].hash if kept else None

    def last(self, target: str, probe: str) -> float | None:
        """See MetricStore."""
        found = [at for series, kept in self._samples.items() if series[:2] == (target, probe) for at in kept]
        found += [
            due
            for series, kept in self._outcomes.items()
            if series[:2] == (target, probe)
            for due, outcome in kept.items()
            if outcome.kind in LAST_KINDS
        ]
        return max(found) / 1e6 if found else None

    def maintain(self, now: float) -> None:
        """See MetricStore."""
        for series, kept in [*self._samples.items()]:
            before = microseconds(now - self.retention.keep(*series[:2]))
            newest = max((at for at, each in kept.items() if each.hash is not None), default=None)
            for at in [at for at in kept if at < before and at != newest]:
                del kept[at]
            if not kept:
                del self._samples[series]
        for series, records in [*self._outcomes.items()]:
            before = microseconds(now - self.retention.keep(*series[:2]))
            for due in [due for due in records if due < before]:
                del records[due]
            if not records:
                del self._outcomes[series]

    def samples(
        self, target: str | None = None, probe: str | None = None, *, database: str | None = None, limit: int = 100
    ) -> list[StoredSample]:
        """See MetricReader."""
        found = [
            StoredSample(series[0], series[1], series[2] or None, at / 1e6, names, _rows(each, names), each.left_out)
            for series, kept in self._samples.items()
            if target in {None, series[0]} and probe in {None, series[1]} and database in {None, series[2]}
            for at, each in kept.items()
            for names in [tuple(self._types[series[1]])]
        ]
        return sorted(found, key=lambda sample: (-sample.at, sample.target, sample.probe, sample.database or ""))[
            :limit
        ]

    def outcomes(self, target: str | None = None, probe: str | None = None, *, limit: int = 100) -> list[ProbeOutcome]:
        """See MetricReader."""
        found = [
            evolve(outcome, due=due / 1e6)
            for series, records in self._outcomes.items()
            if target in {None, series[0]} and probe in {None, series[1]}
            for due, outcome in records.items()
        ]
        return sorted(found, key=lambda each: (-each.due, each.target, each.probe, each.database or ""))[:limit]

    def stock(self) -> list[Stock]:
        """See MetricReader."""
        found: dict[tuple[str, str], list[tuple[str, dict[int, _Kept]]]] = defaultdict(list)
        for (target, probe, database), kept in self._samples.items():
            found[target, probe].append((database, kept))
        return [
            Stock(
                target,
                probe,
                sum(bool(database) for database, _ in series),
                sum(len(kept) for _, kept in series),
                sum(len(each.columns[0]) for _, kept in series for each in kept.values()),
                max(max(kept) for _, kept in series) / 1e6,
            )
            for (target, probe), series in sorted(found.items())
        ]

    def _keep(self, sample: Sample, columns: list[tuple[Any, ...]], hash_: str | None) -> None:
        kept = self._samples[sample.target, sample.probe.name, sample.database or ""]
        at = microseconds(sample.at)
        before = max((each for each in kept if each < at), default=None)
        if at in kept or (hash_ is not None and before is not None and kept[before].hash == hash_):
            return
        names = tuple(column.name for column in sample.probe.columns)
        kept[at] = _Kept(columns, names, sample.left_out, hash_)


def _rows(kept: _Kept, names: tuple[str, ...]) -> tuple[tuple[Any, ...], ...]:
    by_name = dict(zip(kept.names, kept.columns, strict=True))
    empty = (None,) * len(kept.columns[0])
    return tuple(zip(*(by_name.get(name, empty) for name in names), strict=True))
