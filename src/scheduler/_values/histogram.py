"""Histograms of lengths of time: lateness and durations, by kind of job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise, zip_longest
from typing import Final, Self

from attrs import define, field, frozen

from .outcome import SUCCEEDED, Outcome

UNITS: Final = 250_000  # units of a length in a second
BUCKETS: Final = 43 * 16  # enough for a length of months
_STEP: Final = 64
"""Buckets by which a list of durations grows: most kinds of job use few of them."""


def bucket_of(units: int) -> int:
    """Return the bucket of a length in units of 4 us.

    Each unit up to 32 has a bucket of its own, then each doubling has 16 buckets.
    """
    octave = max(units.bit_length() - 5, 0)
    return min(octave * 16 + (units >> octave), BUCKETS - 1)


def _middle(bucket: int) -> float:
    """Return a bucket's middle in seconds. Values in the bucket are within 3 % or 2 us of it."""
    octave = max(bucket // 16 - 1, 0)
    first = (bucket - octave * 16) << octave
    return (first + (1 << octave) / 2) / UNITS if bucket else 0.0


BUCKET_OF: Final = bytes(map(bucket_of, range(1 << 10))) + b"".join(
    bytes((bucket_of(first),)) * 64 for first in range(1 << 10, 1 << 18, 64)
)
_MIDDLES: Final = tuple(map(_middle, range(BUCKETS)))


def _bucket(seconds: float) -> int:
    return bucket_of(int(max(seconds, 0.0) * UNITS))


@define(eq=False)
class KindCounts:
    """The runs of one kind of job: their lateness, and their durations by outcome.

    `counts`: of lateness, by bucket. `durations`: of successes, by bucket, only as long as needed.
    """

    counts: list[int] = field(factory=lambda: [0] * BUCKETS)
    durations: list[int] = field(factory=list)
    crashes: int = 0
    _others: dict[Outcome, list[int]] = field(factory=dict)

    def add(self, seconds: float) -> None:
        self.counts[_bucket(seconds)] += 1

    def take_back(self, seconds: float) -> None:
        self.counts[_bucket(seconds)] -= 1

    def end(self, outcome: Outcome, seconds: float) -> None:
        """Count a run that ended after `seconds`."""
        counts = self.durations if outcome is SUCCEEDED else self._others.setdefault(outcome, [])
        bucket = _bucket(seconds)
        if bucket >= len(counts):
            counts.extend([0] * (bucket - len(counts) + _STEP))
        counts[bucket] += 1

    def durations_now(self) -> Mapping[Outcome, DurationStatistics]:
        """Return the durations by outcome, without outcomes that no run had. Any thread."""
        found = {SUCCEEDED: self.durations, **self._others}
        return {outcome: DurationStatistics(tuple(counts)) for outcome, counts in found.items() if counts}

    def copy_of_lateness(self) -> KindCounts:
        return KindCounts(self.counts.copy())

    def snapshot(self) -> LatenessStatistics:
        return LatenessStatistics(tuple(self.counts))


@frozen(repr=False)
class _Buckets:
    counts: tuple[int, ...]

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(total={self.total}, p50={self.quantile(0.5):.6f}, p99={self.quantile(0.99):.6f})"

    @property
    def total(self) -> int:
        """How many runs were counted."""
        return sum(self.counts)

    def since(self, earlier: Self) -> Self:
        """Return the runs that were counted after `earlier`, an earlier answer of the same scheduler."""
        counts = zip_longest(self.counts, earlier.counts, fillvalue=0)
        return type(self)(tuple(max(0, now - before) for now, before in counts))

    @property
    def seconds(self) -> float:
        """The sum of all lengths, right to 3 %. It never falls."""
        return sum(count * middle for count, middle in zip(self.counts, _MIDDLES, strict=False) if count)

    def quantile(self, share: float) -> float:
        """Return the seconds that this share of runs kept within, accurate to 3 % or 2 us; 0.0 without runs."""
        left = share * self.total
        for bucket, count in enumerate(self.counts):
            left -= count
            if count and left <= 0:
                return _middle(bucket)
        return 0.0

    def cumulative(self, bounds: Sequence[float]) -> tuple[int, ...]:
        """Return how many runs kept within each bound, in seconds, ascending: the buckets of a Prometheus histogram.

        A run that exceeds a bound by less than 7 % or 4 us may count as within it.
        """
        edges = [0, *(_bucket(bound) + 1 for bound in bounds)]
        return tuple(accumulate(sum(self.counts[low:high]) for low, high in pairwise(edges)))


@frozen(repr=False)
class LatenessStatistics(_Buckets):
    """A histogram of latenesses: `quantile` and `cumulative` read it."""


@frozen(repr=False)
class DurationStatistics(_Buckets):
    """A histogram of the durations of runs: `quantile` and `cumulative` read it."""
