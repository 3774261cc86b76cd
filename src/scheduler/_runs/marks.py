"""Between room and begin: a run of a stored job is held until it is durable that it begins.

While the store does not work the runs that wait for it step aside: they hand back their room, so that those that need
no store, and the subtasks of what runs, go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from logging import getLogger

from timerqueue import TaskPool, Work

from .._jobs import Attempt, Job
from .._journal import Journal
from .._plan import Timeline
from .._starts import HAS_RECORD, NOT_STORED, rename
from .._values import MissedReason
from .run import MarkedRun

logger = getLogger(__name__)


class Marks:
    """The marks of one scheduler's runs. `soon`: calls a function in the next turn of the loop."""

    def __init__(self, pool: TaskPool, timeline: Timeline, journal: Journal, soon: Callable[..., object]) -> None:
        self._pool = pool
        self._journal = journal
        self._timeline = timeline
        self._soon = soon
        self._aside: set[Attempt] = set()
        self._held: list[Attempt] = []
        """Runs whose marks were asked for while the store did not work, for one turn."""
        self._is_store_down = False
        self._are_ours: Callable[[], bool] | None = None
        self._in_doubt: list[Attempt] = []
        """Runs that had room, and marks, when it was not known whether their jobs are still ours."""
        self._stays: Callable[[Job], bool] = _none_stays
        self._staying: list[Attempt] = []
        """Runs that have found room, and hand it back, for one turn."""

    def rely_on(self, are_ours: Callable[[], bool]) -> None:
        """Let runs begin only while that says that the jobs are ours."""
        self._are_ours = are_ours

    def is_in_doubt(self, run: Attempt) -> bool:
        """Whether the run's job may be another agent's by now. Then the run is kept until `settled`."""
        if self._are_ours is None or self._are_ours():
            return False
        self._in_doubt.append(run)
        return True

    def settled(self) -> None:
        """The jobs are still ours: what was kept may begin."""
        if self._in_doubt:
            runs, self._in_doubt = self._in_doubt, []
            self._pool.let_begin(runs)

    def let_stay(self, stays: Callable[[Job], bool]) -> None:
        """Mark no run that waits while that says so of its job, which is about to go to another agent."""
        self._stays = stays
        back = [run for run in self._aside if not run.is_held and not stays(run.job)]
        self._aside.difference_update(back)
        self._submit(back)

    def mark(self, run: Attempt) -> None:
        """Let the mark of a run that has room be committed."""
        if self._stays(run.job):
            if not self._staying:
                self._soon(self._hand_back_room)
            self._staying.append(run)
            return
        self._journal.mark(run)
        if self._is_store_down:
            if not self._held:
                self._soon(self._step_aside)
            self._held.append(run)

    def leave_due(self, run: MarkedRun) -> bool:
        """The scheduler stops before the run could begin: its tick stays due, and the next scheduler goes on with it.

        False: it is too late for that, because a mark of it may be durable.
        """
        if run.is_held and not self._journal.withdraw(run):
            return False
        job = run.job
        job.backlog = deque(sorted([*(job.backlog or ()), (run.due_us, run.attempt)]))
        self._journal.touch(job)
        return True

    def withdraw(self, work: Work) -> bool:
        """Whether it had stepped aside; if so it does not come back."""
        if work in self._aside:
            self._aside.discard(work)
            return True
        return False

    def committed(self, runs: Iterable[Attempt]) -> None:
        """These may begin; those that have stepped aside as soon as they have room again."""
        runs = list(runs)
        for run in runs:
            run.mark_is_durable()
        self._pool.let_begin(runs)
        back = [run for run in runs if run in self._aside]
        self._aside.difference_update(back)
        self._submit(back)

    def _submit(self, back: list[Attempt]) -> None:
        """Let runs that had stepped aside wait for room again."""
        if not back:  # always so once the pool has stopped
            return
        for run in back:
            run.ask_as_job()
        self._pool.submit(*back)

    def refused(self, run: Attempt) -> None:
        """Its tick has a record.

        If the clock was set back the same instants come once more, and whoever starts at them has a tick of its own:
        the first free microsecond after the due instant. (So does the record of one that was dropped meanwhile: see
        Journal.unmark.)
        """
        if run.is_over:
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

    def lost(self, run: Attempt) -> None:
        """The store cannot take its mark, now or ever."""
        if not run.is_over:
            self._drop(run, NOT_STORED)

    def _drop(self, run: Attempt, reason: MissedReason) -> None:
        run.mark_is_refused(reason)

    def store_down(self, runs: Iterable[Attempt]) -> None:
        """The store does not work: these wait for it."""
        self._is_store_down = True
        self._held.extend(runs)
        self._step_aside()

    def store_up(self) -> None:
        """The store works again: from now on runs wait for it in their places."""
        self._is_store_down = False

    def _hand_back_room(self) -> None:
        staying, self._staying = self._staying, []
        self.step_aside(staying)
        self.let_stay(self._stays)  # it may be over already

    def _step_aside(self) -> None:
        held, self._held = self._held, []
        if self._is_store_down:
            self.step_aside(held)

    def step_aside(self, runs: Iterable[Attempt]) -> None:
        """Let these hand back their room until their marks are durable, which may take long."""
        self._aside.update(run for run in self._pool.step_aside(list(runs)) if isinstance(run, MarkedRun))


def _none_stays(_job: Job) -> bool:
    return False
