"""Commits: notes of the journal go to the store, batch after batch.

While one batch is committed the next one fills, so a busier scheduler has cheaper runs. A durable mark lets its run
begin; a refused mark, of a tick that has run before, ends it. A batch that cannot reach the store is sent again, which
is harmless: it holds absolute values and fences. On the loop; the writer calls the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from logging import getLogger
from typing import Final

from timerqueue import LifecycleError

from .._journal import MOST_JOBS, Sealed
from .._loop import Core
from .._plan import AT_ONCE, instant_at
from .._values import Backoff, Outcome, StoreDown, StoreUp
from ..stores import (
    Receipt,
    Retention,
    Store,
    StoreBusy,
    StoredJob,
    StoreError,
    StoreLocked,
    StoreUnreachable,
    Unstorable,
)
from .batch_window import FULL, BatchWindow
from .consequences import Consequences
from .locked_rows import LockedRows
from .pruning import Pruning
from .writer import Writer

logger = getLogger(__name__)

RETRY: Final = Backoff(0.05, 1.0)
RECONNECT: Final = Backoff(0.05, 0.25)
"""The wait after a failure: RECONNECT if the store was unreachable, else RETRY."""

STALLED: Final = 10.0
LOOKS: Final = 3
"""Seconds and looks without an answer, after which a store counts as down."""

SLOW: Final = 1.0
"""Seconds after which the batch's size may have broken the connection."""

REFUSED_OFTEN: Final = 40
"""Successive immediate failures after which its size may be the reason, too."""

PIECE: Final = 250

PRUNE_EVERY: Final = 5


class Commits:
    """One scheduler's commits. `consequences`: hear of each answer, and of failures."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        core: Core,
        retention: Retention,
        consequences: Consequences,
    ) -> None:
        self.store = store
        self.writer = writer
        self.trouble: str | None = None
        self.count = 0
        self._journal = core.journal
        self._queue = core.queue
        self._timeline = core.timeline
        self._listeners = core.listeners
        self._marks = core.runs.marks
        self._pruning = Pruning(store, writer, retention, self._now_us)
        self._is_open = False
        self._is_sending = False
        self._sent_at = 0.0
        self._looks = 0  # without an answer
        self._locked_rows = LockedRows(store, writer, core, self._go_on)
        self._is_turn_near = False
        self.batch_window = BatchWindow()
        self._failures = 0
        self._most: int | None = None
        """The most jobs that get through. None: any number."""
        self._lost: Exception | None = None
        """Why a note before the next flush is not stored."""
        self._down_since: float | None = None
        self._consequences = consequences
        core.journal.keep(self._ask)

    def open(self, epoch: int) -> None:
        """Write to the store from now on: it has been read."""
        self._journal.open(epoch)
        self._is_open = True
        self._ask()

    def reopen(self, epoch: int) -> None:
        self._journal.reopen(epoch)
        self._is_open = True
        self._ask()

    def suspend(self) -> None:
        """Send no more. The answer to a sent commit still comes."""
        self._is_open = False

    def look(self, now: float) -> None:
        if not self._is_sending:
            self._looks = 0
            return
        self._looks += 1  # a loop that stood still has looked seldom
        if now - self._sent_at > STALLED and self._looks > LOOKS:
            self._is_down(f"{self.store!r} has not answered for {STALLED:g} s")

    def changed(self, rows: int) -> None:
        self._pruning.changed(rows, self._queue.clock.monotonic())

    def answered(self) -> None:
        if not self._failures and not self._is_sending:
            self._is_up()

    def try_now(self) -> None:
        """Send a failed batch at once: the store has answered elsewhere."""
        if self._failures:
            self._send_again(self._failures)

    def failed(self, error: Exception) -> None:
        """Note a failed call. An error other than StoreError is a defect of the store."""
        if isinstance(error, StoreBusy):
            logger.debug("the store was not asked: %s", error)
        elif isinstance(error, StoreError):
            self._is_down(str(error), is_taken_over=self._consequences.failed(error))
        else:
            logger.error("the store failed", exc_info=error)

    def left(self) -> Sealed | None:
        """Return the next undurable batch, for a last attempt after the loop's end. `said` confirms it."""
        journal = self._journal
        if not journal.sealed and journal.pending and self._is_open:
            journal.seal()
            self._locked_rows.keep_aside()
        self._locked_rows.look_last()
        if not journal.sealed:
            journal.sealed += journal.aside.free(())
        if journal.sealed and len(journal.sealed[0].batch.states) > PIECE:
            journal.take_apart(PIECE)
        return journal.sealed[0] if journal.sealed else None

    def said(self, receipts: Sequence[Receipt]) -> None:
        sealed = self._journal.taken()
        for receipt in receipts:
            self._look_at_stale(receipt)
        gone = tuple(gone for receipt in receipts for gone in receipt.gone)
        self._consequences.committed(sealed.batch, Receipt(gone=gone))

    def _ask(self) -> None:
        journal = self._journal
        if self._is_turn_near and not journal.pending.flushed:  # nearly always so, hence first
            return
        if journal.sealed or not self._is_open:
            return
        with suppress(LifecycleError):  # the loop has ended: `left` sends them
            self._turn_at(AT_ONCE if self._is_pressing else self.batch_window.first_look())

    @property
    def _is_pressing(self) -> bool:
        pending = self._journal.pending
        return self.store.is_immediate or bool(pending.flushed) or len(pending.ended) > FULL

    def _turn_at(self, when: float) -> None:
        self._is_turn_near = True
        self._queue.push(when, self._turn)

    def _turn(self) -> None:
        self._is_turn_near = False
        journal = self._journal
        if not journal.pending or journal.sealed or not self._is_open:
            return
        starts, now = len(journal.pending.marks), self._queue.clock.monotonic()
        later = None if self._is_pressing else self.batch_window.next_look(starts, now)
        if later is not None:
            self._turn_at(later)
            return
        self.batch_window.closed(starts, now)
        journal.seal()
        self._locked_rows.keep_aside()
        if journal.sealed:
            self._send()

    def _send(self) -> None:
        journal = self._journal
        if self._most is not None and len(journal.sealed[0].batch.states) > self._most:
            journal.take_apart(self._most)
        batch = journal.sealed[0].batch
        self._is_sending = True
        self._sent_at = self._queue.clock.monotonic()
        self.writer.submit(lambda: self.store.commit(batch), self._answered)

    def _answered(self, receipt: Receipt | None, error: Exception | None) -> None:
        self._is_sending = False
        self._looks = 0
        self._consequences.tried(error)
        if error is None and receipt is not None:
            self._committed(receipt)
        elif isinstance(error, StoreLocked) and self._locked_rows.can_be_found and self._is_open:
            self._ask_what_is_locked(error)
        elif isinstance(error, StoreError) and not isinstance(error, Unstorable):
            self._try_again(error)
        elif error is not None:
            self._take_apart(error)
        self._go_on()

    def _go_on(self) -> None:
        if self._is_sending or self._failures or not self._is_open:
            return
        if self._journal.sealed:
            self._send()
        elif self._journal.pending:
            self._is_turn_near = False
            self._ask()

    def _committed(self, receipt: Receipt) -> None:
        self._is_up()
        self.count += 1
        self.batch_window.committed(self._queue.clock.monotonic() - self._sent_at)
        sealed = self._journal.taken()
        self._got_through(len(sealed.batch.states))
        refused = {tick.fence for tick in receipt.refused}
        self._marks.stored(sealed.batch.ended, receipt.stale)
        if self._look_at_stale(receipt):
            self._journal.pending.flushed[:0], sealed.flushed = sealed.flushed, []
        durable = [run for run in sealed.runs if run.fence_number not in refused]
        for run in sealed.runs:
            if run.fence_number in refused:
                self._marks.refused(run)  # this may mark it again: it has another fence from then on
        if durable:
            self._marks.committed(durable)
        self._consequences.committed(sealed.batch, receipt)
        self._let_stand(receipt.standing, sealed)
        self._tell_flushed(sealed)
        self._pruning.written(sealed.batch, self._sent_at)

    def _let_stand(self, rows: Sequence[StoredJob], sealed: Sealed) -> None:
        for row in rows:
            if error := self._consequences.give_way(row, sealed.batch.added.get(row.id, "")):
                self._lost = error

    def _look_at_stale(self, receipt: Receipt) -> bool:
        """Return whether some refused ends are sent again."""
        are_some_sent_again = False
        for tick in receipt.stale:
            never_began = tick.outcome == Outcome.MISSED.value or (tick.owed and not tick.attempt)
            if never_began or tick.fence in self._marks.without:  # it has no mark: the next name is free
                self._journal.rename(tick)
                are_some_sent_again = True
                continue
            logger.error(
                "the end of a run of job %r came too late, because its tick has a newer mark: %r", tick.job_id, tick
            )
        return are_some_sent_again

    def _got_through(self, jobs: int) -> None:
        if self._most is not None and 2 * jobs > self._most:
            self._most = 2 * self._most if self._most < MOST_JOBS else None

    def _try_again(self, error: StoreError) -> None:
        self.failed(error)
        self._failures += 1
        is_away = isinstance(error, StoreUnreachable)
        jobs = len(self._journal.sealed[0].batch.states)
        if jobs > PIECE and self._may_be_too_large(error):
            self._most = max(PIECE, jobs // 2)
        if self._failures % PRUNE_EVERY == 0 and not is_away:
            self._pruning.begin()  # a full disk may have room after it
        wait = (RECONNECT if is_away else RETRY).after(self._failures)
        self._queue.push(self._queue.clock.monotonic() + wait, partial(self._send_again, self._failures))

    def _may_be_too_large(self, error: StoreError) -> bool:
        """Return whether a smaller batch may get through, in less time, or without breaking the connection."""
        took = self._queue.clock.monotonic() - self._sent_at
        return not isinstance(error, StoreUnreachable) or took > SLOW or not self._failures % REFUSED_OFTEN

    def _send_again(self, failures: int) -> None:
        if failures == self._failures and self._journal.sealed and not self._is_sending and self._is_open:
            self._send()

    def _ask_what_is_locked(self, why: StoreLocked) -> None:

        def found(locked: set[str] | None, error: Exception | None) -> None:
            self._is_sending = False
            if not (self._is_open and self._journal.sealed):
                return
            if not locked:
                self._try_again(error if isinstance(error, StoreError) else why)
                return
            self._is_up()  # it has answered; after a failure nothing else would send the rest
            self._locked_rows.wait(locked)
            self._go_on()

        self._is_sending = True
        self._locked_rows.ask(found)

    def _take_apart(self, error: Exception) -> None:
        """Send a batch again job by job: one bad part must not delay the rest."""
        if self._journal.take_apart():
            logger.error("a batch failed and is sent again job by job", exc_info=error)
            return
        sealed = self._journal.lost()
        logger.critical(
            "what should be stored of %r is lost: the store cannot take it", sealed.job_ids(), exc_info=error
        )
        for run in sealed.runs:
            self._marks.lost(run)
        self._consequences.lost(sealed.batch)
        self._lost = error
        self._tell_flushed(sealed)

    def _tell_flushed(self, sealed: Sealed) -> None:
        if sealed.flushed:
            lost, self._lost = self._lost, None
            for done in sealed.flushed:
                done(lost)

    def _now_us(self) -> int:
        return self._timeline.us(self._queue.clock.monotonic(), steady=False)

    def _is_down(self, error: str, *, is_taken_over: bool = False) -> None:
        was_told = self._down_since is not None and (self.trouble == error or not is_taken_over)
        if self.trouble != error:
            self.trouble = error
            logger.warning("the store does not work: %s", error)
        if is_taken_over:
            self._marks.store_is_anothers()
        if self._down_since is None:
            self._down_since = self._queue.clock.monotonic()
            self._marks.store_down(self._journal.marked())
        if not was_told:
            self._listeners.tell(StoreDown(instant_at(self._queue.clock.wall()), error, is_taken_over))

    def _is_up(self) -> None:
        self._failures = 0
        self._marks.store_up()
        if self._down_since is None:
            return
        seconds = self._queue.clock.monotonic() - self._down_since
        self.trouble = self._down_since = None
        logger.info("the store works again, after %.1f s", seconds)
        self._listeners.tell(StoreUp(instant_at(self._queue.clock.wall()), seconds))
