"""Each delivery of the queue is checked against its row, and taken with its job if that allows it.

While our lease is not held, deliveries go back at once. If this node took one nevertheless, its row says so until we
are buried. On the loop; the commits' line asks the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from logging import getLogger
from typing import Final, assert_never

from ..._commits import Writer
from ..._jobs import Job
from ..._restore import Lost, RowParts, let_go_of
from ...queues import Delivery, Kind
from ...stores import Executions, NotTaken, StoredJob, StoredState, Taken, where_of
from .claims import Claim, Claims, GivenBack, is_being_removed
from .next_execution import after_pause
from .publisher import Publisher
from .routing import Routing

logger = getLogger(__name__)

AT_ONCE: Final = 1_000

RETRY_S: Final = 1
"""Seconds before an execution that this node could not take comes out again."""

LONGEST_WAIT: Final = 10
"""The most seconds if its job runs: that run's node plans the next, unless it dies."""

UNREADABLE_DELAY_S: Final = 60
"""Seconds if its job cannot be read here: a version or a limit is missing."""


class Claiming:
    def __init__(
        self,
        executions: Executions,
        held: Claims,
        publisher: Publisher,
        rows: RowParts,
        *,
        on_taking: Callable[[], object],
        routing: Routing,
        store_line: Writer,
    ) -> None:
        self.dropped = dict.fromkeys(NotTaken, 0)
        self.taken = self.without_task = self.duplicates = 0
        self.is_over = False
        self._executions = executions
        self._held = held
        self._publisher = publisher
        self._routing = routing
        self._core = rows.core
        self._on_taking = on_taking
        self._store_line = store_line
        self._reconciler = rows.reconciler
        self._row_reader = rows.row_reader
        self._wanted: list[Delivery] = []
        self._asked: list[Delivery] = []
        self._is_taking = False
        self._rests = False

    def on_lease(self, is_held: bool) -> None:  # noqa: FBT001 - the lease gives it
        if is_held != self._rests:
            return
        self._rests = not is_held
        if is_held:
            logger.info("what comes out of the queue is taken again")
            return
        back = [*self._wanted, *self._asked]
        self._wanted, self._asked[:] = [], map(GivenBack, self._asked)
        for delivery in back:
            delivery.release(RETRY_S)
        count = len(back) + self._held.give_back(RETRY_S)
        logger.warning("%d executions that have come out go to others: our lease is not held", count)

    def deliver(self, deliveries: list[Delivery]) -> None:
        """Any thread. After the loop's end the queue's end gives them back."""
        self._core.loop.call_soon(self._come_out, deliveries)

    def _come_out(self, deliveries: list[Delivery]) -> None:
        self._wanted += _those(deliveries, self._is_for_us)
        if not self._is_taking:
            self._take()

    def _take(self) -> None:
        self._wanted = _those(self._wanted, self._is_nobodys)
        wanted, self._wanted = self._wanted[:AT_ONCE], self._wanted[AT_ONCE:]
        self._is_taking, self._asked = bool(wanted), wanted
        if wanted:
            self._on_taking()
            ticks = [(delivery.tick.job_id, delivery.tick.due_us) for delivery in wanted]
            self._publisher.here.difference_update(ticks)
            self._store_line.submit(
                lambda: self._executions.take(ticks), lambda answer, error: self._answered(wanted, answer, error)
            )

    def _is_for_us(self, delivery: Delivery) -> bool:
        if delivery.tick.kind is not Kind.RUN:
            delivery.done()
            return False
        job = self._core.jobs.find(delivery.tick.job_id)
        if job is not None and job.unfit is not None and not self.is_over:
            self.without_task += 1
            delivery.release(RETRY_S if job.unfit.is_readable else UNREADABLE_DELAY_S)
            return False
        if self.is_over:
            delivery.release()
            return False
        if self._rests or not self._core.clock_guard.is_given or self._core.runs.is_stopping:
            delivery.release(RETRY_S)
            return False
        if not self._routing.is_for_us(delivery.tick.job_id):
            self._routing.send_on(delivery)
            return False
        return True

    def _is_nobodys(self, delivery: Delivery) -> bool:
        """Return whether no execution of the job is here or leaving.

        The store would show our own run as cut off: test_what_comes_out_again_while_it_is_at_work_is_no_crash.
        """
        job_id, due_us = delivery.tick.job_id, delivery.tick.due_us
        hold = self._held.by_id.get(job_id)
        leaving = self._held.leaving.get(job_id) or self._held.strays.get(job_id)
        if hold is not None and hold.due_us == due_us:
            self._again(hold, delivery)
        elif leaving is not None and leaving.due_us == due_us:
            self.duplicates += 1
            delivery.release(RETRY_S)
        elif hold is not None and hold.due_us is not None:
            self._drop(delivery, NotTaken.RUNNING)
        else:
            return True
        return False

    def _answered(
        self, deliveries: Sequence[Delivery], answers: Sequence[Taken | NotTaken] | None, error: Exception | None
    ) -> None:
        if answers is None:
            logger.warning("%d executions that have come out go back: %s", len(deliveries), error)
            for delivery in deliveries:
                delivery.release(RETRY_S)
            self._take()
            return
        try:
            for delivery, answer in zip(deliveries, answers, strict=True):
                self._heed(delivery, answer)
        finally:
            self._take()

    def _heed(self, delivery: Delivery, answer: Taken | NotTaken) -> None:
        """If this raises, the next answer is still heeded."""
        try:
            match answer:
                case Taken():
                    self._take_up(delivery, answer)
                case NotTaken():
                    self._drop(delivery, answer)
                case _:
                    assert_never(answer)
        except Exception:
            logger.exception("the execution %r could not be taken up, and goes back", delivery.tick)
            self._back_out(delivery, answer)

    def _back_out(self, delivery: Delivery, answer: Taken | NotTaken) -> None:
        job_id, rests = delivery.tick.job_id, self._lateness(delivery, UNREADABLE_DELAY_S)
        hold, job = self._held.by_id.get(job_id), self._core.jobs.find(job_id)
        if hold is not None and hold.delivery is delivery:
            del self._held.by_id[job_id]
            if job is not None:
                let_go_of(job, self._core.queue)
        if isinstance(answer, Taken) and job_id not in self._held.by_id:
            self._let_go(delivery, answer.job, rests=rests)
        else:
            delivery.release(rests)

    def _drop(self, delivery: Delivery, why: NotTaken) -> None:
        """If another run of its job goes on, it comes out again after as long as it is late."""
        self.dropped[why] += 1
        logger.debug("the execution %r is not run: %s", delivery.tick, why.value)
        if why is NotTaken.RUNNING:
            delivery.release(self._lateness(delivery, LONGEST_WAIT))
        elif why is NotTaken.LOCKED:
            delivery.release(RETRY_S)
        else:
            delivery.done()

    def _lateness(self, delivery: Delivery, most: int) -> int:
        """In seconds: each wait is as long as all before it."""
        now_us = self._core.timeline.us(self._core.monotonic(), steady=False)
        return min(max(RETRY_S, (now_us - delivery.tick.due_us) // 1_000_000), most)

    def _take_up(self, delivery: Delivery, taken: Taken) -> None:
        job_id, due_us = delivery.tick.job_id, delivery.tick.due_us
        hold = self._held.by_id.get(job_id)
        if hold is not None and hold.due_us is None:  # it is new here, and an audit has put it meanwhile
            hold.due_us, hold.taken_us, hold.delivery = due_us, due_us, delivery
            return
        if hold is not None:
            self._again(hold, delivery)
            return
        row, is_gone = self._row_reader.job(taken.job), is_being_removed(self._core.journal, job_id)
        if row is None or is_gone:
            self._let_go(delivery, None if is_gone else taken.job)
            return
        if not self._held.fits(where := where_of(row.options)):  # the job was not known here, or had other labels
            self._routing.sent_on += 1
            self._let_go(delivery, row, where)
            return
        self.taken += 1
        hold = self._held.by_id[job_id] = Claim(due_us, delivery, due_us)
        lost = Lost(list(self._row_reader.ticks(taken.running)), list(self._row_reader.ticks(taken.owed)))
        state, left_out_us = after_pause(row, self._row_reader.state(taken.state), due_us)
        state = _standing_at(due_us, row, state)
        self._reconciler.take_over(row, state, lost)
        job = self._core.jobs.find(job_id)
        if job is None:
            return
        if left_out_us is not None:
            self._core.starts.left_out.go_on(job, left_out_us)
        if self._is_to_begin(job, due_us):
            return
        if _is_its_start(due_us, row, state) and not job.is_paused and job.floor is None and job.unfit is None:
            hold.due_us = self._core.starts.keep(job, due_us)  # another clock, version or schedule has planned it
        else:
            self._core.journal.touch(job)  # so that the next commit releases it

    def _let_go(
        self, delivery: Delivery, row: StoredJob | None, where: str | None = None, *, rests: int = UNREADABLE_DELAY_S
    ) -> None:
        """Release a stray execution, to come out in `rests` seconds.

        `row` None: the job was removed here. `where`: put it again for nodes with these labels.
        """
        job_id, due_us = delivery.tick.job_id, delivery.tick.due_us
        if job_id in self._held.strays:
            delivery.release(RETRY_S)
            return
        stray = self._held.strays[job_id] = Claim(due_us, delivery, due_us, where=where)
        if row is not None and where is not None:
            stray.planned = (due_us, row.schedule)
        elif row is not None:
            stray.planned, stray.gives_back, stray.rests = (due_us, row.schedule), True, rests
            self.without_task += 1
        self._core.journal.flush(lambda _lost: None)

    def _again(self, hold: Claim, delivery: Delivery) -> None:
        """Note a second delivery: the queue had it twice, or did not hear from us."""
        self.duplicates += 1
        if hold.delivery is None or hold.delivery.place == delivery.place:
            hold.delivery = delivery
        else:
            delivery.done()

    def _is_to_begin(self, job: Job, due_us: int) -> bool:
        if job.due_us is None or job.is_paused:
            return not is_idle(job)
        steady = job.planner.steady
        return self._core.timeline.reported(job.due_us, steady=steady) <= due_us or not is_idle(job)


def _those(deliveries: Iterable[Delivery], wanted: Callable[[Delivery], bool]) -> list[Delivery]:
    """A delivery whose check raises goes back."""
    found = []
    for delivery in deliveries:
        try:
            if wanted(delivery):
                found.append(delivery)
        except Exception:
            logger.exception("the execution %r could not be looked at, and goes back", delivery.tick)
            delivery.release(RETRY_S)
    return found


def _standing_at(due_us: int, row: StoredJob, state: StoredState | None) -> StoredState | None:
    if state is None or state.next_us is None or row.paused is not None:
        return state
    is_edited = state.next_of not in {None, row.schedule} and state.retry_at_us is None and not state.next_by_hand
    if state.next_us < due_us or is_edited:  # earlier ticks were paused, skipped or replaced
        return state._replace(next_us=due_us, next_of=row.schedule)
    return state


def _is_its_start(due_us: int, row: StoredJob, state: StoredState | None) -> bool:
    if row.paused is not None or state is None:
        return row.paused is None
    return state.not_before_us is None and (state.next_us is None or state.next_us <= due_us)


def is_idle(job: Job) -> bool:
    """Return whether nothing of the job runs, waits, or will be tried again."""
    is_at_work = job.runs or job.backlog or job.threads or job.asked
    return not is_at_work and job.again is None and job.owed is None
