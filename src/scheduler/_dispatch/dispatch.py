"""Dispatch: jobs whose next starts stand in a queue come to us for one tick, and go again.

    an execution comes out -> take it, with its job (a row lock decides who) -> the job goes on here as it would anyway
    a run of it begins -> the commit of its mark plans its next execution, which is put once that is durable, unless
                          it is near: then we may decide about that start, too
    nothing of the job is left to do -> the commit that says so releases it, and plans what has not been planned yet;
                                        and the queue deletes the execution that it was taken for
    it is with us for a while -> the next commit plans its next execution, should we die

So the row is always written before the queue hears of it. A queue may lose what it holds, or give it twice or too
early: whatever comes out is asked of its row, and what may not run is dropped and counted. Between two ticks a job is
known here and idle (`is_elsewhere`). Lives on the loop; the store is asked in the line of the commits, and the queue in
a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from logging import DEBUG, ERROR, getLogger
from typing import Final

from timerqueue import LifecycleError

from .._commits import Writer
from .._control import Registry
from .._jobs import Job
from .._plan import us_of
from .._restore import RowParts, leave_to_others
from .._starts import SKIPPED
from .._values import DispatchStatistics
from ..queues import Place, Queue, Tick
from ..stores import (
    Batch,
    Execution,
    Executions,
    Mended,
    Planned,
    Receipt,
    Standing,
    StoreError,
)
from .fetching import CarryOut, Fetching
from .fitting import Fitting, Wheres
from .held import Held, Hold
from .next_execution import due_elsewhere, left_out, next_execution
from .puts import Puts
from .stays import Stays
from .taking import Taking, is_idle

logger = getLogger(__name__)

SOON: Final = 1_000_000
"""Microseconds before its due instant from which on a start is nothing that others need to know of, while its job is at
work here.
"""

LAST_PUTS: Final = 3.0
"""Seconds that the queue has at the end to take what was planned last."""


class Dispatch:
    """The dealings of one scheduler with its queue. `carry_out`: as of Fetching."""

    def __init__(
        self,
        queue: Queue,
        executions: Executions,
        held: Held,
        rows: RowParts,
        registry: Registry,
        *,
        carry_out: CarryOut,
        store_line: Writer,
        queue_line: Writer,
    ) -> None:
        core = rows.core
        self.queue = queue
        self.executions = executions
        self._held = held
        self._store_line = store_line
        self._queue_line = queue_line
        self._core = core
        self._journal = core.journal
        self._jobs = core.jobs
        self._registry = registry
        self.puts = Puts(queue, core, queue_line)
        self.fitting = Fitting(queue, executions, held, self.puts, core)
        self.fetching = Fetching(
            executions, held, rows, carry_out=carry_out, fitting=self.fitting, store_line=store_line
        )
        self.stays = Stays(held, core, queue)
        self.taking = Taking(
            executions,
            held,
            self.puts,
            rows,
            on_taking=self.stays.begin,
            fitting=self.fitting,
            store_line=store_line,
        )
        self.missing = 0
        """Executions that an audit has put again."""
        self._is_over = False
        core.journal.before_sending(self._seal)

    def begin(self) -> None:
        """Take what is due from now on: the store is open and read."""
        self.stays.room.look()
        self.queue.open(self._core.clock, self._call_at, self.taking.deliver)

    def _call_at(self, at: float, func: Callable[[], None]) -> None:
        with suppress(LifecycleError):  # the loop has ended: what stood here is still pending in the store
            self._core.queue.push(at, func)

    def statistics(self) -> DispatchStatistics:
        """Return what has come out, and what became of it."""
        of_queue = self.queue.statistics()
        return DispatchStatistics(
            held=len(self._held.by_id),
            taken=self.taking.taken,
            dropped={reason.value: count for reason, count in self.taking.dropped.items() if count}
            | ({"duplicate": self.taking.duplicates} if self.taking.duplicates else {})
            | ({"sent on": self.fitting.sent_on} if self.fitting.sent_on else {})
            | ({"given back": self.stays.given_back} if self.stays.given_back else {}),
            without_task=self.taking.without_task,
            here=len(self.puts.here),
            refused={reason.value: count for reason, count in of_queue.here.items()},
            missing=self.missing,
            premature=of_queue.premature,
            hops=of_queue.hops,
            expired=of_queue.expired,
            strange=of_queue.strange,
        )

    # -- what a commit says of executions --------------------------------------------------------------------------

    def _seal(self, batch: Batch) -> None:
        """Add to a batch that is about to be sent what follows from it for the executions of our jobs."""
        skipped = {tick.job_id for tick in batch.ended if tick.reason == SKIPPED.value}
        owed = {tick.job_id for tick in batch.ended if tick.owed}
        for job_id in list(batch.states):
            hold, job = self._held.by_id.get(job_id), self._jobs.find(job_id)
            if hold is not None and job is not None:
                state = batch.states[job_id]
                is_left_out = job.left_out_us is not None and not job.is_due_by_hand
                if is_left_out:  # nobody is to run it late
                    batch.states[job_id] = state._replace(next_us=None, next_of=None)
                self._plan(batch, job, hold, skips=job_id in skipped, is_owed=job_id in owed)
                if is_left_out and job_id in batch.states:
                    batch.states[job_id] = left_out(state)
        gone = [job_id for job_id, row in batch.jobs.items() if row is None] + list(batch.finished)
        for job_id in gone:
            if job_id in self._held.by_id and self._jobs.find(job_id) is None:
                batch.planned[job_id] = Planned(job_id, None, "", self._now_us())
                self._release(batch, job_id)
        self._release_strays(batch)

    def _plan(self, batch: Batch, job: Job, hold: Hold, *, skips: bool, is_owed: bool) -> None:
        due_us = batch.states[job.id].next_us
        if job.unfit is not None:
            del batch.states[job.id]  # it stands where it stood, for somebody who can read it
            due_us = hold.planned[0] if hold.is_fetched and hold.planned else hold.due_us
            hold.gives_back = True
            self.taking.without_task += 1
        is_to_begin = hold.due_us is not None and due_us is not None and due_us <= hold.due_us
        if is_to_begin and not self._is_over and job.unfit is None:
            return
        hold.gives_back |= is_to_begin
        waits_here = hold.starts_here and job.tally is None  # nothing of it has run yet, or was missed
        waits_here = waits_here or self._is_pause_over(job, hold)
        leaves = (is_idle(job) and not waits_here) or (self._is_over and not job.runs)
        if leaves and not hold.gives_back and not job.is_paused:
            is_owed = is_owed or job.owed is not None  # it has come with the job, and rests, or came at the stop
            due_us = due_elsewhere(batch.states[job.id], self._now_us() if is_owed else None)
        planned = (due_us, job.schedule_text or "")
        is_known = leaves or hold.due_us is not None  # else somebody might take it who does not know that we have it
        if is_known and not leaves and self._can_wait(job, hold, due_us):
            return
        if is_known and hold.planned != planned:  # the end of a run nearly always plans what its mark has planned
            batch.planned[job.id] = Planned(job.id, *planned, self._now_us(), skips=skips)
            hold.planned = planned
        if leaves:
            self._core.queue.disarm(job)
            leave_to_others(job)
            self._release(batch, job.id)

    def _is_pause_over(self, job: Job, hold: Hold) -> bool:
        """Whether the job's pause ends in the next turn of the loop: its execution was the end of that."""
        until = None if job.sparse is None or job.paused_by is None else job.paused_by.until
        return until is not None and us_of(until) <= max(self._now_us(), hold.due_us or 0)

    def _can_wait(self, job: Job, hold: Hold, due_us: int | None) -> bool:
        """Whether the plan can wait until the job leaves: nearly all do at once, and a near start planned sooner
        may have given way by then. Of those that stay it is made as soon as it is not near any more.
        """
        is_far = due_us is not None and due_us >= self._now_us() + SOON
        if hold.is_fetched or is_far or (hold.is_long and due_us is None):
            return False
        self.stays.see(job.id, hold)
        return True

    def _release(self, batch: Batch, job_id: str) -> None:
        hold = self._held.leaving[job_id] = self._held.by_id.pop(job_id)
        batch.released[job_id] = hold.taken_us

    def _release_strays(self, batch: Batch) -> None:
        """Release what was taken though no job has come of it. What was to begin is to be had by others."""
        held = self._held
        for job_id in [id for id in held.strays if id not in held.by_id and id not in held.leaving]:
            hold = held.leaving[job_id] = held.strays.pop(job_id)
            batch.released[job_id] = hold.taken_us
            if hold.planned is not None:
                batch.planned[job_id] = Planned(job_id, *hold.planned, self._now_us())

    def look_at_removed(self) -> None:
        """Release what we have of jobs that others have removed, which no batch of ours says. Called now and then."""
        gone = [job_id for job_id in self._held.by_id if self._jobs.find(job_id) is None]
        for job_id in gone:
            self._held.strays[job_id] = self._held.by_id.pop(job_id)
        if gone:
            self._journal.flush(lambda _lost: None)

    def look_at_forgotten(self) -> None:
        """Release what we have by its row alone, and have it put again. Called now and then.

        All others pass over it for as long as we live. The answer to a take was lost, and so was what stood in the
        queue; or a standby has become the server that missed our release: test_nothing_stays_taken.py. Rows are read in
        the line of the commits, so what they say is no older than what we know by the time of the answer.
        """
        self._store_line.submit(self.executions.taken, self._release_forgotten)

    def _release_forgotten(self, rows: Sequence[Execution] | None, error: Exception | None) -> None:
        if rows is None:
            is_for_now = isinstance(error, StoreError)
            logger.log(DEBUG if is_for_now else ERROR, "what is with us is not looked for now", exc_info=error)
            return
        forgotten = [row for row in rows if not self._held.has(row.job_id)]
        for row in forgotten:
            planned = (row.due_us, row.schedule)
            self._held.strays[row.job_id] = Hold(row.due_us, taken_us=row.due_us, planned=planned)
        if forgotten:
            logger.info("%d executions were ours by their rows alone, and are put again", len(forgotten))
            self._journal.flush(lambda _lost: None)

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        """Tell the queue what is durable now."""
        self.puts.arrived(batch.placed)
        self.stays.room.ended(len(batch.ended))
        self._put(
            [
                Tick(planned.job_id, planned.due_us, where=self._where_of(planned.job_id))
                for planned in batch.planned.values()
                if planned.due_us is not None and self._is_to_be_put(planned.job_id, planned.due_us)
            ]
        )
        for job_id in batch.released:
            hold = self._held.leaving.pop(job_id, None)
            if hold is not None:
                hold.settle()
        self._cancel(receipt.gone)
        edited = [
            job_id
            for job_id in (*batch.jobs, *batch.paused)
            if job_id not in batch.planned and job_id not in self._held.by_id
        ]
        if edited:
            self.reconcile(edited)
        if batch.requests:
            self.fetching.fetch(batch.requests)

    def lost(self, batch: Batch) -> None:
        """Release all the same what that batch was to release, which no store can take. What follows for its jobs, the
        next audit sees to.
        """
        for job_id in batch.released:
            hold = self._held.leaving.pop(job_id, None)
            if hold is not None:
                hold.planned, hold.gives_back = None, False
                self._held.strays[job_id] = hold
                self._journal.flush(lambda _lost: None)

    def _is_to_be_put(self, job_id: str, due_us: int) -> bool:
        hold = self._held.by_id.get(job_id) or self._held.leaving.get(job_id)
        if hold is None:
            return True
        if hold.placed_us == due_us or (hold.gives_back and hold.due_us == due_us):
            return False  # it stands there
        hold.placed_us = due_us
        return True

    def _where_of(self, job_id: str) -> str | None:
        """For whom a job is that was with us: as it is known here, unless it came out of the queue otherwise."""
        hold = self._held.leaving.get(job_id)
        return self.fitting.where_of(job_id) if hold is None or hold.where is None else hold.where

    def reconcile(self, job_ids: Sequence[str]) -> None:
        """See that these jobs, which nobody has, have the execution that follows from their rows by now."""

        def answered(found: tuple[Mended, Wheres] | None, error: Exception | None) -> None:
            if found is None:
                logger.warning("the executions of %d jobs wait for the next audit: %s", len(job_ids), error)
            else:
                self.mended(*found)

        def reconcile() -> tuple[Mended, Wheres]:
            mended = self.executions.reconcile(job_ids, self._decide_edited)
            return mended, self.fitting.asked(mended.planned)

        self._store_line.submit(reconcile, answered)

    def mended(self, mended: Mended, wheres: Wheres) -> None:
        """Have the queue follow what was changed in the store."""
        self._put([self.fitting.tick(execution, wheres) for execution in mended.planned])
        self._cancel(mended.gone)

    def decide(self, standing: Standing) -> Planned | None:
        """Say which execution a job is to have that nobody has. Any thread."""
        if self._held.holds(standing.id):
            return None  # it is new, and with us: its execution comes with its release
        return next_execution(standing, self._registry.updates, self._core.timeline, self._now_us())

    def _decide_edited(self, standing: Standing) -> Planned | None:
        """Say the same of a job that somebody has just edited: what it could not do before is not made up for."""
        now_us = self._now_us()
        state = standing.state
        if standing.live is None and state is not None and state.next_us is not None and state.next_us < now_us:
            anew = next_execution(standing._replace(state=None), self._registry.updates, self._core.timeline, now_us)
            return anew or self.decide(standing)
        return self.decide(standing)

    # -- the queue -----------------------------------------------------------------------------------------------------

    def _put(self, ticks: Iterable[Tick]) -> None:
        self.puts.put([(tick, None) for tick in ticks])

    def _cancel(self, executions: Iterable[Execution]) -> None:
        self.puts.cancel((Tick(each.job_id, each.due_us), _place(each)) for each in executions)

    # -- the end -------------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Take nothing more, and have the last commit release what is with us."""
        self._is_over = self.taking.is_over = True
        for job_id in list(self._held.by_id):
            job = self._jobs.find(job_id)
            if job is not None:
                self._journal.touch(job)

    def close(self) -> None:
        """Let go of the queue, once it has what was planned last. Waits some seconds at most."""
        self._queue_line.close(LAST_PUTS, self.queue.close)
        self.queue.close()

    def _now_us(self) -> int:
        return self._core.timeline.us(self._core.monotonic(), steady=False)


def _place(execution: Execution) -> Place | None:
    """Where it stands, if the store knows that."""
    if execution.instance is None or execution.number is None:
        return None
    return Place(execution.instance, execution.number)
