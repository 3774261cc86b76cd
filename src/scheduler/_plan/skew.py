"""By how much our wall clock and those of the others disagree, and whose is off. Pure, but for one look at a clock.

Agents that share a store read no clock of each other: each compares its own with the store's, and all see by how much
the others differ from that. Whose clock is right is settled by the middle one, the store's among them. So one machine
that is an hour ahead is off, and so is the database's if all agents agree with one another.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from timerqueue import Clock

from .timeline import offset_of

BACK_WITHIN = 0.5
"""The part of what a clock may be off to which it must come back: one at the edge would go to and fro."""


@frozen
class Skew:
    """Our wall clock beside a store's: `seconds` ahead of it (negative: behind), and `doubt`, by how much that may be
    wrong either way. `offset`: seconds from the monotonic clock to the wall clock at that moment.
    """

    seconds: float
    doubt: float
    offset: float


def skew_of(clock: Clock, store_us: int, round_trip: float) -> Skew:
    """Compare with what a store's clock showed during a question that took `round_trip` seconds, until now."""
    offset, doubt = offset_of(clock)
    now, half = clock.monotonic() + offset, round_trip / 2
    return Skew(now - half - store_us * 1e-6, doubt + half, offset)


def is_off(skew: Skew, others: Iterable[float], most: float | None, *, was_off: bool) -> bool:
    """Whether our clock is more than `most` seconds off, beyond doubt; None: nobody cares. `others`: their skews.

    One that was off is so until it has come well within that.
    """
    if most is None:
        return False
    away = abs(skew.seconds - _middle([0.0, skew.seconds, *others]))
    return away > most * BACK_WITHIN if was_off else away - skew.doubt > most


def _middle(skews: list[float]) -> float:
    """The one in the middle; of two the one that is nearer to the store's clock."""
    skews.sort()
    half = len(skews) // 2
    return skews[half] if len(skews) % 2 else min(skews[half - 1], skews[half], key=abs)
