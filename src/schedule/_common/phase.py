"""Stable hashes, unlike Python's hash()."""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b

from .duration import positive
from .errors import ScheduleError
from .instant import MICROSECOND


def stable_hash(text: str) -> int:
    """Return a number from 0 to 2**64 - 1 that looks random."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def phase(key: str, interval: timedelta | float | str) -> timedelta:
    """Return the job's place in `interval`: from 0 to below it, in whole microseconds.

    Keys spread evenly. Multiplying an interval by a whole number keeps its slots among the old ones. Raises
    ScheduleError unless `interval` is above 0.
    """
    return MICROSECOND * phase_us(key, positive(interval) // MICROSECOND)


def phase_us(key: str, interval: int) -> int:
    """Return `phase` in microseconds. Raises ScheduleError if `interval` is below 1."""
    if interval < 1:
        msg = f"interval must be at least one microsecond, not {interval!r}"
        raise ScheduleError(msg)
    return stable_hash(key) % interval
