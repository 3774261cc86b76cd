"""Stable hashes: the same number for the same text on every machine and in every run, unlike Python's hash()."""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b

from ._duration import positive
from ._errors import ScheduleError
from ._instant import MICROSECOND


def stable_hash(text: str) -> int:
    """Return a number from 0 to 2**64 - 1 that looks random and depends on `text` alone."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def phase(key: str, interval: timedelta | float | str) -> timedelta:
    """Return the place of the job `key` in `interval`: at least 0, less than the interval, in whole microseconds.

    Jobs with different keys spread evenly. If a job's interval is multiplied by a whole number, its new slots are among
    its old ones. Raises ScheduleError for an interval that is not longer than 0.
    """
    return MICROSECOND * phase_us(key, positive(interval) // MICROSECOND)


def phase_us(key: str, interval: int) -> int:
    """Return `phase` in whole microseconds, of an interval in microseconds. Raises ScheduleError if that is below 1."""
    if interval < 1:
        msg = f"interval must be at least one microsecond, not {interval!r}"
        raise ScheduleError(msg)
    return stable_hash(key) % interval
