"""Arrivals: the jobs of shards that have become ours are taken up in their present states.

    read jobs that owe a tick or start soonest, and cut-off ticks  -> these go on
    read the rest, in a task of the part's own                     -> the rest goes on, and the whole part is here

Other arrivals do not wait for the rest, or the jobs of the next dead node would wait for all jobs of the one before. A
shard whose jobs have not all been read stays with us, and one task at a time reads it. A part whose read fails, or is
broken off, is unread as a whole, and is begun again. Jobs that are here stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from logging import getLogger
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.to_thread import run_sync
from attrs import define, field

from ..._jobs import shard_of_job
from ..._journal import LocalWrites, known_row
from ..._loop import LongWork
from ..._restore import Chunk, Lost, RowParts, Rows, lost_by_job
from ..._starts import REMOVED
from ...stores import SHARDS, Sharing, StoredState, StoredTick, StoreError, TakenShards, View
from .handoff_plan import MOST_JOBS
from .moves import Moves

logger = getLogger(__name__)

MOST_AT_ONCE: Final = 1_000
"""The most jobs that are read with the first question."""

FIRST_US: Final = 1_000_000
"""Microseconds: the jobs of a large part that start this soon are read first. The others are read while they run."""

AGAIN: Final = 0.13
"""Seconds before a part is read again whose rest could not be read."""

SOON: Final = 0.05
"""Seconds before its next start in which a job is taken up without any sleep. Other jobs may take long."""

DIED: Final = "the process died under it, and its job has been removed since"
DIED_AS_IT_ENDED: Final = "its agent died before it had ended what it ran of a job that others have by now"
EPOCH_BITS: Final = 32


@define(eq=False)
class _Part:
    """Shards that come together. `noted`: rows that are known better here. `count`: jobs that have come."""

    shards: frozenset[int]
    noted: LocalWrites
    began: float
    lost: dict[str, Lost] = field(factory=dict)
    count: int = 0


class Takeover:
    """The arrivals of one scheduler.

    `again`: looks again which shards should come, or go. `tried`: gets the outcome of each read, by its connection:
    "shards" for first jobs, "rests" for the others.
    """

    def __init__(
        self,
        sharing: Sharing,
        moves: Moves,
        again: Callable[[], object],
        tried: Callable[[str, Exception | None], object],
        rows: RowParts,
    ) -> None:
        self._sharing = sharing
        self._moves = moves
        self._again = again
        self._tried = tried
        self._core = rows.core
        self._journal = rows.core.journal
        self._crashes = rows.crashes
        self._reconciler = rows.reconciler
        self._row_reader = rows.row_reader
        self._line = anyio.CapacityLimiter(1)
        """One question at a time for the rests of parts. Urgent questions have other lines."""
        self._rests: dict[anyio.CancelScope, anyio.Event] = {}
        """The rests that are being read, and an event for the end of each."""
        self._being_read: set[int] = set()
        self.unread: set[int] = set()
        """Shards that are ours and whose jobs have not all been read."""
        self._left: dict[int, set[int]] = {}
        """Shards by the epochs of nodes that still run jobs of them. The jobs are ours."""

    def wanted(self, ours: Collection[int]) -> list[int]:
        """Return which of our shards should be taken: they are not here as a whole, and no task reads them."""
        return sorted((set(ours).difference(self._moves.shares.all()) | self.unread) - self._being_read)

    async def take(self, shards: Collection[int], group: TaskGroup) -> None:
        """Take up the jobs of these shards. Returns when the jobs that start soonest are here. Raises StoreError.

        A task of `group` reads the rest.
        """
        if shards:
            await group.start(self._take, frozenset(shards), name="scheduler shards that come")

    async def let_go(self) -> None:
        """Stop reading: all shards are others'."""
        rests = list(self._rests.items())
        for scope, _ in rests:
            scope.cancel()
        for _, is_over in rests:
            await is_over.wait()
        self.unread.clear()
        self._left.clear()

    def of_the_gone(self, ticks: list[StoredTick], shards: Collection[int]) -> list[StoredTick]:
        """Return the ticks, of these shards, whose nodes are gone.

        A node that is there ends its runs itself, also runs of a job whose labels were changed by hand. Its shards are
        ours only once it is gone from the view.
        """
        view = self._sharing.last
        there = set[int]() if view is None else {peer.epoch for peer in view.peers}
        for epoch in there.intersection(_agent_of(tick) for tick in ticks):
            self._left.setdefault(epoch, set()).update(shards)
        return [tick for tick in ticks if _agent_of(tick) not in there]

    async def close_left(self, view: View) -> None:
        """Close the records of runs that were left to nodes which are gone now. Raises StoreError."""
        gone = self._left.keys() - {peer.epoch for peer in view.peers}
        shards = {shard for epoch in gone for shard in self._left[epoch]}.intersection(self._moves.shares.all())
        running = await self._moves.ask(lambda: self._sharing.running(sorted(shards))) if shards else []
        for tick in self._row_reader.ticks([tick for tick in running if _agent_of(tick) in gone]):
            job = self._core.jobs.find(tick.job_id)
            if job is None or not job.is_elsewhere:
                self._crashes.close(job, tick, DIED_AS_IT_ENDED)
        for epoch in gone:
            del self._left[epoch]

    async def _take(self, shards: frozenset[int], *, task_status: TaskStatus[None]) -> None:
        self._being_read |= shards
        try:
            with self._journal.noting_rows() as noted:
                part = _Part(shards, noted, self._core.monotonic())
                until_us = self._soon(len(shards))
                taken = await self._read_first(shards, until_us)
                if self._core.clock_guard.is_off:
                    task_status.started()
                    return  # our clock would tell how late they are
                await self._begin(part, taken)
                task_status.started()
                if (until_us is None and len(taken.jobs) < MOST_AT_ONCE) or await self._read_rest(part):
                    self._end(part)
        finally:
            self._being_read -= shards

    def _soon(self, shards: int) -> int | None:
        """Return until when jobs start that are read first. None: there are few jobs."""
        if len(self._core.jobs) * shards / SHARDS < MOST_JOBS:
            return None
        return self._core.timeline.us(self._core.monotonic(), steady=False) + FIRST_US

    async def _read_first(self, shards: frozenset[int], until_us: int | None) -> TakenShards:
        try:
            taken = await self._moves.ask(lambda: self._sharing.take(sorted(shards), MOST_AT_ONCE, until_us))
        except StoreError as exc:
            self._tried("shards", exc)
            raise
        self._tried("shards", None)
        return taken

    async def _begin(self, part: _Part, taken: TakenShards) -> None:
        """Have these shards from now on, and take up their first jobs."""
        part.lost = lost_by_job(
            self._row_reader.ticks(self.of_the_gone(taken.running, part.shards)), self._row_reader.ticks(taken.owed)
        )
        self._moves.shares.take(part.shards)
        self.unread |= part.shards
        await self._take_up(part, taken.jobs)

    async def _read_rest(self, part: _Part) -> bool:
        """Take up the unread jobs of a part. False: they could not be read, or the part is no longer wanted."""
        is_over = anyio.Event()
        with anyio.CancelScope() as scope:
            self._rests[scope] = is_over
            try:
                rows = self._sharing.load(sorted(part.shards))
                while (chunk := await self._next(rows)) is not None:
                    await self._take_up(part, chunk)
            except StoreError as exc:
                self._tried("rests", exc)
                logger.warning("shards that have come are not all read, and are read again: %s", exc)
                await self._core.clock.sleep(AGAIN)
            else:
                return True
            finally:
                del self._rests[scope]
                is_over.set()
                self._again()  # once this task has ended
        return False

    async def _next(self, rows: Rows) -> Chunk | None:
        return await run_sync(lambda: next(rows, None), abandon_on_cancel=True, limiter=self._line)

    def _end(self, part: _Part) -> None:
        """Note that all jobs of a part have been read."""
        self._tried("rests", None)
        self._take_up_new(part)
        for lost in part.lost.values():
            self._crashes.without_job(lost, DIED, REMOVED)
        self.unread -= part.shards
        self._moves.tell(part.began, part.count, taken=len(part.shards))

    async def _take_up(self, part: _Part, jobs: Chunk) -> None:
        """Take up these jobs, except jobs that are here already. Runs go on meanwhile."""
        work = LongWork(self._core.clock)
        for raw, state in jobs:
            if work.is_long():
                await work.give_way(hurries=raw.id in part.lost or self._starts_soon(state))
            job = self._core.jobs.find(raw.id)
            cut_off = part.lost.pop(raw.id, Lost())
            is_noted = raw.id in part.noted.ids
            if (job is None and is_noted) or (job is not None and not job.is_elsewhere):
                continue  # it has been removed here since, or has begun
            row = known_row(job) if job is not None and is_noted else self._row_reader.job(raw)
            if row is not None:
                self._reconciler.take_over(row, self._row_reader.state(state), cut_off)
                part.count += 1

    def _starts_soon(self, state: StoredState | None) -> bool:
        """Return whether a job with that state starts soon, or should have: later jobs start later."""
        dues = () if state is None else (state.next_us, state.retry_at_us)
        until_us = self._core.timeline.us(self._core.monotonic() + SOON, steady=False)
        return any(type(due_us) is int and due_us <= until_us for due_us in dues)

    def _take_up_new(self, part: _Part) -> None:
        """Take up jobs that were added while others still had their shards, too late for the read."""
        for job in filter(None, map(self._core.jobs.find, list(part.noted.ids))):
            if job.is_elsewhere and job.task is not None and shard_of_job(job) in part.shards:
                self._reconciler.take_over(known_row(job), part.noted.states.get(job.id), Lost())


def _agent_of(tick: StoredTick) -> int:
    """Return the epoch of the node that has marked it."""
    return tick.fence >> EPOCH_BITS
