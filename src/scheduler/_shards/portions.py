"""Portions: which shards are handed on next, of those that belong to others by right.

Their jobs stand still from the moment at which we let go of them until the next owner has read them. So it is shards of
which no job runs, not many at a time, and such of which nothing starts in the meantime. Where something always does, as
with jobs that start each second, that is waited for a few times in vain, and then one goes all the same. Where
something always runs, as with jobs that start again as soon as they have ended, none can go: then the ticks of a few
are withheld until what runs has ended, for a moment and no longer. What runs for longer than that is not waited for.

Begin and end of a run are durable some commits later, so that moment is the longer the longer a commit takes, and the
ticks of as many more are withheld: each tick waits for its commit there in any case.

Decides by what it is given; knows no store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from .._jobs import Attempt, Job
from ..stores import SHARDS

MOST_JOBS: Final = 500
"""Jobs that come to one agent together. Where several give at the same time each gives its part of them."""

MOST_SHARDS: Final = 64
"""Shards that are looked at in one go."""

MOVES: Final = 0.3
"""Seconds in which a shard should have moved."""

MOST_IN_VAIN: Final = 5
"""Goes, one after another, in which each shard that was looked at had a job that ran, or was about to start."""

WITHHELD: Final = 0.5
"""Seconds for which the ticks of a shard are withheld at most, apart from what is waited for commits."""

COMMITS: Final = 4
"""Commits until what has just been started is durable: one that is under way and that of the mark, and after the run
the same for its end.
"""

RESTS: Final = 1.0
"""Seconds from then on for which they are not withheld again, if a job of it runs for longer. Each time that was so
doubles it.
"""

LONGEST_REST: Final = 60.0


class Portions:
    """One portion after another. `is_durable`: whether all that is noted of a job stands in the store. `goes_along`:
    whether what goes on of a job may go with it.

    An agent that is stopping begins nothing any more, so whatever can go goes at once. What waited for the end of a run
    has been left to the next owner by then.
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
        """Shards of which nothing is withheld until then, and for how many seconds that is."""

    @property
    def are_withheld(self) -> bool:
        """Whether ticks of some jobs are to be left."""
        return bool(self._withheld)

    def withheld(self) -> Iterator[Job]:
        """The jobs whose ticks are to be left due, and begin nowhere before the next call of `next`."""
        return (job for jobs in self._withheld.values() for job in jobs)

    def give_up(self) -> None:
        """Nothing is to be handed on any more."""
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
        """Choose some of these shards, and return them with their jobs. None of them: look again soon. `givers`: how
        many agents hand on shards at the moment. `commit_s`: seconds that a commit takes.
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
        """Choose those of which nothing runs any more. What runs for too long is waited for no longer."""
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
        """Whether nothing of the job goes on, or waits for what goes on."""
        if job.threads or job.asked:
            return False
        return not (job.runs or job.backlog) or self._goes_along(job)

    def _may_end_soon(self, shard: int, jobs: list[Job], now: float) -> bool:
        """Whether what runs of a shard may end while its ticks are withheld."""
        if shard in self._rests and now < self._rests[shard][0]:
            return False
        return not any(_has_run_long(run, now) for job in jobs for run in job.runs)

    def _takes_long(self, job: Job, now: float) -> bool:
        """Whether something of the job has gone on for long that waits for no commit."""
        if self.is_idle(job):
            return False
        waits = any(run.started is None and not run.is_held for run in job.runs)
        return waits or bool(job.threads or job.asked) or any(_has_run_long(run, now) for run in job.runs)


class _Portion:
    """Shards with their jobs, as many as they have together at most; what is put to it once it is full stays out."""

    def __init__(self, most: int) -> None:
        self.jobs: dict[int, list[Job]] = {}
        self._most = most
        self._count = 0

    @property
    def is_full(self) -> bool:
        return self._count >= self._most

    def put(self, shard: int, jobs: list[Job]) -> None:
        """Put a shard to it."""
        if not self.is_full:
            self.jobs[shard] = jobs
            self._count += len(jobs)


def _has_run_long(run: Attempt, now: float) -> bool:
    return run.started is not None and now - run.started > WITHHELD


def _starts(job: Job, before: float) -> bool:
    """Whether the job stands in the queue for a time before that one."""
    return job.is_waiting and job.due < before
