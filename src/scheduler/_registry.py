"""Which jobs there are, and what their handles do.

Any thread: the list changes at once, under a lock; effects happen on the loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from datetime import datetime
from logging import getLogger
from threading import RLock
from typing import Any, Final, Literal

from schedule import Schedule
from timerqueue import Lifecycle, LifecycleError, LifecycleState

from ._errors import AlreadyStopped, DuplicateJob, InvalidJob, JobNotFound
from ._events import Event, JobAdded, JobChanged, JobRemoved
from ._first_start import FirstStart, Start, first_start
from ._job import Job
from ._listeners import Listeners
from ._loop import AT_ONCE, Loop
from ._options import count_of, id_of, schedule_of
from ._planner import Planner
from ._policy import Policy
from ._statistics import Histogram
from ._timeline import instant_of
from ._update import settled, update_of

logger = getLogger(__name__)

OnConflict = Literal["error", "replace", "keep"]

_CONFLICTS: Final = ("error", "replace", "keep")

SHARED_PLANNERS: Final = 1_000
"""Distinct intervals whose planners are kept to be shared."""


class Registry:
    """The jobs of one scheduler, by id."""

    def __init__(self, loop: Loop, lifecycle: Lifecycle, listeners: Listeners) -> None:
        self._loop = loop
        self._queue = loop.queue
        self._lifecycle = lifecycle
        self._listeners = listeners
        self._lock = RLock()
        self._jobs: dict[str, Job] = {}
        self._numbers = itertools.count(1)
        self._planners: dict[Schedule, Planner] = {}
        self._lateness: dict[str, Histogram] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def get(self, id: str) -> Job:
        try:
            return self._jobs[id]
        except KeyError:
            msg = f"there is no job {id!r}: it was never added, was removed, or its schedule has ended"
            raise JobNotFound(msg) from None

    def jobs(self) -> list[Job]:
        with self._lock:
            return list(self._jobs.values())

    def lateness(self) -> Mapping[str, Histogram]:
        """By type: the first of a job's needs."""
        return dict(self._lateness)

    def add(
        self,
        id: str | None,
        schedule: Schedule | str,
        start: Start,
        policy: Policy,
        *,
        on_conflict: OnConflict,
        make: Callable[[str, FirstStart, Histogram], Job],
    ) -> Job:
        """Put the job in that `make` returns, and let it start.

        Raises as Scheduler.add does; then nothing has changed.
        """
        _check_conflict(on_conflict)
        if id is not None:
            id_of(id)
        if policy.needs:
            self._loop.runs.check_needs(policy.needs)
        planned = schedule_of(schedule)
        with self._lock:
            if self._lifecycle.state is LifecycleState.STOPPED:
                self.refuse_if_stopped()
            if id is None:
                id = self._free_id()
            present = self._jobs.get(id)
            if present is not None and on_conflict == "keep":
                return present
            if present is not None and on_conflict != "replace":
                msg = f'there is a job {id!r} already: choose another id, or on_conflict="replace" or "keep"'
                raise DuplicateJob(msg)
            first = self._first_start(planned, id, start)
            job = make(id, first, self._histogram(policy.kind))
            job.dated_us = first.due_us if first.is_dated else None
            if present is not None:
                self.remove(present)
            self._jobs[id] = job
            self._begin(job, first)
        if self._listeners.anybody:
            self.tell(JobAdded(id))
        return job

    def refuse_if_stopped(self) -> None:
        if self._lifecycle.state is LifecycleState.STOPPED:
            msg = "this scheduler has stopped, and one runs once: make a new one"
            raise AlreadyStopped(msg)

    def refuse_if_removed(self, job: Job) -> None:
        if job.is_removed:
            msg = f"job {job.id!r} has been removed, or its schedule has ended"
            raise JobNotFound(msg)

    def forget(self, job: Job) -> None:
        """The job's schedule has ended."""
        with self._lock:
            job.is_removed = True
            if self._jobs.get(job.id) is job:
                del self._jobs[job.id]

    def tell(self, event: Event) -> None:
        """Tell the listeners, on the loop."""
        self._loop.call(self._listeners.tell, event)

    # -- what handles ask for ------------------------------------------------------------------------------------------

    def tick(self, job: Job) -> None:
        self._loop.tick(job)

    def remove(self, job: Job) -> None:
        if job.is_removed:
            return
        self.forget(job)
        self._queue.disarm(job)
        self._loop.call(self._loop.dismiss, job)
        if self._listeners.anybody:
            self.tell(JobRemoved(job.id))

    def pause(self, job: Job, reason: str | None) -> None:
        self._loop.call(self._loop.disable, job, reason or "paused")

    def resume(self, job: Job) -> None:
        self._loop.call(self._loop.enable, job)

    def run_now(self, job: Job) -> None:
        self.refuse_if_stopped()
        self.refuse_if_removed(job)
        self._loop.call(self._loop.runs.start_now, job)

    def update(self, job: Job, schedule: Schedule | str | None, changes: Mapping[str, Any]) -> None:
        changes = {name: settled(value) for name, value in changes.items()}
        update = update_of(job, changes)
        self._loop.runs.check_needs(update.policy.needs)
        if schedule is None and update.start is not None:
            msg = "start can only be updated together with a schedule"
            raise InvalidJob(msg)
        with self._lock:
            first = None if schedule is None else self._first_start(schedule_of(schedule), job.id, update.start)
        self._loop.call(self._apply, job, changes, first)

    def next_start(self, job: Job) -> datetime | None:
        timeline = self._loop.timeline
        starts = [] if job.due_us is None else [timeline.reported(job.due_us, steady=job.planner.steady)]
        retry = job.retry
        if retry is not None:
            starts.append(timeline.us(retry.due, steady=False))
        return _instant(min(starts)) if starts else None

    def next_starts(self, job: Job, count: int) -> list[datetime]:
        if count != 0:
            count_of("count", count)
        starts: list[datetime] = []
        due = job.due_us
        while due is not None and len(starts) < count:
            instant = _instant(self._loop.timeline.reported(due, steady=job.planner.steady))
            if instant is None:
                break
            starts.append(instant)
            due = job.planner.following(due)
        return starts

    def _free_id(self) -> str:
        while (id_ := f"job-{next(self._numbers)}") in self._jobs:
            pass
        return id_

    def _first_start(self, schedule: Schedule, key: str, start: Start) -> FirstStart:
        if len(self._planners) > SHARED_PLANNERS:
            self._planners.clear()
        loop = self._loop
        now = loop.timeline.us(loop.monotonic(), steady=True)
        return first_start(schedule, key, start, now=now, shift=loop.timeline.shift_us, shared=self._planners)

    def _histogram(self, kind: str) -> Histogram:
        histogram = self._lateness.get(kind)
        if histogram is None:
            histogram = self._lateness[kind] = Histogram()
        return histogram

    def _begin(self, job: Job, first: FirstStart) -> None:
        self._loop.enroll(job)
        try:
            if first.at_once:
                self._queue.push(AT_ONCE, self._loop.start_at_once, job)
            if first.due_us is not None:
                self._loop.plan_first(job, first.due_us)
        except LifecycleError:  # it has stopped at this very moment
            self.forget(job)
            self.refuse_if_stopped()
            raise

    def _apply(self, job: Job, changes: Mapping[str, Any], first: FirstStart | None) -> None:
        """Change a job as it is by now, on the loop, by changes that have been checked."""
        if job.is_removed:
            return
        update = update_of(job, changes)
        job.func, job.args, job.kwargs, job.call = update.func, update.args, update.kwargs, update.call
        job.policy, job.tags, job.name = update.policy, update.tags, update.name
        with self._lock:
            job.lateness = self._histogram(update.policy.kind)
        if first is not None:
            job.schedule, job.planner = first.schedule, first.planner
            self._queue.disarm(job)
            job.due_us = None
            self._loop.replan(job, first)
        self._loop.enroll(job)
        self._listeners.tell(JobChanged(job.id, job.state, "updated"))


def _check_conflict(on_conflict: str) -> None:
    if on_conflict not in _CONFLICTS:
        msg = f'on_conflict must be "error", "replace" or "keep", not {on_conflict!r}'
        raise InvalidJob(msg)


def _instant(us: int) -> datetime | None:
    """The instant, or None for one after the end of the calendar."""
    try:
        return instant_of(us)
    except OverflowError:
        return None
