"""Which nodes' wall clocks are off, and by how much.

Nodes compare theirs with the store's, and see each other's differences. The middle clock, the store's included, is
right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from timerqueue import Clock

from .timeline import offset_of

BACK_WITHIN = 0.5
"""Hysteresis: a clock is right again only within this part of the allowed skew."""

MOST_DOUBT = 0.3
"""Seconds. Other nodes would count a more doubtful skew as a clock."""


@frozen
class Skew:
    """Our wall clock is `seconds` ahead of the store's, give or take `doubt` seconds.

    `offset`: seconds from the monotonic to the wall clock.
    """

    seconds: float
    doubt: float
    offset: float

    @property
    def told(self) -> float | None:
        """For other nodes. None: too doubtful."""
        return self.seconds if self.doubt <= MOST_DOUBT else None


def skew_of(clock: Clock, store_us: int, round_trip: float, since: float) -> Skew:
    """The store answered `since` seconds ago, after `round_trip` seconds."""
    offset, doubt = offset_of(clock)
    then, half = clock.monotonic() + offset - since, round_trip / 2
    return Skew(then - half - store_us * 1e-6, doubt + half, offset)


def is_off(skew: Skew, others: Iterable[float], most: float | None, *, was_off: bool) -> bool:
    """Whether our clock is more than `most` seconds off, beyond doubt. None: never.

    `others`: skews of other nodes.
    """
    if most is None:
        return False
    away = abs(skew.seconds - _middle([0.0, skew.seconds, *others]))
    return away > most * BACK_WITHIN if was_off else away - skew.doubt > most


class ClockVerdict:
    """A last node has only the store's clock: of two, neither is known to be off.

    So it keeps the middle found with others while its own skew stays.
    """

    def __init__(self) -> None:
        self.is_off = False
        self._middle: float | None = None
        self._ours = 0.0

    def judge(self, skew: Skew, others: Sequence[float], most: float | None) -> bool:
        """Return whether the verdict changed."""
        if others:
            self._middle, self._ours = _middle([0.0, skew.seconds, *others]), skew.seconds
        elif self._middle is not None and most is not None and abs(skew.seconds - self._ours) <= most * BACK_WITHIN:
            others = [self._middle]
        was_off = self.is_off
        self.is_off = is_off(skew, others, most, was_off=was_off)
        return self.is_off != was_off


def _middle(skews: list[float]) -> float:
    """Of two, the one nearer to the store's clock."""
    skews.sort()
    half = len(skews) // 2
    return skews[half] if len(skews) % 2 else min(skews[half - 1], skews[half], key=abs)
