"""Shards: the part of a shared store's jobs that is ours, and how parts come to us and go to others.

Every agent knows all jobs. Those of its own shards stand in its heap; the others do nothing here. What the lease sees
of the store (lease.py) asks for one of these:

    a shard is ours, and not here yet  -> read its jobs: what is due is planned, what ran when its agent died is a crash
    a shard of ours is another's       -> once none of its jobs runs, and all of them is durable: hand it on

A few shards are handed on at a time, so that their jobs stand still for some milliseconds only; one whose job runs
stays until that has ended. Which agent a shard belongs to follows from who is there, so all agree without a word.

Lives on the loop; the store is asked in threads.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from logging import getLogger
from typing import Final, TypeVar

import anyio
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync

from timerqueue import boottime

from .._jobs import Job
from .._journal import known_row
from .._lease import Lease, owners_of
from .._loop import Core
from .._restore import Crashes, Intake, Lost, Reconciler, leave_to_others, lost_by_job
from .._starts import REMOVED
from .._values import AgentJoined, AgentLost, ShardsMoved
from ..stores import (
    SHARDS,
    Shares,
    Sharing,
    StoredJob,
    StoredState,
    StoredTick,
    StoreError,
    StoreTakenOver,
    View,
    shard_of,
)
from .commits import Commits
from .portions import MOST_JOBS, MOST_SHARDS, Portions
from .rejoining import Rejoining
from .writer import Writer

logger = getLogger(__name__)
T = TypeVar("T")
Chunk = list[tuple[StoredJob, StoredState | None]]

PAUSE: Final = 0.05
"""Seconds until the next shards are handed on."""

WHOSE_JOBS_RUN: Final = 0.13
"""Seconds until it is looked at again whether jobs of shards that are to be handed on still run. Not a length by which
jobs start, or each look would find them running.
"""

MOST_AT_ONCE: Final = 1_000
"""Jobs that are read with the first question: those of shards that are handed on, or the first that start."""

FIRST_US: Final = 1_000_000
"""Of a large part the jobs that start within so many microseconds are read first. The others are read while they run.
"""

SLICE: Final = 100
DIED: Final = "the process died under it, and its job has been removed since"
EPOCH_BITS: Final = 32
NEVER: Final = sys.maxsize


class Shards:
    """The shards of one scheduler. `flush` returns once all that was noted until then is durable."""

    leaves_ticks = True
    """A tick that is due may be left to whoever has its shard next."""

    def __init__(
        self,
        sharing: Sharing,
        shares: Shares,
        writer: Writer,
        *,
        core: Core,
        commits: Commits,
        crashes: Crashes,
        reconciler: Reconciler,
        intake: Intake,
        rejoining: Rejoining,
    ) -> None:
        self._rejoining = rejoining
        self._sharing = sharing
        self._shares = shares
        self._writer = writer
        self._core = core
        self._journal = core.journal
        self._commits = commits
        self._crashes = crashes
        self._reconciler = reconciler
        self._intake = intake
        self.lease = Lease(sharing, boottime, self._seen, self._lost, self._failed, clock=core.clock)
        self.lease.on_burial = self._buried
        self.on_news: Callable[[], object] = _nobody
        """Called when others have changed rows, or the store does not answer. Any thread."""
        core.runs.marks.rely_on(self.lease.is_held)
        core.trust.watch(self.lease.look, core.loop.look_at_clock, leaves=self.leaves_ticks)
        commits.doubt = self.lease.doubt
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._change = anyio.Event()
        self._scope: anyio.CancelScope | None = None  # made on the loop: a scheduler is made anywhere
        self._following: anyio.CancelScope | None = None
        self._is_over = False
        self._view: View | None = None
        self._turn = 0
        """In which turn of the lease the view was asked for."""
        self._trouble: StoreTakenOver | None = None
        self._names: dict[int, str] = {}
        self._unread: set[int] = set()
        """Shards that are ours and whose jobs have not all been read."""
        self._given: dict[int, int] = {}
        """Shards that were handed on, and the turn of the lease that may not have seen it."""
        self._leaving: dict[int, list[str]] = {}
        """Ids of the jobs of shards that are to be handed on."""
        self._newest: str | None = None
        """Of all jobs the one that was entered last when these were looked for."""
        self._portions = Portions(core.journal.is_durable)

    async def join(self) -> list[int]:
        """Claim what is ours and nobody has, before anything is read. Return all that we have."""
        self.lease.begin(await self._ask(self.lease.turn))
        assert self._view is not None
        self._judge_clock()
        self._meet(self._view)
        self._shares.take(self._view.ours())
        return self._shares.all()

    def hint(self) -> None:
        """Look around soon: another agent says that something has changed. Any thread."""
        self.lease.look()

    def end(self) -> None:
        """Let `run` return. The lease is held until `close`."""
        self._is_over = True
        if self._scope is not None:
            self._scope.cancel()

    def close(self) -> None:
        """Renew the lease no more. Any thread."""
        self.lease.end()

    def cut_off(self, shards: list[int]) -> list[StoredTick]:
        """Return the ticks of these shards that were RUNNING when their agent died."""
        return self._of_others(self._sharing.running(shards))

    def _of_others(self, ticks: list[StoredTick]) -> list[StoredTick]:
        """Ticks that this incarnation has not marked itself."""
        view = self._sharing.last
        return [tick for tick in ticks if view is None or tick.fence >> EPOCH_BITS != view.me]

    async def run(self) -> None:
        """Take up what comes to us and hand on what is others', until `end`."""
        with anyio.CancelScope() as self._scope:
            async with anyio.create_task_group() as group:
                while not self._is_over:
                    wait: float | None = WHOSE_JOBS_RUN
                    try:
                        with anyio.CancelScope() as self._following:
                            wait = await self._follow()
                    except StoreError as exc:
                        logger.warning("shards cannot be moved: %s", exc)
                    if self._trouble is not None:
                        await self._begin_anew(self._trouble)
                        group.start_soon(self._read_again, name="scheduler rows of others")
                    with anyio.move_on_after(wait):
                        await self._change.wait()
                    self._change = anyio.Event()

    async def _follow(self) -> float | None:
        """Do what the last view asks for. After how many seconds to go on if nothing changes; None: never."""
        view = self._view
        if view is None or not self.lease.is_held():
            return None
        self._core.runs.marks.settled()
        self._meet(view)
        self._given = {shard: turn for shard, turn in self._given.items() if turn >= self._turn}
        ours = view.ours().difference(self._given)
        owners = owners_of(view)
        unread = sorted(ours.difference(self._shares.all()) | self._unread)
        await (self._return(unread, owners) if self._core.trust.is_off else self._take(unread))
        return await self._hand_on({shard: owners[shard] for shard in self._shares.all() if owners[shard] != view.me})

    async def _begin_anew(self, trouble: StoreTakenOver) -> None:
        """Let go of everything, which others have by now, and join them again as somebody new."""
        us = self._names.get(0 if self._view is None else self._view.me, "")
        logger.warning("this agent has lost its part of the store, and joins again: %s", trouble)
        self._core.listeners.tell(AgentLost(self._core.clock.wall(), us, str(trouble), is_us=True))
        await self._rejoining.let_go()
        self._view, self._trouble, self._names = None, None, {}
        self._unread, self._given, self._leaving, self._newest = set(), {}, {}, None
        opened = await self._rejoining.open()
        self.lease.begin(0.0)
        self._commits.reopen(opened.epoch)

    async def _read_again(self) -> None:
        try:
            await self._rejoining.read_again()
        except StoreError as exc:
            logger.warning("what others have changed meanwhile is not known: %s", exc)

    def _meet(self, view: View) -> None:
        """Tell of agents that have come and gone."""
        names, tell, now = {peer.epoch: peer.name for peer in view.peers}, self._core.listeners.tell, self._core.clock
        for epoch in names.keys() - self._names.keys():
            if self._names or epoch == view.me:
                tell(AgentJoined(now.wall(), names[epoch], epoch == view.me))
        for epoch in self._names.keys() - names.keys():
            tell(AgentLost(now.wall(), self._names[epoch], "it has left, or its lease has ended"))
        self._names = names

    # -- what the lease says, in its thread ----------------------------------------------------------------------------

    def _seen(self, view: View, turn: int) -> None:
        self._core.loop.call_soon(self._look_at, view, turn)
        if view.is_news:
            self.on_news()
        if self._view is None:  # nothing is called before the first jobs are here
            self._view, self._turn = view, turn

    def _failed(self) -> None:
        self.on_news()

    def _buried(self) -> None:
        """Nothing is to be done: what they had comes to us, and to others, with its shards."""

    def _lost(self, trouble: StoreTakenOver) -> None:
        self._core.loop.call_soon(self._give_up, trouble)

    def _look_at(self, view: View, turn: int) -> None:
        self._view, self._turn = view, turn
        self._judge_clock()
        self._change.set()

    def _judge_clock(self) -> None:
        """Trust our clock, or not, by what the store's has shown."""
        if (skew := self.lease.skew) is not None:
            most, is_idle = self._sharing.max_skew, self._shares.is_idle()
            self._core.trust.judge(skew, is_off=self.lease.is_off, most=most, is_idle=is_idle)

    def _give_up(self, trouble: StoreTakenOver) -> None:
        self._trouble = trouble
        if self._following is not None:
            self._following.cancel()
        self._change.set()

    # -- what comes to us ----------------------------------------------------------------------------------------------

    async def _take(self, shards: list[int]) -> None:
        """Take up the jobs of shards that have become ours where they stand, the soonest starts first."""
        if not shards:
            return
        began = self._core.monotonic()
        with self._journal.noting_rows() as noted:
            expected = len(self._core.jobs) * len(shards) / SHARDS
            now_us = self._core.timeline.us(self._core.monotonic(), steady=False)
            until_us = None if expected < MOST_JOBS else now_us + FIRST_US
            taken = await self._ask(lambda: self._sharing.take(shards, MOST_AT_ONCE, until_us))
            if self._core.trust.is_off:
                return  # our clock would tell how late they are
            lost = lost_by_job(self._intake.ticks(self._of_others(taken.running)), self._intake.ticks(taken.owed))
            self._shares.take(shards)
            self._unread.update(shards)
            count = await self._take_up_all(taken.jobs, lost, noted)
            if until_us is not None or len(taken.jobs) >= MOST_AT_ONCE:
                rows = self._sharing.load(shards)
                while (chunk := await self._ask(lambda: next(rows, None))) is not None:
                    count += await self._take_up_all(chunk, lost, noted)
            self._take_up_new(noted)
        for rest in lost.values():
            self._crashes.without_job(rest, DIED, REMOVED)
        self._unread.difference_update(shards)
        self._moved(ShardsMoved(self._core.clock.wall(), len(shards), 0, count, self._core.monotonic() - began))

    async def _take_up_all(self, jobs: Chunk, lost: dict[str, Lost], noted: Collection[str]) -> int:
        """Take up these jobs, but for those that are here already. How many were taken up."""
        count = 0
        for number, (raw, state) in enumerate(jobs):
            if not number % SLICE:
                await checkpoint()
            job = self._core.jobs.find(raw.id)
            cut_off = lost.pop(raw.id, Lost())
            if (job is None and raw.id in noted) or (job is not None and not job.is_elsewhere):
                continue  # it has been removed here since, or has begun
            is_known = job is not None and raw.id in noted and job.unfit is None
            row = known_row(job) if job is not None and is_known else self._intake.job(raw)
            if row is not None:
                self._reconciler.take_over(row, self._intake.state(state), cut_off)
                count += 1
        return count

    def _take_up_new(self, ids: Collection[str]) -> None:
        """Take up jobs that were added here while others still had their shards, too late for what was read."""
        for job in filter(None, map(self._core.jobs.find, list(ids))):
            if job.is_elsewhere and job.task is not None and not self._core.jobs.is_elsewhere(job):
                self._reconciler.take_over(known_row(job), self._journal.first_state(job.id), Lost())

    def _moved(self, moved: ShardsMoved) -> None:
        where = f"{moved.taken} shards come to us" if moved.taken else f"{moved.given} shards are handed on"
        logger.info("%s with %d jobs in %.3f s, %d are ours", where, moved.jobs, moved.seconds, len(self._shares.all()))
        self._core.listeners.tell(moved)

    # -- what goes to others -------------------------------------------------------------------------------------------

    async def _hand_on(self, wanted: dict[int, int]) -> float | None:
        """Give some shards of ours to whom they belong, if none of their jobs runs. Seconds until the next."""
        if not wanted:
            self._leaving, self._newest = {}, None
            return None
        await self._look_for_jobs(wanted)
        began, ready = self._core.monotonic(), self._portions.next(wanted, self._jobs_in, self._core.monotonic())
        if not ready:
            return PAUSE if len(wanted) > MOST_SHARDS else WHOSE_JOBS_RUN
        count = sum(map(len, ready.values()))
        for shard, jobs in ready.items():
            self._leave(shard, jobs)
        await self._give(list(ready), wanted)
        await self._look_for_jobs(wanted)
        for shard in ready:  # another thread may have added one just then
            self._leave(shard, [job for job in self._jobs_in(shard) if not job.is_elsewhere])
        self._moved(ShardsMoved(self._core.clock.wall(), 0, len(ready), count, self._core.monotonic() - began))
        return PAUSE

    def _leave(self, shard: int, jobs: list[Job]) -> None:
        """Have the jobs of a shard no more: nothing of them goes on, and where they stand is durable."""
        self._shares.give([shard])
        for job in jobs:
            for alarm in (job, job.retry, job.owed):
                if alarm is not None:
                    self._core.queue.disarm(alarm)
            leave_to_others(job)

    async def _give(self, shards: list[int], wanted: dict[int, int]) -> None:
        self._given.update(dict.fromkeys(shards, NEVER))
        to: defaultdict[int, list[int]] = defaultdict(list)
        for shard in shards:
            to[wanted[shard]].append(shard)
        try:
            for agent, part in to.items():
                await self._ask(lambda agent=agent, part=part: self._sharing.hand_on(part, agent))  # type: ignore[misc]
        finally:
            self._given.update(dict.fromkeys(shards, self.lease.turns))

    async def _return(self, shards: list[int], owners: Sequence[int]) -> None:
        """Give shards back that came to us before the others knew that our clock is off. None of their jobs is here."""
        if unread := [shard for shard in shards if shard not in self._unread]:
            await self._give(unread, {shard: owners[shard] for shard in unread})

    async def _look_for_jobs(self, shards: Iterable[int]) -> None:
        """Know which stored jobs are in these shards: those that were known, and what has been entered since."""
        if not self._leaving.keys() >= set(shards):
            self._leaving, self._newest = {shard: [] for shard in shards}, None
        for number, job in enumerate(self._core.jobs.entered_after(self._newest)):
            self._newest = job.id
            if job.task is not None and (ids := self._leaving.get(shard_of(job.policy.place or job.id))) is not None:
                ids.append(job.id)
            if number and not number % SLICE:
                await checkpoint()

    def _jobs_in(self, shard: int) -> list[Job]:
        """Jobs of the shard that are there by now."""
        found = (self._core.jobs.find(id) for id in self._leaving[shard])
        return [job for job in found if job is not None and job.task is not None]

    # -- the store -----------------------------------------------------------------------------------------------------

    async def _ask(self, call: Callable[[], T]) -> T:
        """Ask over connections that no commit holds up."""
        return await run_sync(call, abandon_on_cancel=True, limiter=self._one_at_a_time)


def _nobody() -> None:
    """Nobody wants to know."""
