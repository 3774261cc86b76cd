"""Portions: which shards are handed on next, of those that belong to others by right.

Their jobs stand still from the moment at which we let go of them until the next owner has read them. So it is shards of
which no job runs, not many at a time, and such of which nothing starts in the meantime. Where something always does, as
with jobs that start each second, that is waited for a few times in vain, and then one goes all the same.

Decides by what it is given; knows no store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from .._jobs import Job
from ..stores import SHARDS

MOST_JOBS: Final = 500
"""Jobs that are handed on together."""

MOST_SHARDS: Final = 64
"""Shards that are looked at in one go."""

MOVES: Final = 0.3
"""Seconds in which a shard should have moved."""

MOST_IN_VAIN: Final = 5
"""Goes, one after another, in which each shard that was looked at had a job that ran, or was about to start."""


class Portions:
    """One portion after another. `is_durable`: whether all that is noted of a job stands in the store."""

    def __init__(self, is_durable: Callable[[Job], bool]) -> None:
        self._is_durable = is_durable
        self._first = 0
        self._in_vain = 0

    def next(self, wanted: Collection[int], jobs_in: Callable[[int], list[Job]], now: float) -> dict[int, list[Job]]:
        """Choose some of these shards, and return them with their jobs. None of them: look again soon."""
        quiet, idle = _Portion(), _Portion()
        for shard in sorted(wanted, key=lambda each: (each - self._first) % SHARDS)[:MOST_SHARDS]:
            self._first = shard + 1
            jobs = jobs_in(shard)
            if all(_is_idle(job) and self._is_durable(job) for job in jobs):
                idle.put(shard, jobs)
                if not any(_starts(job, now + MOVES) for job in jobs):
                    quiet.put(shard, jobs)
            if quiet.count >= MOST_JOBS:
                break
        self._in_vain = 0 if quiet.jobs else self._in_vain + 1
        return idle.jobs if self._in_vain > MOST_IN_VAIN else quiet.jobs


class _Portion:
    """Shards with their jobs; whatever is put to it once it is full stays out."""

    def __init__(self) -> None:
        self.jobs: dict[int, list[Job]] = {}
        self.count = 0

    def put(self, shard: int, jobs: list[Job]) -> None:
        """Put a shard to it."""
        if self.count < MOST_JOBS:
            self.jobs[shard] = jobs
            self.count += len(jobs)


def _is_idle(job: Job) -> bool:
    """Whether nothing of the job goes on, or waits for what goes on."""
    return not job.runs and not job.backlog and not job.threads and not job.asked


def _starts(job: Job, before: float) -> bool:
    """Whether the job stands in the queue for a time before that one."""
    return job.is_waiting and job.due < before
