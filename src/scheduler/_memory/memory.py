"""Open a store, read it, and close it at the end.

    open -> pauses, crashes -> load (jobs begin to run while the rest is read) -> polling ... -> close

Unless the store `is_immediate`, all calls of it are in a thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import chain
from logging import getLogger
from operator import attrgetter
from threading import Event, Lock
from typing import Final, TypeVar

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync

from timerqueue import SystemClock

from .._commits import Commits, Writer, in_turn
from .._control import PartedRegistry
from .._fleet import Borrowing
from .._journal import Flushed, Sealed
from .._restore import NOTHING_LOST, Chunk, Lost, RowParts, Rows
from .._starts import REMOVED
from .._values import Backoff, DispatchStatistics, DuplicateJob, StoreStatistics
from ..stores import (
    Batch,
    Opened,
    Receipt,
    Store,
    StoredPause,
    StoredTick,
    StoreError,
    StoreTakenOver,
    StoreUnavailable,
    Unstorable,
)
from .membership import Membership
from .polling import Polling

logger = getLogger(__name__)

T = TypeVar("T")

_Joined = tuple[Opened, list[StoredPause], list[StoredTick], list[StoredTick]]

RETRY: Final = Backoff(0.1, 1.0)

LAST_WORDS: Final = 5.0
"""Seconds for the last notes."""


SLICE: Final = 100

BETWEEN_LAST_WORDS: Final = 0.25


class Memory:
    def __init__(
        self,
        store: Store,
        writer: Writer,
        rows: RowParts,
        *,
        registry: PartedRegistry,
        commits: Commits,
        polling: Polling,
        membership: Membership,
        units: Borrowing,
    ) -> None:
        self.store = store
        self.membership = membership
        self._units = units
        self.reconciler = rows.reconciler
        self.polling = polling
        self._commits = commits
        self._journal = rows.core.journal
        self.crashes = rows.crashes
        self._writer = writer
        self._core = rows.core
        self._registry = registry
        self.row_reader = rows.row_reader
        self._flushes: dict[Flushed, None] = {}
        self._is_called = Lock()
        """Held while `open` or `load` is in the store."""
        self._is_given_up = False
        self._is_closed = False

    async def load(self, first_loaded: anyio.Event, group: TaskGroup) -> None:
        """Make jobs of the store's rows. `first_loaded` is set when the soonest are there.

        Raises StoreError, and DuplicateJob for a stored job that was added already.
        """
        opened, pauses, cut_off, were_owed = await self._patiently(self._join, StoreUnavailable, StoreTakenOver)
        self._journal.open(opened.epoch)
        for pause in map(self.row_reader.pause, pauses):
            if pause is not None:
                self.reconciler.pause_scope(pause.scope, pause)
        crashes, owed = _by_job(self.row_reader.ticks(cut_off)), _by_job(self.row_reader.ticks(were_owed))
        rows = self.membership.rows()
        count = 0
        while (chunk := await self._next_rows(rows, first_loaded)) is not None:
            for number, (raw, state) in enumerate(chunk):
                row = self.row_reader.job(raw)
                if row is not None:
                    lost = Lost(crashes.pop(row.id, ()), owed.pop(row.id, ())) if crashes or owed else NOTHING_LOST
                    self.reconciler.adopt(row, self.row_reader.state(state), lost)
                if not number % SLICE:
                    await checkpoint()
            count += len(chunk)
            if not self._registry.early:
                self._commits.open(opened.epoch)
                first_loaded.set()
        gone = Lost(list(chain(*crashes.values())), list(chain(*owed.values())))
        self.crashes.without_job(gone, "the process died under it, and its job has been removed since", REMOVED)
        while self._registry.begin_early(SLICE):
            await checkpoint()
        self._commits.open(opened.epoch)
        first_loaded.set()
        logger.info("%d jobs are in %r", count, self.store)
        self._begin(group)

    async def _join(self) -> _Joined:
        """Raises StoreTakenOver if others took our part meanwhile, and is called again."""
        now_us = self._core.timeline.us(self._core.monotonic(), steady=False)
        opened = await self._ask(lambda: self.store.open(now_us, self.membership.hint))
        await self.membership.join()
        try:
            pauses = await self._read(self.store.pauses)
            crashes = await self._read(self.membership.cut_off)
            return opened, pauses, crashes, await self._read(self.membership.owed)
        except StoreTakenOver:
            await self._ask(self.membership.abandon)
            raise

    async def _read(self, call: Callable[[], T]) -> T:
        return await self._patiently(partial(self._ask, call), StoreUnavailable)

    async def _patiently(self, ask: Callable[[], Awaitable[T]], *troubles: type[StoreError]) -> T:
        """Ask a shared store until it answers or we stop. Another store is asked once, as is any by `run_once`."""
        runs, failures, known = self._core.runs, 0, ""
        while True:
            try:
                return await ask()
            except troubles as exc:
                if not self.membership.is_patient or runs.is_on_demand or runs.is_stopping:
                    raise
                failures += 1
                if str(exc) != known:
                    known = str(exc)
                    logger.warning("the store cannot be opened yet, and is asked again and again: %s", exc)
                await self._core.clock.sleep(RETRY.after(failures))

    def _begin(self, group: TaskGroup) -> None:
        self._registry.begin_parts(self.polling.poll)
        self.polling.begin()
        self.membership.begin(group)
        self._units.begin()

    async def _next_rows(self, rows: Rows, is_running: anyio.Event) -> Chunk | None:
        """Once the loop runs, the writer calls the store, unless rows have their own connections."""
        if self.store.is_immediate or not is_running.is_set() or self.membership.reads_beside:
            return await self._read(lambda: next(rows, None))
        return await in_turn(self._writer, lambda: next(rows, None))

    async def flush(self) -> None:
        """Return when all present changes are durable. Any thread's event loop. Raises StoreError if some are lost."""
        done = SystemClock().make_wake()  # a wait that the scheduler's thread may end
        lost: list[Exception] = []

        def flushed(error: Exception | None) -> None:
            if error is not None:
                lost.append(error)
            done.set()

        self._flushes[flushed] = None
        try:
            changed = self._registry.early.renewals.call_after
            self._core.loop.call_soon(changed, partial(self._journal.flush, flushed))
            if self._is_closed:  # in another thread, after the running scheduler was seen
                flushed(StoreUnavailable(f"{self.store!r} is closed"))
            await done.wait(None)
        finally:
            del self._flushes[flushed]
        if lost and isinstance(lost[0], DuplicateJob):
            raise lost[0]
        if lost:
            msg = f"some of it could not be stored in {self.store!r}: {lost[0]}"
            raise StoreError(msg) from lost[0]

    async def history(self, job_ids: Iterable[str | None], limit: int, before_us: int | None) -> list[StoredTick]:
        """Latest first. None: all jobs."""
        found: list[StoredTick] = []
        for job_id in job_ids:
            read = partial(self.store.history, job_id, limit=limit, before_us=before_us)
            found += read() if self.store.is_immediate else await run_sync(read, abandon_on_cancel=True)
        ticks = sorted(self.row_reader.ticks(found), key=attrgetter("due_us"), reverse=True)
        return ticks[:limit]

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(self._commits.count, self._journal.unsaved, self._commits.trouble)

    def queue_statistics(self) -> DispatchStatistics | None:
        return self.membership.queue_statistics()

    def end(self) -> None:
        self.membership.end()

    async def close(self) -> None:
        """Commit the last notes. Gives up after LAST_WORDS."""
        self.polling.end()
        lost: Exception | None = StoreUnavailable(
            f"{self.store!r} does not answer: {self._journal.unsaved} changes are lost"
        )
        with anyio.move_on_after(LAST_WORDS, shield=True):
            lost = (
                self._say_last_words() if self.store.is_immediate else await run_sync(self._end, abandon_on_cancel=True)
            )
        if lost is not None and self._journal.unsaved:
            logger.error("what was not saved at the end is lost: %s", lost)
        self._is_closed = True
        for flushed in list(self._flushes):
            flushed(lost)

    def _end(self) -> Exception | None:
        if not self._is_called.acquire(timeout=LAST_WORDS):
            self._is_given_up = True
            return StoreUnavailable(f"{self.store!r} does not answer")
        try:
            return self._say_last_words()
        finally:
            self._is_called.release()

    def _say_last_words(self) -> Exception | None:
        """In a thread, or on the loop if the store is immediate."""
        self.polling.close()
        if not self._writer.close(LAST_WORDS, self.store.close):
            return StoreUnavailable(f"{self.store!r} does not answer")
        try:
            while (sealed := self._commits.left()) is not None:
                self._commits.said(self._commit_last(sealed))
        except StoreError as exc:
            return exc
        finally:
            self._units.leave()
            self.membership.close()
            self.store.close()
        return None

    def _commit_last(self, sealed: Sealed) -> list[Receipt]:
        try:
            return [self._insist(sealed.batch)]
        except Exception as exc:
            if isinstance(exc, StoreError) and not isinstance(exc, Unstorable):
                raise
            parts = sealed.by_job()
            if len(parts) < 2:  # noqa: PLR2004 - this part itself fails
                logger.critical("what should be stored of %r is lost", sealed.job_ids(), exc_info=exc)
                return []
            return [receipt for part in parts for receipt in self._commit_last(part)]

    def _insist(self, batch: Batch) -> Receipt:
        """The next scheduler takes a run without an end for a crash."""
        for _ in range(0 if self.store.is_immediate else int(LAST_WORDS / BETWEEN_LAST_WORDS) - 1):
            try:
                return self.store.commit(batch)
            except StoreUnavailable:
                Event().wait(BETWEEN_LAST_WORDS)
        return self.store.commit(batch)

    async def _ask(self, call: Callable[[], T]) -> T:
        if self.store.is_immediate:
            return call()
        return await run_sync(self._alone, call, abandon_on_cancel=True)

    def _alone(self, call: Callable[[], T]) -> T:
        """One call at a time. A call that no task waits for closes the store."""
        with self._is_called:
            try:
                return call()
            finally:
                if self._is_given_up:
                    self.store.close()


def _by_job(ticks: Iterable[StoredTick]) -> dict[str, list[StoredTick]]:
    found: defaultdict[str, list[StoredTick]] = defaultdict(list)
    for tick in ticks:
        found[tick.job_id].append(tick)
    return dict(found)
