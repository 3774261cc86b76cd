from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from schedule import Missed, Schedule

from .._plan import Start
from .._shape import Informed, JobInfo, JobSpec, SomeSchedule
from .._values import Delivery, JobState, JobStatistics, Overlap, Pause, Policy, Retry
from .asked import AskedRun


class JobChanges(TypedDict, total=False):
    """Options of `Scheduler.add` that `Job.update` can change."""

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
    owner: str | None


class Job(Informed):
    """A job, as `Scheduler.add` returns it. Call its verbs from any thread and any task."""

    __slots__ = ()

    @property
    def id(self) -> str:
        """The job's name in its scheduler."""
        raise NotImplementedError

    @property
    def name(self) -> str | None:
        """The job's name for people, if any."""
        raise NotImplementedError

    @property
    def tags(self) -> frozenset[str]:
        """Tags by which jobs are paused together."""
        raise NotImplementedError

    @property
    def schedule(self) -> Schedule:
        """The schedule."""
        raise NotImplementedError

    @property
    def func(self) -> Callable[..., Any]:
        """The callable."""
        raise NotImplementedError

    @property
    def args(self) -> tuple[Any, ...]:
        """The callable's positional arguments."""
        raise NotImplementedError

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """The callable's keyword arguments."""
        raise NotImplementedError

    policy: Policy
    """The options, checked."""

    @property
    def needs(self) -> Mapping[str, int]:
        """The units that a run needs of each limit."""
        return dict(self.policy.needs)

    @property
    def priority(self) -> float:
        """Among jobs that wait for room, the higher goes first."""
        return self.policy.priority

    @property
    def timeout(self) -> timedelta | None:
        """The longest that a run may take. None: no limit."""
        return None if self.policy.timeout is None else timedelta(seconds=self.policy.timeout)

    @property
    def retry(self) -> Retry | None:
        """When a failed tick is tried again. None: never."""
        return self.policy.retry

    @property
    def overlap(self) -> Overlap:
        """The rule for a tick that comes before an earlier run has ended."""
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
    def owner(self) -> str | None:
        """The file or set that the job came from. None: code."""
        return self.policy.owner

    @property
    def spec(self) -> JobSpec:
        """The job's definition, as `Scheduler.add` and `Scheduler.sync` take it. Equal specs mean equal jobs.

        Raises InvalidJob if the schedule has no text, or the stored row cannot be read.
        """
        raise NotImplementedError

    @property
    def state(self) -> JobState:
        """The job's state now. On another node's job: SCHEDULED or DISABLED, as its row says."""
        raise NotImplementedError

    @property
    def agent(self) -> str | None:
        """The name of the node that has the job. None: the store is not shared."""
        raise NotImplementedError

    @property
    def is_ours(self) -> bool:
        """Whether this scheduler has the job. False: another node has it, or no node yet."""
        raise NotImplementedError

    @property
    def error(self) -> str | None:
        """Why the job does not start by itself. None: it does."""
        raise NotImplementedError

    @property
    def pauses(self) -> tuple[Pause, ...]:
        """The pauses that hold the job now: its own, of its tags, and of all jobs."""
        raise NotImplementedError

    def info(self) -> JobInfo:
        """Return the job's definition and how it stands, as one value. `to_json` writes it."""
        raise NotImplementedError

    @property
    def next_start(self) -> datetime | None:
        """The next start, retries included. None: the job does not start by itself.

        Another node's job: what its schedule says.
        """
        raise NotImplementedError

    def next_starts(self, count: int) -> list[datetime]:
        """Return the next `count` regular starts, or fewer if the schedule ends."""
        raise NotImplementedError

    def statistics(self) -> JobStatistics:
        """Return the job's counts now; another node counts its own runs.

        From another thread, a run that just ends may be missing.
        """
        raise NotImplementedError

    def remove(self) -> None:
        """Remove the job, and cancel its run. Removing it again changes nothing."""
        raise NotImplementedError

    def pause(self, reason: str | None = None, *, until: datetime | None = None) -> None:
        """Start the job no more until `resume`, or until `until` by the wall clock. A present run may end.

        A second call replaces both. Raises InvalidJob unless `until` is aware and in the future, and JobNotFound.
        """
        raise NotImplementedError

    def resume(self) -> None:
        """Start the job again from its next tick on, also after `disable`. Ticks missed meanwhile stay missed.

        A pause of all jobs or of a tag (`Scheduler.pause`) still holds. Raises JobNotFound.
        """
        raise NotImplementedError

    def set_next_start(self, at: datetime) -> None:
        """Replace the job's next regular start, and any retry, by `at`. If `at` is past, start it now.

        Then the job follows its schedule: Every its grid, After its interval from the end of that run. A one-shot has
        moved. The start waits for a present run unless the overlap rule lets both run, and comes however that run ends.
        The last call wins; a new schedule wins over it. A paused job keeps `at` if it is still to come at `resume`.

        Raises InvalidJob for a naive datetime, JobNotFound, AlreadyStopped.
        """
        raise NotImplementedError

    def skip(self) -> None:
        """Leave out the next regular start: it is recorded as missed, with the reason SKIPPED.

        A retry stays. A paused job has none to skip, nor has a job that counts from the end of a present run. Raises
        JobNotFound, AlreadyStopped.
        """
        raise NotImplementedError

    def supersede(self) -> None:
        """Replace a next start set or skipped by hand with the schedule's.

        Raises JobNotFound, AlreadyStopped.
        """
        raise NotImplementedError

    def disable(self, reason: str | None = None) -> None:
        """Start the job no more until `enable`: `pause` without an end. Raises JobNotFound."""
        self.pause(reason)

    def enable(self) -> None:
        """Same as `resume`. Raises JobNotFound."""
        self.resume()

    def run_now(self) -> AskedRun:
        """Run the job once, now, under its limits and overlap rule.

        Its schedule does not move, but After counts from the end of this run. For the outcome, await the AskedRun or
        call its `result()`. Raises JobNotFound, AlreadyStopped.
        """
        raise NotImplementedError

    def update(self, *, schedule: SomeSchedule | None = None, **changes: Unpack[JobChanges]) -> None:
        """Change the schedule, the function or any option of `Scheduler.add`; the others stay.

        This neither causes nor loses a run. Raises InvalidJob, ScheduleError or JobNotFound; then nothing has changed.
        """
        raise NotImplementedError
