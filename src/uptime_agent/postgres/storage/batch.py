"""Batches: samples with the records of the runs that found them, which are stored together or not at all.

The record of a sample is that of its target, probe, database and instant. A sample that nobody can store leaves its
batch, and then its record says so: no record tells of rows that are not there.
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
    """Samples and outcomes that are written in one transaction."""

    samples: tuple[Sample, ...] = ()
    outcomes: tuple[ProbeOutcome, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows its samples have."""
        return sum(len(sample.rows) for sample in self.samples)

    @property
    def weight(self) -> int:
        """Its rows, samples and outcomes together: what a queue counts."""
        return self.rows + len(self.samples) + len(self.outcomes)

    def without(self, samples: Sequence[Sample], why: str) -> Batch:
        """Return the batch without some of its samples, whose records say that they were not stored, and why."""
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
    """Return what a sample has in common with its record, and with no other."""
    return sample.target, sample.probe.name, sample.database, microseconds(sample.at)


def _key_of(outcome: ProbeOutcome) -> Key:
    return outcome.target, outcome.probe, outcome.database, microseconds(outcome.due)


def _unstored(outcome: ProbeOutcome, why: str) -> ProbeOutcome:
    return evolve(outcome, kind=OutcomeKind.FAILED, failure=Failure.STORE, reason=why)
