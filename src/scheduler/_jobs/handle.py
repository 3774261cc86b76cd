"""The interface of a job: what users hold, documented here and implemented by `_jobs.job`.

What the scheduler itself needs of a job is not part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from schedule import Missed, Schedule

from .._plan import Start
from .._values import Delivery, JobState, JobStatistics, Overlap, Policy, Retry
from .asked import AskedRun

SomeSchedule = Schedule | str | timedelta | float
"""A schedule, the text of one, or the interval of an Every: a timedelta, or seconds."""


class JobChanges(TypedDict, total=False):
    """The changes that `Job.update` takes besides a schedule: options of `Scheduler.add`, under the same names."""

    func: Callable[..., Any] | str
    args: Iterable[Any]
    kwargs: Mapping[str, Any] | None
    needs: str | Iterable[str] | Mapping[str, int]
    priority: float
    timeout: timedelta | float | str | None
    retry: Retry | None
    overlap: Overlap | str
    max_running: int | None
    missed: Missed | str
    grace: timedelta | float | str
    catch_up: int
    delivery: Delivery | str
    start: Start
    inline: bool
    tags: Iterable[str]
    name: str | None


class Job:
    """A job is the handle that `Scheduler.add` returns. You may call its verbs from any thread and any task."""

    __slots__ = ()

    @property
    def id(self) -> str:
        """The name under which the scheduler knows the job."""
        raise NotImplementedError

    @property
    def name(self) -> str | None:
        """The job's name for people, if it has one."""
        raise NotImplementedError

    @property
    def tags(self) -> frozenset[str]:
        """The tags by which the job can be paused with others."""
        raise NotImplementedError

    @property
    def schedule(self) -> Schedule:
        """The schedule by which the job starts by itself."""
        raise NotImplementedError

    @property
    def func(self) -> Callable[..., Any]:
        """The callable that the job calls, with `args` and `kwargs`."""
        raise NotImplementedError

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments of each call."""
        raise NotImplementedError

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """The keyword arguments of each call."""
        raise NotImplementedError

    policy: Policy
    """The job's options in checked form. The properties below read them."""

    @property
    def needs(self) -> Mapping[str, int]:
        """The limits that a run needs, with the units of each."""
        return dict(self.policy.needs)

    @property
    def priority(self) -> float:
        """The job's priority among jobs that wait for room: the higher one goes first."""
        return self.policy.priority

    @property
    def timeout(self) -> timedelta | None:
        """How long a run may take. None: as long as it likes."""
        return None if self.policy.timeout is None else timedelta(seconds=self.policy.timeout)

    @property
    def retry(self) -> Retry | None:
        """The rule by which a failed tick is tried again. None: it is not."""
        return self.policy.retry

    @property
    def overlap(self) -> Overlap:
        """The rule for a tick that comes while an earlier run has not ended."""
        return self.policy.overlap

    @property
    def missed(self) -> Missed:
        """The rule for ticks that could not run in time."""
        return self.policy.missed

    @property
    def delivery(self) -> Delivery:
        """The rule for a tick whose process died during its run."""
        return self.policy.delivery

    @property
    def state(self) -> JobState:
        """The job's state at this moment. If another node has the job: SCHEDULED or DISABLED, as its row says."""
        raise NotImplementedError

    @property
    def agent(self) -> str | None:
        """The name of the node that has the job. None: the store is not shared."""
        raise NotImplementedError

    @property
    def is_ours(self) -> bool:
        """Whether this scheduler has the job. False: another node that shares the store has it, or no node yet."""
        raise NotImplementedError

    @property
    def error(self) -> str | None:
        """Why the job does not start by itself. None: it does."""
        raise NotImplementedError

    @property
    def next_start(self) -> datetime | None:
        """The next start of the job, retries included. None: it does not start by itself.

        If another node has the job, this is what its schedule says.
        """
        raise NotImplementedError

    def next_starts(self, count: int) -> list[datetime]:
        """Return the next `count` regular starts, or fewer if the schedule ends."""
        raise NotImplementedError

    def statistics(self) -> JobStatistics:
        """Return the job's counts at this moment. From another thread, a run that just ends may be missing.

        The runs of a job that another node has are counted there.
        """
        raise NotImplementedError

    def remove(self) -> None:
        """Remove the job from its scheduler. If it runs, the run is cancelled. Removing it again changes nothing."""
        raise NotImplementedError

    def pause(self, reason: str | None = None, *, until: datetime | None = None) -> None:
        """Start the job no more until `resume`, or until `until` by the wall clock. A run that goes on may end.

        Another call gives the pause this reason and this end. Raises InvalidJob unless `until` is aware and in the
        future, and JobNotFound for a job that is gone.
        """
        raise NotImplementedError

    def resume(self) -> None:
        """Start the job again from its next tick on. Ticks that it missed while it was paused stay missed.

        This also brings back a job that was disabled. It ends only the job's own pause. A pause of all jobs, or of one
        of its tags (`Scheduler.pause`), still holds the job until that pause ends too. Raises JobNotFound.
        """
        raise NotImplementedError

    def set_next_start(self, at: datetime) -> None:
        """Replace the job's next regular start, and any retry, by `at`. If `at` is past, start it now.

        After that the job follows its schedule: Every its grid, After its interval from the end of that run. A one-shot
        has moved. If the start comes while a run goes on, it waits for the end of that run, unless the overlap rule
        lets both run. If you set it during a run, it comes however that run ends. The last call wins, and a new
        schedule wins over it. A paused job keeps it: after `resume` it counts if it is still to come.

        Raises InvalidJob for a naive datetime, JobNotFound, AlreadyStopped.
        """
        raise NotImplementedError

    def skip(self) -> None:
        """Leave out the next regular start: it is recorded as missed, with the reason SKIPPED. The start after it
        stays.

        A retry stays. A paused job has no regular start to skip. Neither has a job that counts from the end of a run
        that goes on. Raises JobNotFound, AlreadyStopped.
        """
        raise NotImplementedError

    def supersede(self) -> None:
        """Replace a next start that was set or skipped by hand with the start that the schedule gives now.

        Raises JobNotFound, AlreadyStopped.
        """
        raise NotImplementedError

    def disable(self, reason: str | None = None) -> None:
        """Start the job no more until `enable`: this is `pause` without an end. Raises JobNotFound."""
        self.pause(reason)

    def enable(self) -> None:
        """Start the job again from its next tick on: another word for `resume`. Raises JobNotFound."""
        self.resume()

    def run_now(self) -> AskedRun:
        """Run the job once, now, under its usual limits and its overlap rule.

        Its schedule does not move, but After counts from the end of this run. Await what this returns for the outcome,
        or call its `result()` in a thread, or leave it alone. Raises JobNotFound, AlreadyStopped.
        """
        raise NotImplementedError

    def update(self, *, schedule: SomeSchedule | None = None, **changes: Unpack[JobChanges]) -> None:
        """Change the schedule, the function or any option of `Scheduler.add`. Options that you do not name stay.

        This neither causes a run nor loses one. Raises InvalidJob, ScheduleError or JobNotFound: then nothing has
        changed.
        """
        raise NotImplementedError
