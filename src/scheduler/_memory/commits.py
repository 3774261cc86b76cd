"""The ledger: what the scheduler has to remember, gathered on the loop and committed in groups.

Whatever changes is noted here at once, and costs a dictionary entry. While one batch is being committed the next one
fills; it is sealed, which is when the states of all jobs in it are written down, as soon as the store has answered.
So a commit is shared by all that happened during the one before it, and the busier it is, the cheaper is each run.

A run that has room is *marked* before it begins: it is held until its mark is durable, and a mark that the store
refuses, because the tick has run before, is the end of it. When the store cannot be reached the batch is kept and sent
again (that is harmless: batches hold absolute values and fences), nothing that needs a mark begins, and what runs goes
on. Everything here happens in the thread of the loop; the store is called by the writer.
"""

from __future__ import annotations

from contextlib import suppress
from logging import getLogger
from typing import TYPE_CHECKING, Final

from timerqueue import LifecycleError

from .._journal.pending import (
    Flushed,
    Pending,
    Sealed,
    dropped_tick,
    missed_tick,
    renamed_tick,
    unmarked_tick,
    with_pause,
)
from .._plan.timeline import AT_ONCE
from .._values.backoff import Backoff
from .._values.events import StoreDown, StoreUp
from .._values.outcome import MissedReason, Outcome
from ..stores._rows import JobPause, Receipt, Retention, StoredJob, StoredPause, StoredTick
from ..stores._store import StoreError, StoreTakenOver, Unstorable
from .pruning import Pruning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timerqueue import TimerQueue

    from .._jobs.job import Attempt, Job
    from .._plan.timeline import Timeline
    from .._runs.marks import Marks
    from .._values.listeners import Listeners
    from ..stores._store import Store
    from .writer import Writer

logger = getLogger(__name__)

RETRY: Final = Backoff(0.05, 5.0)
"""How long after a failure the store is asked again."""

BETWEEN_COMMITS: Final = 0.003
"""Seconds from one commit, which costs what a hundred runs cost, to the next. Half of it is lateness of a start."""

MANY: Final = 100
"""With more ends of runs than this there is much to do."""

STALLED: Final = 10.0
LOOKS: Final = 3
"""Seconds without an answer, and looks in vain, after which a store counts as down."""

PRUNE_EVERY: Final = 5
"""Failures between attempts to make room by pruning."""


class Ledger:
    """One scheduler's, over one store."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        *,
        queue: TimerQueue,
        timeline: Timeline,
        listeners: Listeners,
        marks: Marks,
        retention: Retention,
    ) -> None:
        self.store = store
        self.writer = writer
        self.trouble: str | None = None
        """What is wrong with the store; None: nothing that is known."""
        self.commits = 0
        self.unfollowed: dict[str, StoredJob | None] = {}
        """Rows that others have changed, and that jobs are still to follow. What is changed here since wins."""
        self._queue = queue
        self._timeline = timeline
        self._listeners = listeners
        self._marks = marks
        self._pruning = Pruning(store, writer, retention, self._now_us)
        self._fence: int | None = None
        self._pending = Pending()
        self._sealed: list[Sealed] = []
        """The first of these is being sent. There are several only if a batch had to be taken apart."""
        self._is_sending = False
        self._sent_at = 0.0
        self._looks = 0  # for an answer, in vain
        self._is_turn_near = False
        self._failures = 0
        self._lost: Exception | None = None
        """Why something is not stored that was noted before the next flush."""
        self._down_since: float | None = None

    @property
    def unsaved(self) -> int:
        """Changes that are not durable yet."""
        return len(self._pending) + sum(len(sealed.batch.jobs) + len(sealed.batch.states) for sealed in self._sealed)

    def open(self, epoch: int) -> None:
        """The store is open and all that it held is known: from now on it is written to."""
        if self._fence is None:
            self._fence = epoch << 32
        self._ask()

    # -- what is noted -------------------------------------------------------------------------------------------------

    def put(self, row: StoredJob) -> None:
        self.unfollowed.pop(row.id, None)
        self._pending.put(row.id, row)
        self._ask()

    def pause_job(self, id: str, pause: JobPause) -> None:
        """It is paused, or is not any more: of its row no more than that is written."""
        if (row := self.unfollowed.get(id)) is not None:
            self.unfollowed[id] = with_pause(row, pause)
        self._pending.pause(id, pause)
        self._ask()

    def holds(self, id: str) -> bool:
        """Whether a row that was put or removed here is still on its way to the store."""
        return id in self._pending.jobs or any(id in sealed.batch.jobs for sealed in self._sealed)

    def as_it_will_be(self, id: str, row: StoredJob | None) -> StoredJob | None:
        """The row that others have changed, with what is on its way to it."""
        for paused in (*(sealed.batch.paused for sealed in self._sealed), self._pending.paused):
            row = with_pause(row, paused[id]) if row is not None and id in paused else row
        return row

    def removed(self, job: Job, *, is_finished: bool = False) -> None:
        self.unfollowed.pop(job.id, None)
        self._pending.remove(job, job.schedule_text if is_finished else None)
        job.floor = None
        self._ask()

    def pause(self, scope: str, pause: StoredPause | None) -> None:
        self._pending.pauses[scope] = pause
        self._ask()

    def touch(self, job: Job) -> None:
        """The job's state has changed."""
        self._pending.touch(job)
        self._ask()

    def _touch_with_tick(self, job: Job) -> None:
        """The job's state has changed with a record of one of its ticks: both stand in the same batch."""
        self._pending.touch_with_tick(job)
        self._ask()

    def mark(self, run: Attempt) -> None:
        """Commit that it is about to begin. It counts as a run, and until its end as a crash, from here on."""
        run.wait_for_mark(self._next_fence())
        run.job.counts().runs += 1
        self._pending.marks[run] = None
        self._pending.last_missed.pop(run.job, None)
        self._touch_with_tick(run.job)

    def _next_fence(self) -> int:
        assert self._fence is not None
        self._fence += 1
        return self._fence

    def withdraw(self, run: Attempt) -> bool:
        """Take its mark back. False: it has been sent already."""
        if run.is_sent:
            return False
        del self._pending.marks[run]
        run.job.counts().runs -= 1
        return True

    def unmark(self, run: Attempt, reason: MissedReason) -> None:
        """It has been marked, and will not begin after all."""
        self._touch_with_tick(run.job)
        if self.withdraw(run):
            if run.attempt == 1:
                self.missed(run.job, run.due_us, run.due_us, 1, reason)
            return
        run.job.counts().runs -= 1
        if reason is not MissedReason.REPEATED:
            self._pending.ended.append(unmarked_tick(run, reason, self._now_us()))

    def postpone(self, run: Attempt, reason: MissedReason) -> StoredTick:
        """It has been marked, will not begin, and is owed: the record that says so."""
        if not self.withdraw(run):
            run.job.counts().runs -= 1
        tick = dropped_tick(run, reason, self._now_us())._replace(owed=True)
        self._pending.ended.append(tick)
        self._touch_with_tick(run.job)
        return tick

    def give_up(self, tick: StoredTick, why: str) -> None:
        """What was owed is not any more: its record stays, and says why."""
        error = f"{tick.error or tick.outcome}; given up: {why}"
        self._pending.ended.append(tick._replace(owed=False, error=error))
        self._ask()

    def ended(self, job: Job, tick: StoredTick) -> None:
        """A run of the job has ended, and this is its record."""
        self._pending.ended.append(tick)
        self._touch_with_tick(job)

    def crashed(
        self, tick: StoredTick, now_us: int, error: str, job: Job | None = None, *, owed: bool = False
    ) -> StoredTick:
        """A tick that was found RUNNING at the start has ended then: its record. `job`: None if that is gone."""
        record = tick._replace(outcome=Outcome.CRASHED.value, ended_us=now_us, error=error, owed=owed)
        self._pending.ended.append(record)
        if job is None:
            self._ask()
        else:
            self._touch_with_tick(job)
        return record

    def missed(
        self, job: Job, first_us: int, last_us: int, count: int, reason: MissedReason, *, is_exact: bool = True
    ) -> None:
        """Ticks have no run."""
        now_us = self._now_us()
        self._pending.miss(job, missed_tick(job.id, first_us, last_us, count, reason, now_us, is_exact=is_exact))
        self._touch_with_tick(job)

    def flush(self, done: Flushed) -> None:
        """Call `done` when all that has been noted until now is durable."""
        self._pending.flushed.append(done)
        self._ask()

    # -- how it becomes durable ----------------------------------------------------------------------------------------

    def look(self, now: float) -> None:
        """Notice that the store does not answer. Called now and then."""
        if not self._is_sending:
            self._looks = 0
            return
        self._looks += 1  # a loop that stood still itself has looked seldom
        if now - self._sent_at > STALLED and self._looks > LOOKS:
            self._is_down(f"{self.store!r} has not answered for {STALLED:g} s")

    def answered(self) -> None:
        """The store has answered something else than a commit."""
        if not self._failures and not self._is_sending:
            self._is_up()

    def failed(self, error: Exception) -> None:
        """A call of the store has failed, for what is wrong with that."""
        if isinstance(error, StoreError):
            self._is_down(str(error), is_taken_over=isinstance(error, StoreTakenOver))
        else:
            logger.error("the store failed", exc_info=error)

    def left(self) -> Sealed | None:
        """The next batch that is not durable yet, for a last attempt when the loop has ended. `said`: it is now."""
        if not self._sealed and self._pending and self._fence is not None:
            self._seal()
        return self._sealed[0] if self._sealed else None

    def said(self, receipts: Iterable[Receipt]) -> None:
        """The batch that was left is durable, in one part or in several."""
        self._sealed.pop(0)
        for receipt in receipts:
            self._look_at_stale(receipt)

    def _ask(self) -> None:
        """See to it that what is pending is sent: in the next turn of the loop, with what comes until then."""
        if self._sealed or self._fence is None or (self._is_turn_near and not self._pending.flushed):
            return
        self._is_turn_near = True
        with suppress(LifecycleError):  # the loop has ended: `left` is asked
            self._queue.push(self._next_turn(), self._turn)

    def _next_turn(self) -> float:
        """When to send: a little after the last time, so that more share a commit, unless somebody waits for it."""
        if self.store.is_immediate or self._pending.flushed or len(self._pending.ended) > MANY:
            return AT_ONCE
        return self._sent_at + BETWEEN_COMMITS

    def _turn(self) -> None:
        self._is_turn_near = False
        if self._pending and not self._sealed:
            self._seal()
            self._send()

    def _seal(self) -> None:
        self._pending.name_missed(self._next_fence)
        sealed, self._pending = self._pending.seal(self._timeline, self._now_us())
        self._sealed.append(sealed)

    def _send(self) -> None:
        batch = self._sealed[0].batch
        self._is_sending = True
        self._sent_at = self._queue.clock.monotonic()
        self.writer.submit(lambda: self.store.commit(batch), self._answered)

    def _answered(self, receipt: Receipt | None, error: Exception | None) -> None:
        self._is_sending = False
        self._looks = 0
        if error is None and receipt is not None:
            self._committed(receipt)
        elif isinstance(error, StoreError) and not isinstance(error, Unstorable):
            self._try_again(error)
        elif error is not None:
            self._take_apart(error)
        if self._is_sending or self._failures:
            return
        if self._sealed:
            self._send()
        elif self._pending:
            self._is_turn_near = False
            self._ask()

    def _committed(self, receipt: Receipt) -> None:
        self._is_up()
        self.commits += 1
        sealed = self._sealed.pop(0)
        refused = {tick.fence for tick in receipt.refused}
        if self._look_at_stale(receipt):
            self._pending.flushed[:0], sealed.flushed = sealed.flushed, []
        durable = [run for run in sealed.runs if run.fence_number not in refused]
        for run in sealed.runs:
            if run.fence_number in refused:
                self._marks.refused(run)  # which may mark it anew: it has another fence from then on
        if durable:
            self._marks.committed(durable)
        self._tell_flushed(sealed)
        self._pruning.written(sealed.batch, self._sent_at)

    def _look_at_stale(self, receipt: Receipt) -> bool:
        """Ends that the store has not taken, because their ticks have records of others. Whether some are sent anew."""
        are_some_sent_anew = False
        for tick in receipt.stale:
            if tick.outcome == Outcome.MISSED.value:  # its mark was refused, or it had none: the next name is free
                self._pending.ended.append(renamed_tick(tick))
                are_some_sent_anew = True
                continue
            logger.error(
                "the end of a run of job %r came too late: its tick has been marked anew: %r", tick.job_id, tick
            )
        return are_some_sent_anew

    def _try_again(self, error: StoreError) -> None:
        self.failed(error)
        self._failures += 1
        if self._failures % PRUNE_EVERY == 0:
            self._pruning.begin()  # a full disk may have room after it
        self._queue.push(self._queue.clock.monotonic() + RETRY.after(self._failures), self._send_again)

    def _send_again(self) -> None:
        if self._sealed and not self._is_sending:
            self._send()

    def _take_apart(self, error: Exception) -> None:
        """What no store can carry out must not stand in the way of the rest: job by job only those to blame fail."""
        sealed = self._sealed.pop(0)
        parts = sealed.by_job()
        if len(parts) > 1:
            logger.error("a batch failed and is sent again job by job", exc_info=error)
            self._sealed[:0] = parts
            return
        logger.critical(
            "what should be stored of %r is lost: the store cannot take it", sealed.job_ids(), exc_info=error
        )
        for run in sealed.runs:
            self._marks.lost(run)
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
        if self._down_since is None:
            self._down_since = self._queue.clock.monotonic()
            self._marks.store_down([*self._pending.marks, *(run for sealed in self._sealed for run in sealed.runs)])
        if not was_told:
            self._listeners.tell(StoreDown(self._queue.clock.wall(), error, is_taken_over))

    def _is_up(self) -> None:
        self._failures = 0
        if self._down_since is None:
            return
        seconds = self._queue.clock.monotonic() - self._down_since
        self.trouble = self._down_since = None
        logger.info("the store works again, after %.1f s", seconds)
        self._listeners.tell(StoreUp(self._queue.clock.wall(), seconds))
