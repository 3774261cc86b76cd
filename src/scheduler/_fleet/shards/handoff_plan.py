"""Which shards, owned by others by right, are handed on next.

Their jobs stand still until the next owner has read them. So a portion has few shards, whose jobs neither run nor start
meanwhile. After a few looks in vain a shard goes all the same. Jobs that always run have their ticks withheld for a
moment; where commits take longer, so does the moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from ..._jobs import Job, JobAttempt
from ...stores import SHARDS

MOST_JOBS: Final = 500
"""Jobs that come to one node together, from all nodes that give."""

MOST_SHARDS: Final = 64

MOVES: Final = 0.3
"""Seconds."""

MOST_IN_VAIN: Final = 5

WITHHELD: Final = 0.5
"""The most seconds, besides waiting for commits."""

COMMITS: Final = 4
"""Commits until a run that has just begun is durable: two each for its mark and end."""

RESTS: Final = 1.0
"""Seconds before ticks are withheld again after a long run. Each time doubles it."""

LONGEST_REST: Final = 60.0


class HandoffPlan:
    """`is_durable`: the store has all notes about a job. `goes_along`: its runs and ticks may go with it."""

    def __init__(self, is_durable: Callable[[Job], bool], goes_along: Callable[[Job], bool]) -> None:
        self._is_durable = is_durable
        self._goes_along = goes_along
        self._first = 0
        self._in_vain = 0
        self._withheld: dict[int, list[Job]] = {}
        self.until = 0.0
        self._rests: dict[int, tuple[float, float]] = {}

    @property
    def are_withheld(self) -> bool:
        return bool(self._withheld)

    def withheld(self) -> Iterator[Job]:
        """Return jobs that may not begin before the next call of `next`."""
        return (job for jobs in self._withheld.values() for job in jobs)

    def give_up(self) -> None:
        self._withheld, self._rests, self._in_vain = {}, {}, 0

    def all_idle(self, wanted: Collection[int], jobs_in: Callable[[int], list[Job]]) -> dict[int, list[Job]]:
        """Return all shards that can go when we are stopping: nothing more begins."""
        found = {shard: jobs_in(shard) for shard in wanted}
        self._withheld = {}
        return {
            shard: jobs
            for shard, jobs in found.items()
            if not any(job.runs or job.threads or job.asked or not self._is_durable(job) for job in jobs)
        }

    def next(
        self,
        wanted: Collection[int],
        jobs_in: Callable[[int], list[Job]],
        now: float,
        givers: int = 1,
        *,
        commit_s: float = 0.0,
    ) -> dict[int, list[Job]]:
        """Return some shards that can go. If there are none, look again soon.

        `givers`: nodes that hand on shards. `commit_s`: a commit's seconds.
        """
        if self._withheld:
            return self._next_withheld(wanted, jobs_in, now)
        longest = WITHHELD + COMMITS * commit_s
        most, times = max(1, MOST_JOBS // givers), int(longest / WITHHELD)
        quiet, idle, busy = _Portion(most), _Portion(most), _Portion(times * most)
        in_turn = sorted(wanted, key=lambda each: (each - self._first) % SHARDS)[: times * MOST_SHARDS]
        for number, shard in enumerate(in_turn):
            if quiet.is_full or (number >= MOST_SHARDS and busy.is_full):
                break
            self._first = shard + 1
            jobs = jobs_in(shard)
            if self._can_go(jobs):
                idle.put(shard, jobs)
                if not any(_starts(job, now + MOVES) for job in jobs):
                    quiet.put(shard, jobs)
            elif self._may_end_soon(shard, jobs, now):
                busy.put(shard, jobs)
        self._in_vain = 0 if quiet.jobs else self._in_vain + 1
        if self._in_vain <= MOST_IN_VAIN:
            return quiet.jobs
        self._withheld, self.until = busy.jobs, now + longest
        return idle.jobs

    def _next_withheld(
        self, wanted: Collection[int], jobs_in: Callable[[int], list[Job]], now: float
    ) -> dict[int, list[Job]]:
        left = {shard: jobs_in(shard) for shard in self._withheld if shard in wanted}
        ready = {shard: jobs for shard, jobs in left.items() if self._can_go(jobs)}
        self._withheld = {shard: jobs for shard, jobs in left.items() if shard not in ready}
        if now >= self.until:
            for shard, jobs in self._withheld.items():
                if any(self._takes_long(job, now) for job in jobs):
                    self._let_rest(shard, now)
            self._withheld = {}
        return ready

    def _let_rest(self, shard: int, now: float) -> None:
        seconds = min(2 * self._rests[shard][1], LONGEST_REST) if shard in self._rests else RESTS
        self._rests[shard] = now + seconds, seconds

    def _can_go(self, jobs: list[Job]) -> bool:
        return all(self.is_idle(job) and self._is_durable(job) for job in jobs)

    def is_idle(self, job: Job) -> bool:
        if job.threads or job.asked:
            return False
        return not (job.runs or job.backlog) or self._goes_along(job)

    def _may_end_soon(self, shard: int, jobs: list[Job], now: float) -> bool:
        if shard in self._rests and now < self._rests[shard][0]:
            return False
        return not any(_has_run_long(run, now) for job in jobs for run in job.runs)

    def _takes_long(self, job: Job, now: float) -> bool:
        if self.is_idle(job):
            return False
        waits = any(run.started is None and not run.is_held for run in job.runs)
        return waits or bool(job.threads or job.asked) or any(_has_run_long(run, now) for run in job.runs)


class _Portion:
    """When it is full, later shards stay out."""

    def __init__(self, most: int) -> None:
        self.jobs: dict[int, list[Job]] = {}
        self._most = most
        self._count = 0

    @property
    def is_full(self) -> bool:
        return self._count >= self._most

    def put(self, shard: int, jobs: list[Job]) -> None:
        if not self.is_full:
            self.jobs[shard] = jobs
            self._count += len(jobs)


def _has_run_long(run: JobAttempt, now: float) -> bool:
    return run.started is not None and now - run.started > WITHHELD


def _starts(job: Job, before: float) -> bool:
    return job.is_waiting and job.due < before
