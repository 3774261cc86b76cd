"""Jobs whose next starts stand in a queue come here for one tick, and go again.

    an execution comes out -> take it, with its job: a row lock decides who
    a run of it begins -> the commit of its mark plans the next execution, unless that is near
    nothing of the job is left to do -> the next commit releases it; then the queue deletes its execution
    it is here for a while -> the next commit plans its next execution, in case this node dies

The row is always written before the queue is told. A queue may lose an execution, or deliver it twice or too early, so
each delivery is checked against its row. Between ticks a job is `is_elsewhere`. On the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from logging import DEBUG, ERROR, getLogger
from typing import Final

from timerqueue import LifecycleError

from ..._commits import Writer
from ..._control import Registry
from ..._jobs import Job
from ..._plan import us_of
from ..._restore import RowParts, leave_to_others
from ..._starts import SKIPPED
from ..._values import DispatchStatistics
from ...queues import Place, Queue, Tick
from ...stores import (
    Batch,
    Execution,
    Executions,
    Mended,
    Planned,
    Receipt,
    Standing,
    StoreError,
)
from .claiming import Claiming, is_idle
from .claims import Claim, Claims
from .fetching import CarryOut, Fetching
from .long_claims import LongClaims
from .next_execution import due_elsewhere, left_out, next_execution
from .publisher import Publisher
from .routing import Routing, Wheres

logger = getLogger(__name__)

NEAR_US: Final = 1_000_000
"""Microseconds: while the job runs here, others need not know of a start that near."""

LAST_PUTS: Final = 3.0
"""Seconds."""


class Dispatch:
    def __init__(
        self,
        queue: Queue,
        executions: Executions,
        held: Claims,
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
        self.publisher = Publisher(queue, core, queue_line)
        self.routing = Routing(queue, executions, held, self.publisher, core)
        self.fetching = Fetching(
            executions, held, rows, carry_out=carry_out, routing=self.routing, store_line=store_line
        )
        self.long_claims = LongClaims(held, core, queue)
        self.claiming = Claiming(
            executions,
            held,
            self.publisher,
            rows,
            on_taking=self.long_claims.begin,
            routing=self.routing,
            store_line=store_line,
        )
        self.missing = 0
        self._is_over = False
        core.journal.before_sending(self._seal)

    def begin(self) -> None:
        self.long_claims.room.look()
        self.queue.open(self._core.clock, self._call_at, self.claiming.deliver)

    def _call_at(self, at: float, func: Callable[[], None]) -> None:
        with suppress(LifecycleError):  # the loop has ended: this execution is still pending in the store
            self._core.queue.push(at, func)

    def statistics(self) -> DispatchStatistics:
        of_queue = self.queue.statistics()
        return DispatchStatistics(
            held=len(self._held.by_id),
            taken=self.claiming.taken,
            dropped={reason.value: count for reason, count in self.claiming.dropped.items() if count}
            | ({"duplicate": self.claiming.duplicates} if self.claiming.duplicates else {})
            | ({"sent on": self.routing.sent_on} if self.routing.sent_on else {})
            | ({"given back": self.long_claims.given_back} if self.long_claims.given_back else {}),
            without_task=self.claiming.without_task,
            here=len(self.publisher.here),
            refused={reason.value: count for reason, count in of_queue.here.items()},
            missing=self.missing,
            premature=of_queue.premature,
            hops=of_queue.hops,
            expired=of_queue.expired,
            strange=of_queue.strange,
        )

    # -- executions in a commit ----------------------------------------------------------------------------------------

    def _seal(self, batch: Batch) -> None:
        skipped = {tick.job_id for tick in batch.ended if tick.reason == SKIPPED.value}
        owed = {tick.job_id for tick in batch.ended if tick.owed}
        for job_id in list(batch.states):
            hold, job = self._held.by_id.get(job_id), self._jobs.find(job_id)
            if hold is not None and job is not None:
                state = batch.states[job_id]
                is_left_out = job.left_out_us is not None and not job.is_due_by_hand
                if is_left_out:  # no node should run it late
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

    def _plan(self, batch: Batch, job: Job, hold: Claim, *, skips: bool, is_owed: bool) -> None:
        due_us = batch.states[job.id].next_us
        if job.unfit is not None:
            del batch.states[job.id]  # its state stays for a node that can read it
            due_us = hold.planned[0] if hold.is_fetched and hold.planned else hold.due_us
            hold.gives_back = True
            self.claiming.without_task += 1
        is_to_begin = hold.due_us is not None and due_us is not None and due_us <= hold.due_us
        if is_to_begin and not self._is_over and job.unfit is None:
            return
        hold.gives_back |= is_to_begin
        waits_here = hold.starts_here and job.tally is None  # no tick of it has run or was missed yet
        waits_here = waits_here or self._is_pause_over(job, hold)
        leaves = (is_idle(job) and not waits_here) or (self._is_over and not job.runs)
        if leaves and not hold.gives_back and not job.is_paused:
            # an owed tick has come with the job, and rests, or came at the stop
            is_owed = is_owed or job.owed is not None
            due_us = due_elsewhere(batch.states[job.id], self._now_us() if is_owed else None)
        planned = (due_us, job.schedule_text or "")
        is_known = leaves or hold.due_us is not None  # else a node might take it that does not know we have it
        if is_known and not leaves and self._can_wait(job, hold, due_us):
            return
        if is_known and hold.planned != planned:  # the end of a run nearly always has the plan of its mark
            batch.planned[job.id] = Planned(job.id, *planned, self._now_us(), skips=skips)
            hold.planned = planned
        if leaves:
            self._core.queue.disarm(job)
            leave_to_others(job)
            self._release(batch, job.id)

    def _is_pause_over(self, job: Job, hold: Claim) -> bool:
        until = None if job.sparse is None or job.paused_by is None else job.paused_by.until
        return until is not None and us_of(until) <= max(self._now_us(), hold.due_us or 0)

    def _can_wait(self, job: Job, hold: Claim, due_us: int | None) -> bool:
        """Return whether the plan can wait until the job leaves: nearly all leave at once."""
        is_far = due_us is not None and due_us >= self._now_us() + NEAR_US
        if hold.is_fetched or is_far or (hold.is_long and due_us is None):
            return False
        self.long_claims.see(job.id, hold)
        return True

    def _release(self, batch: Batch, job_id: str) -> None:
        hold = self._held.leaving[job_id] = self._held.by_id.pop(job_id)
        batch.released[job_id] = hold.taken_us

    def _release_strays(self, batch: Batch) -> None:
        held = self._held
        for job_id in [id for id in held.strays if id not in held.by_id and id not in held.leaving]:
            hold = held.leaving[job_id] = held.strays.pop(job_id)
            batch.released[job_id] = hold.taken_us
            if hold.planned is not None:
                batch.planned[job_id] = Planned(job_id, *hold.planned, self._now_us())

    def look_at_removed(self) -> None:
        gone = [job_id for job_id in self._held.by_id if self._jobs.find(job_id) is None]
        for job_id in gone:
            self._held.strays[job_id] = self._held.by_id.pop(job_id)
        if gone:
            self._journal.flush(lambda _lost: None)

    def look_at_forgotten(self) -> None:
        """Release executions that are ours only by their rows, and put them again: others pass over them.

        A take's answer was lost, or a standby became the server without our release: test_nothing_stays_taken.py. The
        commits' line reads the rows, so they are no older than our knowledge.
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
            self._held.strays[row.job_id] = Claim(row.due_us, taken_us=row.due_us, planned=planned)
        if forgotten:
            logger.info("%d executions were ours by their rows alone, and are put again", len(forgotten))
            self._journal.flush(lambda _lost: None)

    def committed(self, batch: Batch, receipt: Receipt) -> None:
        self.publisher.arrived(batch.placed)
        self.long_claims.room.ended(len(batch.ended))
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
        """Release a lost batch's jobs again. The next audit plans them."""
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
            return False  # it stands in the queue already
        hold.placed_us = due_us
        return True

    def _where_of(self, job_id: str) -> str | None:
        hold = self._held.leaving.get(job_id)
        return self.routing.where_of(job_id) if hold is None or hold.where is None else hold.where

    def reconcile(self, job_ids: Sequence[str]) -> None:

        def answered(found: tuple[Mended, Wheres] | None, error: Exception | None) -> None:
            if found is None:
                logger.warning("the executions of %d jobs wait for the next audit: %s", len(job_ids), error)
            else:
                self.mended(*found)

        def reconcile() -> tuple[Mended, Wheres]:
            mended = self.executions.reconcile(job_ids, self._decide_edited)
            return mended, self.routing.asked(mended.planned)

        self._store_line.submit(reconcile, answered)

    def mended(self, mended: Mended, wheres: Wheres) -> None:
        self._put([self.routing.tick(execution, wheres) for execution in mended.planned])
        self._cancel(mended.gone)

    def decide(self, standing: Standing) -> Planned | None:
        """Plan a job without a node. Any thread."""
        if self._held.holds(standing.id):
            return None  # it is new, and here: its execution comes with its release
        return next_execution(standing, self._registry.updates, self._core.timeline, self._now_us())

    def _decide_edited(self, standing: Standing) -> Planned | None:
        """Ticks missed before the edit are not made up for."""
        now_us = self._now_us()
        state = standing.state
        if standing.live is None and state is not None and state.next_us is not None and state.next_us < now_us:
            anew = next_execution(standing._replace(state=None), self._registry.updates, self._core.timeline, now_us)
            return anew or self.decide(standing)
        return self.decide(standing)

    # -- the queue -----------------------------------------------------------------------------------------------------

    def _put(self, ticks: Iterable[Tick]) -> None:
        self.publisher.put([(tick, None) for tick in ticks])

    def _cancel(self, executions: Iterable[Execution]) -> None:
        self.publisher.cancel((Tick(each.job_id, each.due_us), _place(each)) for each in executions)

    # -- the end -------------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Take nothing more. The last commit releases the jobs here."""
        self._is_over = self.claiming.is_over = True
        for job_id in list(self._held.by_id):
            job = self._jobs.find(job_id)
            if job is not None:
                self._journal.touch(job)

    def close(self) -> None:
        self._queue_line.close(LAST_PUTS, self.queue.close)
        self.queue.close()

    def _now_us(self) -> int:
        return self._core.timeline.us(self._core.monotonic(), steady=False)


def _place(execution: Execution) -> Place | None:
    if execution.instance is None or execution.number is None:
        return None
    return Place(execution.instance, execution.number)
