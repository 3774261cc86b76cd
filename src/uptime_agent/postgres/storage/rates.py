"""Rates of counters, never negative. Pure.

After a reset an interval has no rate: a guess from 0 would be too low.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Point = tuple[float, float | None]
"""UTC seconds, and a counter's value."""


def rates(points: Iterable[Point], resets: Sequence[float] = ()) -> list[Point]:
    """Return the growth per second between points; None: unknown.

    `points`: in order of time. `resets`: UTC seconds, sorted.
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
