"""What becomes of the rows of a store: jobs of this scheduler.

A row is adopted at the start, or when somebody else has written or changed it while the scheduler runs. Each stands for
itself: one that cannot be read, or names a task that is not registered, becomes a parked job with an error that says
why, and no other job notices. All of it happens on the loop.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime
from logging import getLogger
from typing import TYPE_CHECKING, Final

from schedule import Schedule, ScheduleError
from timerqueue import UnknownLimit

from ._conflict import duplicate
from ._errors import InvalidJob
from ._events import JobAdded, RunEnded
from ._first_start import FirstStart
from ._floors import Floor
from ._job import Job
from ._next_attempt import NextAttempt
from ._outcome import Outcome
from ._planner import Once
from ._policy import Delivery
from ._reading import Reading, Unreadable, check_interval, read, unreadable
from ._recovery import after_crash, after_downtime
from ._standing import row_of, tally_of
from ._stored import StoredState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timerqueue import Random

    from ._conflict import Early
    from ._ledger import Ledger
    from ._loop import Loop
    from ._registry import Registry
    from ._stored import StoredJob, StoredTick
    from ._tasks import Tasks

logger = getLogger(__name__)

DIED: Final = "the process died under it"


class Adoption:
    """Makes jobs of rows, and lets jobs follow their rows."""

    def __init__(
        self,
        registry: Registry,
        loop: Loop,
        ledger: Ledger,
        tasks: Tasks,
        random: Random,
        *,
        crash_floor: float,
    ) -> None:
        self._registry = registry
        self._loop = loop
        self._ledger = ledger
        self._tasks = tasks
        self._random = random
        self._floor_us = int(crash_floor * 1e6)

    def adopt(self, row: StoredJob, state: StoredState | None, crashes: Sequence[StoredTick] = ()) -> None:
        """Make a job of the row. `crashes`: ticks of it that were found RUNNING.

        Raises DuplicateJob if a job of that id was added before the store was read, with on_conflict="error".
        """
        early = None if self._registry.stored.early is None else self._registry.stored.early.get(row.id)
        if early is None and self._registry.find(row.id) is not None:
            logger.warning("the store has a job %r, and there is one that is not stored: the stored one waits", row.id)
            return
        if early is None:
            self._adopt(row, state, crashes)
            return
        self._resolve(early, row, state, crashes)

    def _resolve(self, early: Early, row: StoredJob, state: StoredState | None, crashes: Sequence[StoredTick]) -> None:
        """A job was added under the id of the row before that was read."""
        match early.on_conflict:
            case "error":
                if not early.is_late:
                    raise duplicate(row.id)
                logger.error("%s: the one in the store stays, the new one is dropped", duplicate(row.id))
                self._registry.drop(early.job)
                self._adopt(row, state, crashes)
            case "replace":
                for tick in crashes:
                    self._ledger.crashed(tick, self._now_us(), DIED)
            case "keep":
                self._take_early(early.job)
                self._adopt(row, state, crashes, early.job)
            case "update":
                self._take_early(early.job)
                wanted = row_of(early.job)._replace(paused=row.paused, paused_until_us=row.paused_until_us)
                if state is not None and wanted.schedule != row.schedule and not self._is_promised(state):
                    state = state._replace(next_us=early.first.due_us, next_by_hand=False, retry_at_us=None)
                self._adopt(wanted, state, crashes, early.job)
                if wanted != row:
                    self._registry.stored.remember(early.job)

    def change(self, id: str, row: StoredJob | None) -> None:
        """Somebody else has changed this row, or removed it."""
        job = self._registry.find(id)
        if job is not None and job.task is None:
            logger.warning("the store has a job %r now, and there is one that is not stored: the stored one waits", id)
        elif row is None:
            if job is not None:
                logger.info("job %r is gone from the store", id)
                self._registry.stored.unreadable.pop(id, None)
                self._registry.stored.without_task.pop(id, None)
                self._registry.drop(job)
        elif job is None:
            logger.info("job %r has come into the store", id)
            self._adopt(row, None)
            self._loop.listeners.tell(JobAdded(id))
        elif not self._is_known(job, row):
            logger.info("job %r has been changed in the store", id)
            self._follow(job, row)

    def revive(self, task: str) -> None:
        """The task has been registered: jobs that waited for it come alive."""
        for id, (row, state) in list(self._registry.stored.without_task.items()):
            job = self._registry.find(id)
            if row.task == task and job is not None:
                self._take_early(job)
                self._adopt(row, state, (), job)

    # -- one row -------------------------------------------------------------------------------------------------------

    def _adopt(
        self,
        row: StoredJob,
        state: StoredState | None,
        crashes: Sequence[StoredTick] = (),
        job: Job | None = None,
    ) -> None:
        reading, first = self._read(row, is_known=state is not None)
        if job is None:
            job = self._job_of(row, reading, first)
            self._registry.enter(job)
        else:
            self._set(job, reading, first)
        job.task = row.task
        if state is not None and job.tally is None:
            job.tally = tally_of(state)
        if state is not None and (state.last_start_us or 0) > self._now_us():
            self._loop.timeline.has_been(state.last_start_us)
        if crashes:
            state = self._crashed(job, state, crashes)
        if reading.error is not None:
            self._park(job, row, state, reading)
            return
        self._loop.enroll(job)
        self._loop.pausing.reconsider(job)
        self._pause_as(job, row)
        if state is None:
            self._ledger.touch(job)
            self._begin(job, first)
        else:
            self._go_on(job, state)

    def _read(
        self, row: StoredJob, start: datetime | None = None, *, is_known: bool = False
    ) -> tuple[Reading, FirstStart]:
        """What the row says, and when its job would start for the first time."""
        reading = read(row, self._tasks)
        try:
            self._loop.runs.check_needs(reading.policy.needs)
            first = self._first(row.id, reading.schedule, start, is_known=is_known)
            check_interval(row.id, first.planner.interval)
            return reading, first
        except (InvalidJob, ScheduleError, UnknownLimit, ValueError) as exc:
            reading = reading if isinstance(reading.schedule, Unreadable) else unreadable(row, exc)
            return reading, FirstStart(reading.schedule, Once(0), at_once=False, due_us=None)

    def _first(self, id: str, schedule: Schedule, start: datetime | None, *, is_known: bool) -> FirstStart:
        return self._registry.planned(schedule, id) if is_known else self._registry.plan(schedule, id, start)

    def _job_of(self, row: StoredJob, reading: Reading, first: FirstStart) -> Job:
        return Job(
            self._registry,
            row.id,
            reading.func,
            reading.args,
            reading.kwargs,
            reading.call,
            first.schedule,
            first.planner,
            reading.policy,
            self._registry.lateness.of(reading.policy.kind),
            reading.name,
            reading.tags,
        )

    def _set(self, job: Job, reading: Reading, first: FirstStart) -> None:
        job.func, job.args, job.kwargs, job.call = reading.func, reading.args, reading.kwargs, reading.call
        job.policy, job.tags, job.name = reading.policy, reading.tags, reading.name
        job.schedule, job.planner = first.schedule, first.planner
        job.lateness = self._registry.lateness.of(reading.policy.kind)

    def _park(self, job: Job, row: StoredJob, state: StoredState | None, reading: Reading) -> None:
        """It stays as it is in the store, visible and with its error, until somebody mends it."""
        assert reading.error is not None
        if isinstance(reading.schedule, Unreadable):
            self._registry.stored.unreadable[row.id] = row
        else:
            self._registry.stored.without_task[row.id] = (row, state)
        self._loop.pausing.park_because(job, reading.error)

    def _is_promised(self, state: StoredState) -> bool:
        """Whether somebody has set a start that is still to come: a new schedule begins after it."""
        return state.next_by_hand and state.next_us is not None and state.next_us > self._now_us()

    def _take_early(self, job: Job) -> None:
        """The job is here already, and is about to be told what it is."""
        if self._registry.stored.early is not None:
            self._registry.stored.early.pop(job.id, None)
        self._registry.stored.without_task.pop(job.id, None)
        self._registry.stored.unreadable.pop(job.id, None)
        if job.is_parked:
            job.is_parked = False
            job.settle_pause()
            self._loop.pausing.settle_state(job)

    def _pause_as(self, job: Job, row: StoredJob) -> None:
        if row.paused is not None:
            self._registry.stored.pause(job, row.paused, row.paused_until_us)

    # -- when it starts ------------------------------------------------------------------------------------------------

    def _begin(self, job: Job, first: FirstStart) -> None:
        """A row that somebody wrote by hand: it starts like a job that is added."""
        if first.at_once and not job.is_paused:
            self._loop.start_at_once(job)
        if first.due_us is not None and not job.is_paused:
            self._loop.plan(job, first.due_us)

    def _is_simple(self, job: Job, state: StoredState) -> bool:
        """Its next start is to come within an interval, and there is nothing else to be seen to."""
        interval = job.planner.interval
        if job.is_paused or state.next_by_hand or interval is None or state.next_us is None:
            return False
        if state.not_before_us is not None or state.retry_at_us is not None:
            return False
        return 0 < state.next_us - self._now_us() <= interval

    def _go_on(self, job: Job, state: StoredState) -> None:
        """Go on where the job stood. What has passed meanwhile is left to its policy, when it is due."""
        loop = self._loop
        if self._is_simple(job, state) and state.next_us is not None:  # what nearly all are, at a restart of 100,000
            loop.plan_first(job, state.next_us - (loop.timeline.shift_us if job.planner.steady else 0))
            return
        if state.not_before_us is not None and state.not_before_us > self._now_us():
            self._loop.floors.by_job[job] = Floor(state.not_before_us)
        if job.is_paused:
            if state.next_by_hand:
                shift = loop.timeline.shift_us if job.planner.steady else 0
                job.is_due_by_hand, job.dated_us = True, _minus(state.next_us, shift)
            return
        if state.retry_at_us is not None and state.retry_due_us is not None:
            floor = self._loop.floors.by_job.get(job)
            at_us = state.retry_at_us if floor is None else max(state.retry_at_us, floor.until_us)
            is_owed = job.policy.delivery is Delivery.AT_LEAST_ONCE
            job.retry = NextAttempt(loop.runs, job, state.retry_due_us, state.retry_attempt or 1, is_owed=is_owed)
            loop.queue.arm(job.retry, loop.timeline.monotonic(at_us, steady=False))
        shift = loop.timeline.shift_us if job.planner.steady else 0
        back = after_downtime(
            job.planner,
            job.id,
            job.policy,
            self._now_us() - shift,
            next_us=_minus(state.next_us, shift),
            is_by_hand=state.next_by_hand,
            not_before_us=_minus(state.not_before_us, shift),
            last_finish_us=_minus(state.last_finish_us, shift),
        )
        job.is_due_by_hand = state.next_by_hand and back.due_us is not None
        job.dated_us = back.due_us if job.is_due_by_hand else None
        if back.due_us is not None and back.due_us == _minus(state.next_us, shift) and job not in loop.floors.by_job:
            loop.plan_first(job, back.due_us)  # as it is stored: there is nothing to be written
        else:
            loop.plan(job, None if job.retry is not None and job.planner.waits_for_end else back.due_us)
        if back.skipped is not None and back.skipped.first_missed is not None and job in self._loop.floors.by_job:
            self._loop.floors.by_job[job].first_us = back.skipped.first_missed + shift
        if back.due_us is None:
            loop.retire_if_done(job)

    # -- crashes -------------------------------------------------------------------------------------------------------

    def _crashed(self, job: Job, state: StoredState | None, ticks: Sequence[StoredTick]) -> StoredState:
        """Its process died while these ran."""
        now_us = self._now_us()
        tally = job.counts()
        tally.crash(DIED)
        first, *others = sorted(ticks, key=lambda each: each.due_us)
        aftermath = after_crash(
            now_us,
            self._floor_us,
            tally.consecutive_crashes,
            job.policy.delivery,
            job.policy,
            attempt=first.attempt,
            interval=job.planner.interval,
            random=self._random(),
            not_before_us=None if state is None else state.not_before_us,
        )
        for each in ticks:
            self._ledger.crashed(each, now_us, DIED, job)
            self._tell(each, now_us)
        logger.warning("job %r: %s %d time(s) in a row", job.id, DIED, tally.consecutive_crashes)
        if aftermath.quarantine is not None:
            self._registry.pause(job, aftermath.quarantine)
        self._ledger.touch(job)
        state = (state or StoredState(job.id))._replace(not_before_us=aftermath.not_before_us)
        if aftermath.retry_at_us is None:
            return state._replace(retry_due_us=None, retry_attempt=None, retry_at_us=None)
        owed = [(each.due_us, each.attempt + 1) for each in (first, *others)]
        if state.retry_due_us is not None:
            owed.append((state.retry_due_us, state.retry_attempt or 1))
        (due_us, attempt), *later = sorted(set(owed))
        job.backlog = deque(later) if later else None
        return state._replace(retry_due_us=due_us, retry_attempt=attempt, retry_at_us=aftermath.retry_at_us)

    def _tell(self, tick: StoredTick, now_us: int) -> None:
        started = (tick.started_us or tick.due_us) * 1e-6
        self._loop.listeners.tell(
            RunEnded(
                tick.job_id,
                tick.due_us * 1e-6,
                started,
                now_us * 1e-6,
                tick.attempt,
                0.0,
                now_us * 1e-6 - started,
                Outcome.CRASHED,
                DIED,
            )
        )

    # -- rows that change ----------------------------------------------------------------------------------------------

    def _is_known(self, job: Job, row: StoredJob) -> bool:
        if job.id in self._registry.stored.unreadable:
            return self._registry.stored.unreadable[job.id] == row
        return row_of(job) == row

    def _follow(self, job: Job, row: StoredJob) -> None:
        """Let the job be as its row says. Its counts, its runs, and with the same schedule its next start stay."""
        was_parked = job.is_parked
        self._take_early(job)
        before = job.schedule
        reading, first = self._read(row, self._registry.dated_start(job))
        job.task = row.task
        if reading.error is not None:
            self._park(job, row, None, reading)
            return
        self._registry.fill(job, reading, None if first.schedule == before and not was_parked else first, stored=True)
        if row.paused is None:
            self._registry.stored.resume(job)
        elif row.paused is not None:
            self._pause_as(job, row)

    def _now_us(self) -> int:
        return self._loop.timeline.us(self._loop.monotonic(), steady=False)


def _minus(us: int | None, shift: int) -> int | None:
    return None if us is None else us - shift
