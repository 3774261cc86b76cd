"""Jobs of shards that have become ours are taken up in their present states.

    read jobs that owe a tick or start soonest, and cut-off ticks  -> these go on
    read the rest, in a task of the part's own                     -> the whole part is here

Other parts do not wait for the rest: they may be the next dead node's. A part whose read fails is begun again as a
whole; jobs that are here stay as they are.
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

FIRST_US: Final = 1_000_000
"""Microseconds: jobs of a large part that start this soon are read first."""

RETRY_S: Final = 0.13
"""Seconds before an unread part is read again."""

NEAR_S: Final = 0.05
"""Seconds before its next start in which a job is taken up without any sleep."""

DIED: Final = "the process died under it, and its job has been removed since"
DIED_AS_IT_ENDED: Final = "its node died before it had ended what it ran of a job that others have by now"
EPOCH_BITS: Final = 32


@define(eq=False)
class _Part:
    """Shards that come together. `noted`: rows known better here."""

    shards: frozenset[int]
    noted: LocalWrites
    began: float
    lost: dict[str, Lost] = field(factory=dict)
    count: int = 0


class Takeover:
    """`again`: looks which shards should come or go.

    `tried`: gets each read's outcome, of "shards" (first jobs) or "rests".
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
        self._rests: dict[anyio.CancelScope, anyio.Event] = {}
        self._being_read: set[int] = set()
        self.unread: set[int] = set()
        self._left: dict[int, set[int]] = {}
        """Our shards, by epochs of nodes that still run their jobs."""

    def wanted(self, ours: Collection[int]) -> list[int]:
        return sorted((set(ours).difference(self._moves.shares.all()) | self.unread) - self._being_read)

    async def take(self, shards: Collection[int], group: TaskGroup) -> None:
        """Return when the soonest jobs are here; a task of `group` reads the rest. Raises StoreError."""
        if shards:
            await group.start(self._take, frozenset(shards), name="scheduler shards that come")

    async def let_go(self) -> None:
        rests = list(self._rests.items())
        for scope, _ in rests:
            scope.cancel()
        for _, is_over in rests:
            await is_over.wait()
        self.unread.clear()
        self._left.clear()

    def of_the_gone(self, ticks: list[StoredTick], shards: Collection[int]) -> list[StoredTick]:
        """Return the ticks whose nodes are gone. A present node ends its runs itself."""
        view = self._sharing.last
        there = set[int]() if view is None else {peer.epoch for peer in view.peers}
        for epoch in there.intersection(_agent_of(tick) for tick in ticks):
            self._left.setdefault(epoch, set()).update(shards)
        return [tick for tick in ticks if _agent_of(tick) not in there]

    async def close_left(self, view: View) -> None:
        """Close records of runs left to nodes that are gone now. Raises StoreError."""
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
        """Return until when jobs start that are read first. None: few jobs."""
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
        part.lost = lost_by_job(
            self._row_reader.ticks(self.of_the_gone(taken.running, part.shards)), self._row_reader.ticks(taken.owed)
        )
        self._moves.shares.take(part.shards)
        self.unread |= part.shards
        await self._take_up(part, taken.jobs)

    async def _read_rest(self, part: _Part) -> bool:
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
                await self._core.clock.sleep(RETRY_S)
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
        self._tried("rests", None)
        self._take_up_new(part)
        for lost in part.lost.values():
            self._crashes.without_job(lost, DIED, REMOVED)
        self.unread -= part.shards
        self._moves.tell(part.began, part.count, taken=len(part.shards))

    async def _take_up(self, part: _Part, jobs: Chunk) -> None:
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
        dues = () if state is None else (state.next_us, state.retry_at_us)
        until_us = self._core.timeline.us(self._core.monotonic() + NEAR_S, steady=False)
        return any(type(due_us) is int and due_us <= until_us for due_us in dues)

    def _take_up_new(self, part: _Part) -> None:
        for job in filter(None, map(self._core.jobs.find, list(part.noted.ids))):
            if job.is_elsewhere and job.task is not None and shard_of_job(job) in part.shards:
                self._reconciler.take_over(known_row(job), part.noted.states.get(job.id), Lost())


def _agent_of(tick: StoredTick) -> int:
    return tick.fence >> EPOCH_BITS
