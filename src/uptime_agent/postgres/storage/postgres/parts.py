"""One probe's samples, prepared and copied together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import Any, Final

from attrs import frozen

from ....instants import microseconds
from ...contract import Column, Probe, Sample
from ..shape import table_of
from ..values import normal_values
from .copying import copy_text, row_heads

Key = tuple[str, str, str]
"""Target, probe, and the database or ""."""

ROWS: Final = 2_000
"""The server begins soon, yet columns are processed as a whole."""


@frozen
class SampleColumns:
    """One probe's samples. `values`: by column."""

    probe: Probe
    samples: Sequence[Sample]
    values: Sequence[Sequence[Any]]

    @property
    def into(self) -> tuple[str, tuple[str, ...]]:
        """The table, and its columns."""
        return table_of(self.probe), tuple(column.name for column in self.probe.columns)

    def text(self, series: Mapping[Key, int], new: set[tuple[int, int]]) -> bytes:
        """Return `new` samples' text, and remove them there."""
        heads: list[str] = []
        wanted: list[bool] = []
        for sample in self.samples:
            key = series[key_of(sample)], microseconds(sample.at)
            wanted += [key in new] * len(sample.rows)
            if key in new:
                new.discard(key)
                heads += row_heads(*key, len(sample.rows))
        if not heads:
            return b""
        columns: Sequence[Column] = self.probe.columns
        if len(heads) == len(wanted):
            return copy_text(heads, columns, self.values)
        return copy_text(heads, columns, [tuple(compress(each, wanted)) for each in self.values])


def parted(samples: Iterable[Sample]) -> Iterator[SampleColumns]:
    """Yield parts by table. Raises Unstorable."""
    of_tables: dict[object, list[Sample]] = {}
    of_probes: dict[int, list[Sample]] = {}
    """By identity: comparing columns takes longer than writing a row."""
    for sample in samples:
        probe = sample.probe
        found = of_probes.get(id(probe))
        if found is None:
            found = of_probes[id(probe)] = of_tables.setdefault((probe.name, probe.columns), [])
        found.append(sample)
    for found in of_tables.values():
        some: list[Sample] = []
        rows = 0
        for sample in found:
            some.append(sample)
            rows += len(sample.rows)
            if rows >= ROWS:
                yield _part(some)
                some, rows = [], 0
        if some:
            yield _part(some)


def key_of(sample: Sample) -> Key:
    """Return a sample's series."""
    return sample.target, sample.probe.name, sample.database or ""


def _part(samples: Sequence[Sample]) -> SampleColumns:
    probe = samples[0].probe
    return SampleColumns(probe, samples, normal_values(probe, list(chain.from_iterable(each.rows for each in samples))))
