"""By how much our wall clock and those of other nodes disagree, and which is off. Pure, except for one look at a clock.

Nodes of a fleet read no clock of each other. Each compares its own with the store's, and all see these differences. The
middle clock, the store's included, is right. So one machine that is an hour ahead is off, and so is the database's if
all nodes agree with one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from timerqueue import Clock

from .timeline import offset_of

BACK_WITHIN = 0.5
"""Hysteresis: a clock counts as right again only within this part of the allowed skew."""

MOST_DOUBT = 0.3
"""Seconds. A more doubtful skew is not told to other nodes, which would count it as a clock."""


@frozen
class Skew:
    """Our wall clock compared with a store's: `seconds` ahead of it (negative: behind).

    `doubt`: by how much that may be wrong either way, in seconds. `offset`: seconds from the monotonic clock to the
    wall clock at that moment.
    """

    seconds: float
    doubt: float
    offset: float

    @property
    def told(self) -> float | None:
        """The skew that other nodes are told; None: it is too doubtful."""
        return self.seconds if self.doubt <= MOST_DOUBT else None


def skew_of(clock: Clock, store_us: int, round_trip: float, since: float) -> Skew:
    """Compare with what a store's clock showed in a question of `round_trip` seconds, answered `since` seconds ago."""
    offset, doubt = offset_of(clock)
    then, half = clock.monotonic() + offset - since, round_trip / 2
    return Skew(then - half - store_us * 1e-6, doubt + half, offset)


def is_off(skew: Skew, others: Iterable[float], most: float | None, *, was_off: bool) -> bool:
    """Whether our clock is more than `most` seconds off, beyond doubt. `others`: the skews of other nodes.

    `most` None: never. A clock that was off is right again only within `BACK_WITHIN * most`.
    """
    if most is None:
        return False
    away = abs(skew.seconds - _middle([0.0, skew.seconds, *others]))
    return away > most * BACK_WITHIN if was_off else away - skew.doubt > most


class ClockVerdict:
    """Whether our clock is off, look after look.

    The last of several nodes can compare only with the store's clock, and of two clocks neither is known to be off. So
    it keeps the middle that it found with other nodes, for as long as its own skew stays what it was then.
    """

    def __init__(self) -> None:
        self.is_off = False
        self._middle: float | None = None
        self._ours = 0.0

    def judge(self, skew: Skew, others: Sequence[float], most: float | None) -> bool:
        """Judge again, and return whether that changed the verdict. `others`, `most`: as of `is_off`."""
        if others:
            self._middle, self._ours = _middle([0.0, skew.seconds, *others]), skew.seconds
        elif self._middle is not None and most is not None and abs(skew.seconds - self._ours) <= most * BACK_WITHIN:
            others = [self._middle]
        was_off = self.is_off
        self.is_off = is_off(skew, others, most, was_off=was_off)
        return self.is_off != was_off


def _middle(skews: list[float]) -> float:
    """Return the middle one; of two the one nearer to the store's clock."""
    skews.sort()
    half = len(skews) // 2
    return skews[half] if len(skews) % 2 else min(skews[half - 1], skews[half], key=abs)
