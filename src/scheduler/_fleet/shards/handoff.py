"""Shards that others own by right are handed on, some at a time: their jobs stand still only briefly.

    none of its jobs runs, and all is durable  -> the shard goes
    its jobs run all the time                  -> their ticks are left due for a moment, so that it can go
    one of its jobs runs for long              -> it stays until that run has ended

A due tick that waits for room goes with its job.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from logging import getLogger
from typing import Final

from anyio.lowlevel import checkpoint

from schedule import Missed
from timerqueue import LifecycleError

from ..._jobs import Job, JobAttempt, shard_of_job
from ..._journal import stays_due
from ..._loop import Core
from ..._restore import let_go_of
from ...stores import Assignment, Sharing, StoreUnavailable
from .handoff_plan import MOST_SHARDS, HandoffPlan
from .moves import Moves

logger = getLogger(__name__)

PAUSE: Final = 0.05
"""Seconds."""

WHOSE_JOBS_RUN: Final = 0.13
"""Seconds between looks at shards whose jobs run.

No job's interval should equal it, or each look would find the job running.
"""

FORGETS: Final = 300.0
"""Seconds between looks for shards that no job asks for."""

SLICE: Final = 100
NEVER: Final = sys.maxsize


class Handoff:
    def __init__(self, sharing: Sharing, moves: Moves, core: Core, turns: Callable[[], int]) -> None:
        self._sharing = sharing
        self._moves = moves
        self._core = core
        self._turns = turns
        self._handoff_plan = HandoffPlan(core.journal.is_durable, self._goes_along)
        self.given: dict[int, int] = {}
        """Shards handed on, and the turn that may not have seen it."""
        self._leaving: dict[int, list[str]] = {}
        self._newest: str | None = None
        self._forgot_at = core.monotonic()

    def seen(self, turn: int) -> None:
        self.given = {shard: since for shard, since in self.given.items() if since >= turn}

    def let_go(self) -> None:
        self.given, self._leaving, self._newest = {}, {}, None
        self._handoff_plan.give_up()
        self._leave_ticks(())

    async def hand_on(
        self, wanted: Mapping[int, int], *, givers: int = 1, commit_s: float = 0.0, at_once: bool = False
    ) -> float | None:
        """Give some of these shards to their nodes. Return the seconds until the next. None: all have gone.

        `givers`: nodes with shards to hand on. `commit_s`: a commit's seconds. `at_once`: we are stopping.
        """
        if not wanted:
            if self._leaving:
                self._leaving, self._newest = {}, None
                self._handoff_plan.give_up()
                self._leave_ticks(())
            return None
        await self._look_for_jobs(wanted)
        began = self._core.monotonic()
        if at_once:
            ready = self._handoff_plan.all_idle(wanted, self._jobs_in)
        else:
            ready = self._handoff_plan.next(wanted, self._jobs_in, began, givers, commit_s=commit_s)
        self._withhold()
        if not ready:
            return PAUSE if len(wanted) > MOST_SHARDS or self._handoff_plan.are_withheld else WHOSE_JOBS_RUN
        for shard, jobs in ready.items():
            self._leave(shard, jobs)
        await self._give(list(ready), wanted)
        await self._look_for_jobs(wanted)
        for shard in ready:  # another thread may have added a job just then
            self._leave(shard, [job for job in self._jobs_in(shard) if not job.is_elsewhere])
        self._moves.tell(began, sum(map(len, ready.values())), given=len(ready))
        return PAUSE

    async def give_back(self, shards: Iterable[int], owners: Assignment) -> None:
        """Give these shards to their nodes: none of their jobs is here."""
        if wanted := {shard: owners[shard] for shard in shards}:
            await self._give(list(wanted), wanted)

    async def forget_empty(self) -> None:
        if self._core.monotonic() < self._forgot_at + FORGETS:
            return
        self._forgot_at = self._core.monotonic()
        try:
            gone = await self._moves.ask(self._sharing.forget_empty)
        except StoreUnavailable as exc:
            logger.info("shards of labels stay for now: %s", exc)  # another node adds many jobs just now
            return
        ours = set(gone).intersection(self._moves.shares.all())
        await self._look_for_jobs(ours)
        for shard in ours:  # another thread may have added a job just then, which makes the shard again
            self._leave(shard, [job for job in self._jobs_in(shard) if not job.is_elsewhere])
        self.given.update(dict.fromkeys(ours, self._turns()))

    def _withhold(self) -> None:
        """Withhold ticks, but no longer if the store makes us wait."""
        self._leave_ticks(self._handoff_plan.withheld())
        if self._handoff_plan.are_withheld:
            with suppress(LifecycleError):  # the queue has stopped
                self._core.queue.push(self._handoff_plan.until, self._look_at_withheld)

    def _look_at_withheld(self) -> None:
        if self._core.monotonic() >= self._handoff_plan.until:
            self._leave_ticks(())

    def _leave_ticks(self, of: Iterable[Job]) -> None:
        jobs = frozenset(of)
        self._core.clock_guard.withhold(jobs)
        self._core.runs.marks.let_stay(lambda job: job in jobs and self._handoff_plan.is_idle(job))

    def _goes_along(self, job: Job) -> bool:
        """Return whether a job's runs and ticks may go with it.

        Its state has only the oldest tick. Several go only if the next owner makes up for the others.
        """
        waiting = [(run.due_us, run.attempt) for run in job.runs] + list(job.backlog or ())
        policy, attempts = job.policy, {attempt for _, attempt in waiting}
        if len(waiting) > 1 and (policy.missed is not Missed.ALL or len(waiting) > policy.catch_up or attempts != {1}):
            return False
        if attempts != {1} and job.again is not None:
            return False  # a state has room for one attempt only
        return all(map(_waits, job.runs)) and all(stays_due(job, *each, self._core.timeline) for each in waiting)

    def _leave(self, shard: int, jobs: list[Job]) -> None:
        self._moves.shares.give([shard])
        for job in jobs:
            let_go_of(job, self._core.queue)

    async def _give(self, shards: list[int], wanted: Mapping[int, int]) -> None:
        self.given.update(dict.fromkeys(shards, NEVER))
        to: defaultdict[int, list[int]] = defaultdict(list)
        for shard in shards:
            to[wanted[shard]].append(shard)
        try:
            for agent, part in to.items():
                await self._moves.ask(lambda agent=agent, part=part: self._sharing.hand_on(part, agent))  # type: ignore[misc]
        finally:
            self.given.update(dict.fromkeys(shards, self._turns()))

    async def _look_for_jobs(self, shards: Collection[int]) -> None:
        if not self._leaving.keys() >= set(shards):
            self._leaving, self._newest = {shard: [] for shard in shards}, None
        for number, job in enumerate(self._core.jobs.entered_after(self._newest)):
            self._newest = job.id
            if job.task is not None and (ids := self._leaving.get(shard_of_job(job))) is not None:
                ids.append(job.id)
            if number and not number % SLICE:
                await checkpoint()

    def _jobs_in(self, shard: int) -> list[Job]:
        found = (self._core.jobs.find(id) for id in self._leaving[shard])
        return [job for job in found if job is not None and job.task is not None]


def _waits(run: JobAttempt) -> bool:
    return run.started is None and not run.is_held and run.owes is None and run.cause is None
