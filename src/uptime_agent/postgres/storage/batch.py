"""Samples with their records, stored together or not at all.

An unstorable sample leaves, and its record says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from attrs import evolve, frozen

from ...instants import microseconds
from ..contract import Failure, OutcomeKind, ProbeOutcome, Sample

Key = tuple[str, str, str | None, int]
"""Target, probe, database, and microseconds since 1970."""


@frozen
class SampleBatch:
    """The content of one transaction."""

    samples: tuple[Sample, ...] = ()
    outcomes: tuple[ProbeOutcome, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows its samples have."""
        return sum(len(sample.rows) for sample in self.samples)

    @property
    def weight(self) -> int:
        """Rows, samples and outcomes, for queues."""
        return self.rows + len(self.samples) + len(self.outcomes)

    def without(self, samples: Sequence[Sample], why: str) -> SampleBatch:
        """Drop samples; their records say why."""
        kept = tuple(each for each in self.samples if not any(each is sample for sample in samples))
        gone = {key_of(each) for each in samples} - {key_of(each) for each in kept}
        told = tuple(_unstored(each, why) if _key_of(each) in gone else each for each in self.outcomes)
        return SampleBatch(kept, told)

    def halves(self) -> Iterator[SampleBatch]:
        """Yield earlier and later samples with their records; other records go first."""
        middle = len(self.samples) // 2
        late = {key_of(sample) for sample in self.samples[middle:]}
        later = tuple(each for each in self.outcomes if _key_of(each) in late)
        yield SampleBatch(self.samples[:middle], tuple(each for each in self.outcomes if _key_of(each) not in late))
        yield SampleBatch(self.samples[middle:], later)


def joined(batches: Sequence[SampleBatch]) -> SampleBatch:
    """Join batches in their order."""
    return SampleBatch(
        tuple(chain(*(each.samples for each in batches))), tuple(chain(*(each.outcomes for each in batches)))
    )


def key_of(sample: Sample) -> Key:
    """Identify a sample and its record."""
    return sample.target, sample.probe.name, sample.database, microseconds(sample.at)


def _key_of(outcome: ProbeOutcome) -> Key:
    return outcome.target, outcome.probe, outcome.database, microseconds(outcome.due)


def _unstored(outcome: ProbeOutcome, why: str) -> ProbeOutcome:
    return evolve(outcome, kind=OutcomeKind.FAILED, failure=Failure.STORE, reason=why)
