"""Stable hashes: the same number for the same text on every machine and in every run, unlike Python's own hash()."""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b

from ._duration import positive
from ._errors import ScheduleError
from ._instant import MICROSECOND


def stable_hash(text: str) -> int:
    """A number from 0 to 2**64 - 1 that looks random and depends on nothing but `text`."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def phase(key: str, interval: timedelta | float | str) -> timedelta:
    """Where in `interval` the job `key` has its place: at least 0, less than the interval, in whole microseconds.

    Jobs with different keys spread evenly. A job whose interval becomes a multiple of what it was keeps to its old
    instants. Raises ScheduleError for an interval that is not longer than 0.
    """
    return MICROSECOND * phase_us(key, positive(interval) // MICROSECOND)


def phase_us(key: str, interval: int) -> int:
    """The same in whole microseconds, for those who count in them. Raises ScheduleError for less than one."""
    if interval < 1:
        msg = f"interval must be at least one microsecond, not {interval!r}"
        raise ScheduleError(msg)
    return stable_hash(key) % interval
