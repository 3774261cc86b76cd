"""Which records are over the bounds of a retention. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from .._rows import RUNNING, Retention, StoredTick, size_of


def over_bounds(ticks: Collection[StoredTick], retention: Retention, now_us: int) -> Iterator[StoredTick]:
    """Yield records oldest first."""
    ended = sorted((tick for tick in ticks if tick.outcome != RUNNING and not tick.owed), key=_due)
    of_job = Counter(tick.job_id for tick in ended)
    total = sum(map(size_of, ticks))
    for tick in ended:
        is_old = retention.age is not None and now_us - _ended(tick) > retention.age * 1e6
        is_one_too_many = retention.per_job is not None and of_job[tick.job_id] > retention.per_job
        if is_old or is_one_too_many or (retention.total_bytes is not None and total > retention.total_bytes):
            of_job[tick.job_id] -= 1
            total -= size_of(tick)
            yield tick


def _due(tick: StoredTick) -> int:
    return tick.due_us


def _ended(tick: StoredTick) -> int:
    return tick.due_us if tick.ended_us is None else tick.ended_us
