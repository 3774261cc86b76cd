"""Between room and begin: a stored job's run is held until its mark is durable.

While the store is down, waiting runs step aside: other work uses their room. Runs of a task that goes without the store
begin without a mark. Such a run's record, with its own fence, is made at its end and waits for the store
(docs/decisions/0039).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from logging import getLogger
from typing import Final

from timerqueue import LifecycleError, TaskPool, TimerQueue, Work

from .._jobs import Job, JobAttempt
from .._journal import Journal, missed_tick
from .._plan import AT_ONCE, Timeline
from .._starts import HAS_RECORD, NOT_STORED, rename
from .._values import MissedReason
from ..stores import StoredTick
from .run import MarkedRun

logger = getLogger(__name__)

PATIENCE: Final = 0.5
"""Seconds for which a run that may go without the store waits for its mark."""

MOST_KEPT: Final = 50_000
"""Records that wait for the store. Beyond it, a job's further runs without a mark share one."""


class Marks:
    def __init__(self, pool: TaskPool, timeline: Timeline, journal: Journal, queue: TimerQueue) -> None:
        self._pool = pool
        self._journal = journal
        self._timeline = timeline
        self._queue = queue
        self._aside: set[JobAttempt] = set()
        self._held: list[JobAttempt] = []
        self._is_store_down = False
        self._is_store_slow = False
        self._goes_without: Callable[[str], bool] = _no_task_goes
        self._waits = False
        self._waiting: deque[tuple[float, JobAttempt]] = deque()
        """Runs that may go without the store, and how long they wait."""
        self._is_watching = False
        self.without: set[int] = set()
        """Fences of runs begun without a mark, whose records are not durable."""
        self._is_alone: Callable[[], bool] = _is_alone
        self._are_ours: Callable[[], bool] | None = None
        self._in_doubt: list[JobAttempt] = []
        """Marked runs whose jobs may be another node's."""
        self._stays: Callable[[Job], bool] = _none_stays
        self._staying: list[JobAttempt] = []

    def rely_on(self, are_ours: Callable[[], bool], is_alone: Callable[[], bool]) -> None:
        """Let runs begin only while `are_ours()`: their jobs are ours.

        Only while `is_alone()` may a run go without the store: no other node has its job.
        """
        self._are_ours = are_ours
        self._is_alone = is_alone

    def let_go_without(self, goes: Callable[[str], bool], *, waits: bool) -> None:
        """Let tasks begin without the store if `goes` accepts their names. `waits`: the store may fall silent."""
        self._goes_without, self._waits = goes, waits

    def store_is_anothers(self) -> None:
        """Let no run go without the store: another node has it."""
        self._goes_without = _no_task_goes

    def is_in_doubt(self, run: JobAttempt) -> bool:
        if self._are_ours is None or run.goes_without or self._are_ours():
            return False
        if self._begins_now(run):
            self._go_without(run)
            return False
        self._in_doubt.append(run)
        return True

    def settled(self) -> None:
        if self._in_doubt:
            runs, self._in_doubt = self._in_doubt, []
            self._pool.let_begin(runs)

    def let_stay(self, stays: Callable[[Job], bool]) -> None:
        """Mark no waiting run while `stays` says that its job will go to another node."""
        self._stays = stays
        back = [run for run in self._aside if not run.is_held and not stays(run.job)]
        self._aside.difference_update(back)
        self._submit(back)

    def mark(self, run: JobAttempt) -> bool:
        """Commit the mark of a run with room. False: the run begins without a mark."""
        if self._stays(run.job):
            if not self._staying:
                self._queue.push(AT_ONCE, self._hand_back_room)
            self._staying.append(run)
            return True
        if self._begins_now(run):
            self._mark_without(run)
            return False
        self._journal.mark(run)
        if self._is_store_down:
            if not self._held:
                self._queue.push(AT_ONCE, self._step_aside)
            self._held.append(run)
        elif self._waits and self._may_go(run):
            self._watch(run)
        return True

    def _watch(self, run: JobAttempt) -> None:
        self._waiting.append((self._queue.clock.monotonic() + PATIENCE, run))
        if not self._is_watching:
            self._look_at(self._waiting[0][0])

    def _look_at(self, when: float) -> None:
        self._is_watching = True
        with suppress(LifecycleError):  # the loop has ended, and no run begins any more
            self._queue.push(when, self._look)

    def _look(self) -> None:
        self._is_watching = False
        now, waiting = self._queue.clock.monotonic(), self._waiting
        while waiting and _waits_no_more(waiting[0][1]):
            waiting.popleft()
        if waiting and waiting[0][0] <= now:
            waiting.clear()
            self.store_is_slow(self._journal.marked())
        if waiting:
            self._look_at(max(waiting[0][0], now + PATIENCE / 2))

    def _begins_now(self, run: JobAttempt) -> bool:
        return (self._is_store_down or self._is_store_slow) and self._may_go(run)

    def _may_go(self, run: JobAttempt) -> bool:
        return run.job.task is not None and self._goes_without(run.job.task) and self._is_alone()

    def _mark_without(self, run: JobAttempt) -> None:
        """Begin without a mark. If its record has no room, it joins an earlier one."""
        last_missed, job = self._journal.pending.last_missed, run.job
        before = last_missed.get(job) if self._is_full else None
        self._journal.mark(run)
        self._go_without(run)
        if before is not None:
            last_missed[job] = before

    @property
    def _is_full(self) -> bool:
        return len(self._journal.pending.ended) >= MOST_KEPT

    def _go_without(self, run: JobAttempt) -> None:
        """Begin a run without its mark. If the mark was sent, the end finds it."""
        assert isinstance(run, MarkedRun)
        run.goes_without = True
        self._journal.pending.marks.pop(run, None)
        self.without.add(run.fence_number)

    def keep_end(self, run: JobAttempt, record: StoredTick) -> None:
        if run.goes_without and not run.is_sent and self._is_full:
            self.without.discard(run.fence_number)
            self._journal.missed(run.job, missed_tick(run.job.id, run.due_us, run.due_us, 1, NOT_STORED))
            return
        if run.goes_without and run.attempt > 1:
            record = _in_place_of_an_attempt(self._journal.pending.ended, record)
        self._journal.ended(run.job, record)

    def stored(self, ended: Collection[StoredTick], stale: Collection[StoredTick]) -> None:
        """Note that these ends are durable, except the stale ones."""
        if self.without:
            self.without.difference_update(tick.fence for tick in ended if tick not in stale)

    def leave_due(self, run: MarkedRun) -> bool:
        """Leave an unbegun run's tick to the next scheduler, at a stop. False: its mark may be durable."""
        if run.is_held and not self._journal.withdraw(run):
            return False
        job = run.job
        job.backlog = deque(sorted([*(job.backlog or ()), (run.due_us, run.attempt)]))
        self._journal.touch(job)
        return True

    def withdraw(self, work: Work) -> bool:
        if work in self._aside:
            self._aside.discard(work)
            return True
        return False

    def committed(self, runs: Iterable[JobAttempt]) -> None:
        runs = [run for run in runs if not run.goes_without]
        for run in runs:
            run.mark_is_durable()
        self._begin(runs)

    def _begin(self, runs: list[JobAttempt]) -> None:
        self._pool.let_begin(runs)
        back = [run for run in runs if run in self._aside]
        self._aside.difference_update(back)
        self._submit(back)

    def _submit(self, back: list[JobAttempt]) -> None:
        if not back:  # always so once the pool has stopped
            return
        for run in back:
            run.ask_as_job()
        self._pool.submit(*back)

    def refused(self, run: JobAttempt) -> None:
        """Drop a run whose tick has a record, or rename its tick.

        After the clock was set back the same instants return. Their run gets the first free microsecond after the due
        instant, as does the record of a run dropped meanwhile (Journal.unmark).
        """
        if run.is_over or run.goes_without:  # its end will be refused too, and is renamed then
            return
        has_been = self._timeline.us(run.due, steady=False) <= self._timeline.furthest_us
        if has_been and run.attempt == 1 and run.cause is None:
            rename(run.job, run.due_us, run.due_us + 1)
            run.due_us += 1
            run.job.counts().runs -= 1
            self._journal.mark(run)
            return
        logger.warning("job %r does not run its tick %d again: it has a record already", run.job.id, run.due_us)
        self._drop(run, HAS_RECORD)

    def lost(self, run: JobAttempt) -> None:
        """Drop a run whose mark the store can never take."""
        if not (run.is_over or run.goes_without):
            self._drop(run, NOT_STORED)

    def _drop(self, run: JobAttempt, reason: MissedReason) -> None:
        run.mark_is_refused(reason)

    def store_down(self, runs: Iterable[JobAttempt]) -> None:
        self._is_store_down = True
        self._held.extend(self._let_go(runs))
        self._step_aside()

    def store_is_slow(self, runs: Iterable[JobAttempt]) -> None:
        self._is_store_slow = True
        self._let_go(runs)

    def store_up(self) -> None:
        self._is_store_down = self._is_store_slow = False

    def _let_go(self, runs: Iterable[JobAttempt]) -> list[JobAttempt]:
        """Begin runs that may go without the store, also if in doubt. Returns the others."""
        runs = [run for run in runs if not run.goes_without]
        going = [run for run in (*runs, *self._in_doubt) if not run.is_over and self._may_go(run)]
        for run in going:
            self._go_without(run)
        self._in_doubt = [run for run in self._in_doubt if not run.goes_without]
        self._begin(going)
        return [run for run in runs if not run.goes_without]

    def _hand_back_room(self) -> None:
        staying, self._staying = self._staying, []
        self._hand_back(staying)
        self.let_stay(self._stays)  # it may be over already

    def _step_aside(self) -> None:
        held, self._held = self._held, []
        if self._is_store_down:
            self.step_aside(held)

    def step_aside(self, runs: Iterable[JobAttempt]) -> None:
        self._hand_back(self._let_go(runs))

    def _hand_back(self, runs: Iterable[JobAttempt]) -> None:
        self._aside.update(run for run in self._pool.step_aside(list(runs)) if isinstance(run, MarkedRun))


def _in_place_of_an_attempt(ended: list[StoredTick], record: StoredTick) -> StoredTick:
    tick = record.job_id, record.due_us
    place = next((place for place, each in enumerate(ended) if (each.job_id, each.due_us) == tick), None)
    return record if place is None else record._replace(fence=ended.pop(place).fence)


def _none_stays(_job: Job) -> bool:
    return False


def _waits_no_more(run: JobAttempt) -> bool:
    return run.is_marked or run.goes_without or run.is_over


def _no_task_goes(_name: str) -> bool:
    return False


def _is_alone() -> bool:
    return True
