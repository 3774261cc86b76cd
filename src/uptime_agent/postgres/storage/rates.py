"""Rates of counters, never negative: a counter that went back was reset, and its growth meanwhile is unknown.

Pure. An interval with a known or visible reset has no rate: a guess from 0 would be too low, and the difference
negative. The next interval has one again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Point = tuple[float, float | None]
"""An instant in UTC seconds, and a counter's value then."""


def rates(points: Iterable[Point], resets: Sequence[float] = ()) -> list[Point]:
    """Return the growth per second from each point to the next, or None where unknown.

    `points` are in order of time; those without a value are skipped, and second ones of an instant. `resets`: UTC
    seconds, sorted.
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
