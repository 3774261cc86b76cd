"""Rates of counters, never negative: a counter that went back was reset, and what it counted meanwhile is not known.

Pure. Over an interval in which a reset is known, or shows, there is no rate: a guess from nought would be too low, and
the difference would be negative. The next interval has one again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Point = tuple[float, float | None]
"""UTC seconds, and the value of a counter then."""


def rates(points: Iterable[Point], resets: Sequence[float] = ()) -> list[Point]:
    """Return the growth in each second up to each point from the one before, or None where that is not known.

    `points` are in the order of their times; those without a value are passed over. `resets`: UTC seconds, sorted.
    A second point of the same instant is passed over as well.
    """
    found: list[Point] = []
    before: tuple[float, float] | None = None
    for at, value in points:
        if value is None or (before is not None and at <= before[0]):
            continue
        if before is not None:
            found.append((at, _rate(before, (at, value), resets)))
        before = at, value
    return found


def _rate(before: tuple[float, float], point: tuple[float, float], resets: Sequence[float]) -> float | None:
    (since, from_value), (at, value) = before, point
    was_reset = value < from_value or bisect_right(resets, since) < bisect_right(resets, at)
    return None if was_reset else (value - from_value) / (at - since)
