"""Rows become jobs, and jobs follow their rows. On the loop.

If a row cannot be read, or its task is not registered, only its job suffers: it parks, and its error says why.
"""

from __future__ import annotations

from datetime import datetime
from logging import getLogger

from schedule import Schedule, ScheduleError, parse
from timerqueue import UnknownLimit

from .._control import EarlyJob, PartedRegistry, duplicate
from .._jobs import Job, Tasks, UnfitRow
from .._journal import Reading, check_interval, known_row, pause_of, read, row_of, state_of, tally_of, unreadable
from .._loop import Core
from .._plan import FirstStart, Once, instant_of
from .._values import DuplicateJob, InvalidJob, JobAdded, JobChanged, MalformedJob, error_text, loggable
from ..stores import StoredJob, StoredPause, StoredState
from .crashes import DIED, NOTHING_LOST, Crashes, Lost
from .elsewhere import come_to_us, leave_to_others
from .restart import Restart

logger = getLogger(__name__)


class Reconciler:
    def __init__(self, registry: PartedRegistry, core: Core, tasks: Tasks, crashes: Crashes) -> None:
        self._registry = registry
        self._jobs = core.jobs
        self._core = core
        self._journal = core.journal
        self._tasks = tasks
        self._crashes = crashes
        self._restart = Restart(core)
        self._without_task: dict[Job, None] = {}
        """Jobs that wait for their tasks, and some that no longer do."""

    def adopt(self, row: StoredJob, state: StoredState | None, lost: Lost = NOTHING_LOST) -> None:
        """Make a job of the row. `lost`: its cut-off ticks.

        Raises DuplicateJob if its id was added before the store was read, with on_conflict="error".
        """
        early = self._registry.early.find(row.id)
        if early is None and self._jobs.find(row.id) is not None:
            logger.warning("the store has a job %r, and an unstored job has its id: the stored job waits", row.id)
            return
        try:
            if early is None:
                self._adopt(row, state, lost)
            else:
                self._resolve(early, row, state, lost)
        except DuplicateJob:
            raise
        except Exception as exc:  # noqa: BLE001 - no error of one row may affect another job
            self._give_up(row, state, exc)

    def _resolve(self, early: EarlyJob, row: StoredJob, state: StoredState | None, lost: Lost) -> None:
        """The job was added before its row was read."""
        match early.on_conflict:
            case "error":
                if not early.is_late:
                    raise duplicate(row.id)
                logger.error("%s: the one in the store stays, the new one is dropped", duplicate(row.id))
                self._registry.drop(early.job)
                self._adopt(row, state, lost)
            case "replace":
                self._crashes.without_job(lost, DIED, "its job has been replaced")
            case "keep":
                self._take_early(early.job)
                self._adopt(row, state, lost)
            case "update":
                self._take_early(early.job)
                wanted = row_of(early.job)._replace(paused=row.paused, paused_until_us=row.paused_until_us)
                if state is not None and wanted.schedule != row.schedule and not self._has_start_by_hand(state):
                    state = state._replace(
                        next_us=early.first.due_us, next_by_hand=False, next_of=wanted.schedule, retry_at_us=None
                    )
                self._adopt(wanted, state, lost)
                if wanted != row:
                    self._journal.remember(early.job)

    def take_over(self, row: StoredJob, state: StoredState | None, lost: Lost) -> None:
        job = self._jobs.find(row.id)
        was_paused = None if job is None else job.paused_by
        if job is not None and job.is_elsewhere:
            self._take_early(job)
            come_to_us(job)
        try:
            self._adopt(row, state, lost)
        except Exception as exc:  # noqa: BLE001 - as in `adopt`
            self._give_up(row, state, exc)
        if job is not None and job.policy.agents is not None:  # its row may have changed since it was read here
            self._registry.whole_changed(job, was_paused)
        self._see_part(row.id)

    def is_ours(self, row: StoredJob) -> bool:
        return not self._jobs.is_others(row.id, read(row, self._tasks).definition.policy)

    def begin_anew(self, job: Job) -> Job:
        """The job's row was replaced."""
        row = known_row(job)
        self._registry.drop(job)
        self._without_task.pop(job, None)
        self.adopt(row, None)
        new = self._jobs.get(job.id)
        self._journal.touch(new)
        return new

    def change(self, id: str, row: StoredJob | None, state: StoredState | None = None) -> None:
        """`state` is for a job that is new here."""
        self._journal.note_row(id, state)
        job = self._jobs.find(id)
        was_paused = None if job is None else job.paused_by
        self._change(id, job, row, state)
        new = self._jobs.find(id)
        if new is not None and new.policy.agents is not None:
            self._registry.whole_changed(new, was_paused)
        elif new is None and job is not None and job.policy.agents is not None:
            self._registry.whole_or_part_gone(id)
        elif job is None:
            self._see_part(id)

    def has_followed(self, asked_at: float) -> None:
        """Jobs are as new as all rows then."""
        self._registry.has_followed(asked_at)

    def _see_part(self, id: str) -> None:
        job = self._jobs.find(id)
        if job is not None and job.policy.is_part:
            self._registry.see_part(job)

    def give_way(self, id: str, row: StoredJob) -> None:
        """Follow another node's row, which was first."""
        self.change(id, row)
        job = self._jobs.find(id)
        if job is not None and job.policy.agents is not None:
            self._registry.drop_surplus(job)

    def _change(self, id: str, job: Job | None, row: StoredJob | None, state: StoredState | None) -> None:
        if job is not None and job.task is None:
            logger.warning("the store has a job %r now, and an unstored job has its id: the stored job waits", id)
        elif row is None:
            if job is not None:
                logger.info("job %r is gone from the store", id)
                self._without_task.pop(job, None)
                self._registry.drop(job)
        elif job is None:
            logger.info("job %r has come into the store", id)
            self.adopt(row, state)
            self._core.listeners.tell(JobAdded(id))
        elif self._has_moved(job, row):
            logger.info("job %r is for other nodes now, as the store says", id)
            self._without_task.pop(job, None)
            self._registry.drop(job)
            self.adopt(row, state)
            self._core.listeners.tell(JobAdded(id))
        elif not self._is_known(job, row):
            logger.info("job %r has been changed in the store", id)
            state = state_of(job, self._core.timeline)
            try:
                self._follow(job, row)
            except Exception as exc:  # noqa: BLE001 - as in `adopt`
                self._give_up(row, state, exc)

    def pause_scope(self, scope: str, pause: StoredPause | None) -> None:
        """None: resume it."""
        if pause is None:
            self._core.pausing.resume_scope(scope, is_stored=True)
        else:
            self._core.pausing.hold(pause_of(pause), is_stored=True)

    def revive(self, task: str) -> None:
        for job in list(self._without_task):
            unfit = job.unfit
            if unfit is None or not unfit.is_readable or job.is_removed:  # it has been revived or removed already
                del self._without_task[job]
            elif unfit.row.task == task:
                self._come_alive(job, unfit.row)

    # -- one row -------------------------------------------------------------------------------------------------------

    def _adopt(self, row: StoredJob, state: StoredState | None, lost: Lost = NOTHING_LOST) -> None:
        reading, first = self._read(row, is_known=state is not None)
        job = self._enter(row, reading, first)
        if self._jobs.is_elsewhere(job):
            self._leave(job, row, reading)
            return
        if state is not None and job.tally is None:
            job.tally = tally_of(state)
        if state is not None and state.last_start_us is not None and state.last_start_us > self._now_us():
            self._core.timeline.has_been(state.last_start_us)
        state, quarantine = self._crashes.take(job, state, lost, is_readable=reading.is_readable)
        if reading.error is not None:
            self._park(job, row, state, reading)
        if quarantine is not None:  # once it is known whether the row can be written again
            self._registry.pause(job, quarantine)
        if reading.error is not None:
            return
        self._core.runs.enroll(job)
        if job.sparse is not None:  # else it owes nothing, no pause holds it, and it was never parked
            job.stood = None
            self._core.starts.look_at_owed(job)
        if job.sparse is not None or self._core.pausing.pauses.any:
            self._core.pausing.reconsider(job)
        self._pause_as(job, row)
        if state is None:
            self._journal.touch(job)
            self._restart.begin(job, first)
        else:
            self._restart.go_on(job, state)

    def _leave(self, job: Job, row: StoredJob, reading: Reading) -> None:
        if reading.error is not None:
            self._park(job, row, None, reading)
        self._core.runs.enroll(job)
        if self._core.pausing.pauses.any:
            self._core.pausing.reconsider(job)
        self._pause_as(job, row)
        leave_to_others(job)

    def _read(
        self, row: StoredJob, start: datetime | None = None, *, is_known: bool = False
    ) -> tuple[Reading, FirstStart]:
        reading = read(row, self._tasks)
        policy = reading.definition.policy
        try:
            self._core.runs.check_needs(policy.needs)
            self._jobs.check_placement(policy, is_stored=True)
            first = self._first(policy.key_of(row.id), reading.schedule, start, is_known=is_known)
            check_interval(row.id, first.planner.interval)
            return reading, first
        except (InvalidJob, ScheduleError, UnknownLimit, ValueError, ArithmeticError, RecursionError) as exc:
            reading = unreadable(row, exc) if reading.is_readable else reading
            return reading, FirstStart(reading.schedule, Once(0), at_once=False, due_us=None)

    def _first(self, key: str, schedule: Schedule, start: datetime | None, *, is_known: bool) -> FirstStart:
        updates = self._registry.updates
        return updates.first_start_known(schedule, key) if is_known else updates.first_start(schedule, key, start)

    def _enter(self, row: StoredJob, reading: Reading, first: FirstStart) -> Job:
        job = self._jobs.find(row.id)
        if job is None:
            job = self._job_of(row, reading, first)
            self._jobs.enter(job)
        else:
            self._set(job, reading, first)
        job.task, job.schedule_text = row.task, row.schedule
        return job

    def _job_of(self, row: StoredJob, reading: Reading, first: FirstStart) -> Job:
        definition = reading.definition
        return Job(
            self._registry,
            row.id,
            definition.func,
            definition.args,
            definition.kwargs,
            definition.call,
            first.schedule,
            first.planner,
            definition.policy,
            self._registry.lateness.of(definition.policy.kind),
            definition.name,
            definition.tags,
        )

    def _set(self, job: Job, reading: Reading, first: FirstStart) -> None:
        job.become(reading.definition, self._registry.lateness.of(reading.definition.policy.kind))
        job.schedule, job.planner = first.schedule, first.planner

    def _come_alive(self, job: Job, row: StoredJob) -> None:
        """The job's row is mended."""
        stood = job.stood
        self._take_early(job)
        self._adopt(row, stood)

    def _park(self, job: Job, row: StoredJob, state: StoredState | None, reading: Reading) -> None:
        """Keep the job, with its error, until its row is mended. Then it goes on at `state`."""
        assert reading.error is not None
        job.stood = state
        job.unfit = UnfitRow(row, reading.is_readable)
        if reading.is_readable:
            self._without_task[job] = None
        self._core.starts.parking.park_because(job, reading.error)

    def _give_up(self, row: StoredJob, state: StoredState | None, error: Exception) -> None:
        reason = MalformedJob(f"stored job {row.id!r} cannot be carried out: {error_text(error)}")
        reading = unreadable(row, reason)
        first = FirstStart(reading.schedule, Once(0), at_once=False, due_us=None)
        self._park(self._enter(row, reading, first), row, state, reading)
        logger.error("job %r is parked", row.id, exc_info=loggable(error))

    def _has_start_by_hand(self, state: StoredState) -> bool:
        """A new schedule begins after such a start."""
        return state.next_by_hand and state.next_us is not None and state.next_us > self._now_us()

    def _take_early(self, job: Job) -> None:
        self._registry.early.discard(job)
        self._without_task.pop(job, None)
        job.unfit = None
        if job.is_parked:
            job.is_parked = False
            job.settle_pause()
            job.settle_state()

    def _pause_as(self, job: Job, row: StoredJob) -> None:
        if row.paused is not None:
            until = None if row.paused_until_us is None else instant_of(row.paused_until_us)
            self._core.pausing.pause(job, row.paused, until, is_stored=True)

    # -- rows that change ----------------------------------------------------------------------------------------------

    def _has_moved(self, job: Job, row: StoredJob) -> bool:
        """Whether another place or other labels changed its shard."""
        if not self._jobs.ownership.is_shared:
            return False
        reading, was = read(row, self._tasks), job.policy
        policy = reading.definition.policy
        is_at = (was.place, was.where, was.agents is None)
        return reading.is_readable and (policy.place, policy.where, policy.agents is None) != is_at

    def _is_known(self, job: Job, row: StoredJob) -> bool:
        if job.unfit is not None and not job.unfit.is_readable:
            return job.unfit.row == row
        return row_of(job) == row

    def _follow(self, job: Job, row: StoredJob) -> None:
        """Counts and runs stay; with the same schedule, so does the next start."""
        if job.stood is not None:
            self._come_alive(job, row)
            self._core.listeners.tell(JobChanged(job.id, job.state, "updated"))
            return
        was_parked = job.is_parked
        self._take_early(job)
        before = job.schedule
        is_known = not was_parked and self._has_schedule(job, row)
        reading, first = self._read(row, self._registry.updates.dated_start(job), is_known=is_known)
        if reading.error is not None:
            job.task = row.task
            self._park(job, row, state_of(job, self._core.timeline), reading)
            return
        job.task, job.schedule_text = row.task, row.schedule
        self._journal.touch(job)
        has_new_schedule = was_parked or first.schedule != before
        self._registry.updates.fill(job, reading.definition, first if has_new_schedule else None, stored=True)
        if row.paused is not None:
            self._pause_as(job, row)
        elif job.paused_by is not None:
            self._core.pausing.resume(job, is_stored=True)

    def _has_schedule(self, job: Job, row: StoredJob) -> bool:
        """Perhaps in other words. A one-shot may have passed."""
        if row.schedule == job.schedule_text:
            return True
        try:
            return self._registry.updates.first_start_known(parse(row.schedule), job.key).schedule == job.schedule
        except ScheduleError:
            return False

    def _now_us(self) -> int:
        return self._core.timeline.us(self._core.monotonic(), steady=False)
