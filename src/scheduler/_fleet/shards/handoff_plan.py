"""Portions: which of the shards that others own by right are handed on next.

Their jobs stand still from the moment when we let go of them until the next owner has read them. So a portion has few
shards, whose jobs do not run, and do not start in the meantime.

Jobs that start each second always start in the meantime. After a few attempts in vain such a shard goes all the same.
Jobs that start again as soon as they have ended always run, so their shards cannot go. Then the ticks of a few are
withheld until their runs have ended, for a moment and no longer. A run that takes longer is not waited for.

Begin and end of a run are durable some commits later. So the moment is longer where commits take longer, and more
shards are withheld. There each tick waits for its commit in any case.

It decides by what it is given; it knows no store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from ..._jobs import Attempt, Job
from ...stores import SHARDS

MOST_JOBS: Final = 500
"""The most jobs that come to one node together. If several nodes give at the same time, each gives its part of them."""

MOST_SHARDS: Final = 64
"""The most shards in one look."""

MOVES: Final = 0.3
"""Seconds in which a shard should have moved."""

MOST_IN_VAIN: Final = 5
"""Successive looks in which each shard had a job that ran, or was about to start."""

WITHHELD: Final = 0.5
"""The most seconds for which the ticks of a shard are withheld, besides waiting for commits."""

COMMITS: Final = 4
"""Commits until a run that has just begun is durable: two for its mark and two for its end.

Each time one is under way already.
"""

RESTS: Final = 1.0
"""Seconds before ticks are withheld again after a run took too long. Each time doubles it."""

LONGEST_REST: Final = 60.0


class HandoffPlan:
    """Chooses one portion after another.

    `is_durable`: whether all notes about a job stand in the store. `goes_along`: whether the runs and ticks of a job
    may go with it. A node that is stopping begins nothing more, so every shard that can go goes at once. Its ticks that
    waited for the end of a run have been left to the next owner before.
    """

    def __init__(self, is_durable: Callable[[Job], bool], goes_along: Callable[[Job], bool]) -> None:
        self._is_durable = is_durable
        self._goes_along = goes_along
        self._first = 0
        self._in_vain = 0
        self._withheld: dict[int, list[Job]] = {}
        self.until = 0.0
        """When ticks are withheld no longer, whatever happens."""
        self._rests: dict[int, tuple[float, float]] = {}
        """Shards whose ticks are not withheld: until when, and for how many seconds."""

    @property
    def are_withheld(self) -> bool:
        """Whether ticks of some jobs should be left."""
        return bool(self._withheld)

    def withheld(self) -> Iterator[Job]:
        """Return the jobs whose ticks should be left due. None of these may begin before the next call of `next`."""
        return (job for jobs in self._withheld.values() for job in jobs)

    def give_up(self) -> None:
        """Forget everything: no shard will be handed on."""
        self._withheld, self._rests, self._in_vain = {}, {}, 0

    def all_idle(self, wanted: Collection[int], jobs_in: Callable[[int], list[Job]]) -> dict[int, list[Job]]:
        """Return all of these shards that can go when we are stopping, with their jobs."""
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
        """Return some of these shards that can go, with their jobs. If it is empty, look again soon.

        `givers`: how many nodes hand on shards at the moment. `commit_s`: seconds that a commit takes.
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
        """Return withheld shards whose jobs run no more. Runs that take too long are waited for no longer."""
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
        """Return whether nothing of the job runs, or waits for a run."""
        if job.threads or job.asked:
            return False
        return not (job.runs or job.backlog) or self._goes_along(job)

    def _may_end_soon(self, shard: int, jobs: list[Job], now: float) -> bool:
        """Return whether the runs of a shard may end while its ticks are withheld."""
        if shard in self._rests and now < self._rests[shard][0]:
            return False
        return not any(_has_run_long(run, now) for job in jobs for run in job.runs)

    def _takes_long(self, job: Job, now: float) -> bool:
        """Return whether a run of the job takes long, and not because of a commit."""
        if self.is_idle(job):
            return False
        waits = any(run.started is None and not run.is_held for run in job.runs)
        return waits or bool(job.threads or job.asked) or any(_has_run_long(run, now) for run in job.runs)


class _Portion:
    """Shards with their jobs, until it is full. Shards that come later stay out."""

    def __init__(self, most: int) -> None:
        self.jobs: dict[int, list[Job]] = {}
        self._most = most
        self._count = 0

    @property
    def is_full(self) -> bool:
        return self._count >= self._most

    def put(self, shard: int, jobs: list[Job]) -> None:
        """Put a shard into it, unless it is full."""
        if not self.is_full:
            self.jobs[shard] = jobs
            self._count += len(jobs)


def _has_run_long(run: Attempt, now: float) -> bool:
    return run.started is not None and now - run.started > WITHHELD


def _starts(job: Job, before: float) -> bool:
    """Return whether the job stands in the queue for a time before that one."""
    return job.is_waiting and job.due < before
