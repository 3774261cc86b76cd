"""Batches: samples with the records of their runs, stored together or not at all.

A sample and its record share target, probe, database and instant. A sample that no store can hold leaves its batch, and
its record says so. So no record tells of rows that are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from attrs import evolve, frozen

from ..contract import Failure, OutcomeKind, ProbeOutcome, Sample
from .values import microseconds

Key = tuple[str, str, str | None, int]
"""Target, probe, database, and microseconds since 1970."""


@frozen
class Batch:
    """Samples and outcomes of one transaction."""

    samples: tuple[Sample, ...] = ()
    outcomes: tuple[ProbeOutcome, ...] = ()

    @property
    def rows(self) -> int:
        """The number of its samples' rows."""
        return sum(len(sample.rows) for sample in self.samples)

    @property
    def weight(self) -> int:
        """The number of rows, samples and outcomes, which a queue counts."""
        return self.rows + len(self.samples) + len(self.outcomes)

    def without(self, samples: Sequence[Sample], why: str) -> Batch:
        """Return the batch without some samples, whose records say why they were not stored."""
        kept = tuple(each for each in self.samples if not any(each is sample for sample in samples))
        gone = {key_of(each) for each in samples} - {key_of(each) for each in kept}
        told = tuple(_unstored(each, why) if _key_of(each) in gone else each for each in self.outcomes)
        return Batch(kept, told)

    def halves(self) -> Iterator[Batch]:
        """Yield its earlier and its later samples, each with their records; other records go with the earlier ones."""
        middle = len(self.samples) // 2
        late = {key_of(sample) for sample in self.samples[middle:]}
        later = tuple(each for each in self.outcomes if _key_of(each) in late)
        yield Batch(self.samples[:middle], tuple(each for each in self.outcomes if _key_of(each) not in late))
        yield Batch(self.samples[middle:], later)


def joined(batches: Sequence[Batch]) -> Batch:
    """Return batches as one, in their order."""
    return Batch(tuple(chain(*(each.samples for each in batches))), tuple(chain(*(each.outcomes for each in batches))))


def key_of(sample: Sample) -> Key:
    """Return what identifies a sample and its record."""
    return sample.target, sample.probe.name, sample.database, microseconds(sample.at)


def _key_of(outcome: ProbeOutcome) -> Key:
    return outcome.target, outcome.probe, outcome.database, microseconds(outcome.due)


def _unstored(outcome: ProbeOutcome, why: str) -> ProbeOutcome:
    return evolve(outcome, kind=OutcomeKind.FAILED, failure=Failure.STORE, reason=why)
