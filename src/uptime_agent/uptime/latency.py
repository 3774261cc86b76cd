"""Percentiles of latency. An answer counts for as long as it was the latest."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from statistics import median
from typing import Final

from attrs import frozen

SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

HOLDS: Final = 2.0
"""Median distances for which an answer counts; then follows a gap."""


@frozen
class Latency:
    """Percentiles in seconds. `known`: the covered share of the window."""

    percentiles: dict[str, float]
    known: float


def latency_over(answers: Iterable[tuple[float, float]], now: float, window: float) -> Latency:
    """The latency in the `window` seconds before `now`. An answer: (UTC seconds, seconds)."""
    ordered = sorted(answers)
    if not ordered:
        return Latency({}, 0.0)
    gaps = [after[0] - before[0] for before, after in pairwise(ordered)]
    holds = HOLDS * median(gaps) if gaps else 0.0
    ends = [*(each[0] for each in ordered[1:]), now]
    weighed: list[tuple[float, float]] = []
    for (at, seconds), end in zip(ordered, ends, strict=True):
        lasted = min(end, at + holds, now) - max(at, now - window)
        if lasted > 0:
            weighed.append((seconds, lasted))
    total = sum(lasted for _, lasted in weighed)
    return Latency(_percentiles(sorted(weighed), total), total / window)


def _percentiles(weighed: list[tuple[float, float]], total: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, share in SHARES.items():
        passed = 0.0
        for seconds, lasted in weighed:
            passed += lasted
            if passed >= share * total:
                found[name] = seconds
                break
        else:
            if weighed:
                found[name] = weighed[-1][0]
    return found
