from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from typing import Any

from attrs import field, frozen

from timerqueue import LimitStatistics, QueueStatistics

from .histogram import DurationStatistics, LatenessStatistics
from .outcome import SUCCEEDED, MissedReason, Outcome
from .sparse import Sparse


class RunTally:
    """The running counts of one job. Instants in UTC seconds since 1970."""

    __slots__ = (
        "_earlier_success",
        "_other_runs",
        "last_finish",
        "last_outcome",
        "last_start",
        "lateness_max",
        "lateness_sum",
        "sparse",
        "successes",
        "total_duration",
    )

    failures = Sparse(0)
    timeouts = Sparse(0)
    cancellations = Sparse(0)
    missed = Sparse(0)
    missed_is_exact = Sparse(True)  # noqa: FBT003 - its usual value
    launch_failures = Sparse(0)
    consecutive_failures = Sparse(0)
    consecutive_crashes = Sparse(0)
    total_duration_failures = Sparse(0.0)
    last_error: Sparse[str | None] = Sparse(None)
    last_result: Sparse[str | None] = Sparse(None)  # as JSON: no object of a run is kept

    def __init__(self) -> None:
        self.successes = self._other_runs = 0
        self.lateness_sum = self.lateness_max = self.total_duration = 0.0
        self.last_start: float | None = None
        self.last_finish: float | None = None
        self._earlier_success: float | None = None
        self.last_outcome: Outcome | None = None
        self.sparse: dict[str, Any] | None = None

    @property
    def runs(self) -> int:
        return self.successes + self._other_runs

    @runs.setter
    def runs(self, count: int) -> None:
        self._other_runs = count - self.successes

    @property
    def last_successful_finish(self) -> float | None:
        return self.last_finish if self.last_outcome is SUCCEEDED else self._earlier_success

    @last_successful_finish.setter
    def last_successful_finish(self, finish: float | None) -> None:
        self._earlier_success = finish

    def copy(self) -> RunTally:
        other = copy(self)
        other.sparse = None if self.sparse is None else dict(self.sparse)
        return other

    def begin(self, started: float, lateness: float, runs: int = 1) -> tuple[float | None, float]:
        """Count a run; until it ends it counts as a crash. `runs`: 0 if the mark has counted it.

        Return the `last_start` and `lateness_max` before, for `take_back`.
        """
        before = self.last_start, self.lateness_max
        self.runs += runs
        self.last_start = started
        self.lateness_sum += lateness
        self.lateness_max = max(self.lateness_max, lateness)
        return before

    def take_back(self, started: float, lateness: float, before: tuple[float | None, float], runs: int = 1) -> None:
        """Take back a launch that failed. `last_start` and `lateness_max` stay if another run has begun since."""
        self.runs -= runs
        self.lateness_sum -= lateness
        if self.last_start == started:
            self.last_start, self.lateness_max = before

    def succeed(self, started: float, ended: float, lateness: float, duration: float) -> None:
        self.successes += 1
        self.lateness_sum += lateness
        if lateness > self.lateness_max:  # noqa: PLR1730 - `max` costs more than all of this
            self.lateness_max = lateness
        self.total_duration += duration
        self.last_start = started
        self.last_finish = ended
        if self.last_outcome is not SUCCEEDED:
            self.last_outcome = SUCCEEDED
            if self.sparse is not None:
                self.consecutive_crashes = self.consecutive_failures = 0

    def end(self, outcome: Outcome, ended: float, duration: float, error: str | None) -> None:
        self._earlier_success = self.last_successful_finish
        self.last_finish = ended
        self.last_outcome = outcome
        self.consecutive_crashes = 0
        if outcome is SUCCEEDED:
            self.successes += 1
            self._other_runs -= 1
            self.consecutive_failures = 0
            self.total_duration += duration
            return
        self.failures += 1
        self.total_duration_failures += duration
        self.last_error = error
        if outcome is Outcome.CANCELLED:
            self.cancellations += 1
            return
        self.consecutive_failures += 1
        self.timeouts += outcome is Outcome.TIMED_OUT

    def crash(self, error: str) -> None:
        """Count a crash of the process. The run was counted when marked."""
        self._earlier_success = self.last_successful_finish
        self.last_outcome = Outcome.CRASHED
        self.last_error = error
        self.consecutive_crashes += 1

    def snapshot(self, running: int = 0, last_audit: float | None = None) -> JobStatistics:
        return JobStatistics(
            runs=self.runs,
            running=running,
            successes=self.successes,
            failures=self.failures,
            crashes=max(self.runs - self.successes - self.failures - running, 0),
            timeouts=self.timeouts,
            cancellations=self.cancellations,
            missed=self.missed,
            missed_is_exact=self.missed_is_exact,
            launch_failures=self.launch_failures,
            consecutive_failures=self.consecutive_failures,
            consecutive_crashes=self.consecutive_crashes,
            total_duration=self.total_duration,
            total_duration_failures=self.total_duration_failures,
            lateness_sum=self.lateness_sum,
            lateness_max=self.lateness_max,
            last_start=self.last_start,
            last_finish=self.last_finish,
            last_successful_finish=self.last_successful_finish,
            last_outcome=self.last_outcome,
            last_error=self.last_error,
            last_result=None if self.last_result is None else json.loads(self.last_result),
            last_audit=last_audit,
        )


Success = tuple[float, float, float, float]
"""The arguments of `RunTally.succeed`."""


def counted(counts: RunTally | Success | None) -> RunTally:
    if isinstance(counts, RunTally):
        return counts.copy()
    tally = RunTally()
    if counts is not None:
        tally.succeed(*counts)
    return tally


@frozen(kw_only=True)
class JobStatistics:
    """A job's counts at one moment: runs = successes + failures + crashes + running.

    Timeouts and cancellations are failures; cancellations do not count in `consecutive_failures`.
    `consecutive_crashes`: how often in a row its process died during a run. `missed_is_exact` False: `missed` is a
    lower bound. Lengths in seconds, instants in UTC seconds since 1970. `total_duration`: of the successes.

    `last_result`: the last result since this scheduler began, as JSON gives it back. It is None if JSON cannot hold it
    in 2,048 characters. `last_audit`: when the watchdog last found or restored its next start.
    """

    runs: int
    successes: int
    failures: int
    crashes: int
    timeouts: int
    cancellations: int
    missed: int
    launch_failures: int
    consecutive_failures: int
    consecutive_crashes: int
    total_duration: float
    total_duration_failures: float
    lateness_sum: float
    lateness_max: float
    last_start: float | None
    last_finish: float | None
    last_successful_finish: float | None
    last_outcome: Outcome | None
    last_error: str | None
    missed_is_exact: bool = True
    last_result: object = None
    running: int = 0
    last_audit: float | None = None


@frozen
class StoreStatistics:
    """A scheduler's use of its store. `commits`: since it began. `unsaved`: changes not durable yet. `trouble`: None if
    the store works.
    """

    commits: int
    unsaved: int
    trouble: str | None


@frozen(kw_only=True)
class DispatchStatistics:
    """A scheduler's use of its queue since it began.

    `held`: jobs that it has claimed now. `taken`: ticks that came out. `dropped`: ticks that came out and must not run,
    or not here, by reason. `without_task`: ticks left to other nodes, because this node lacks the task. `here`: ticks
    that wait in this process, because the queue refused them. `refused`: refusals, by reason. `missing`: ticks that an
    audit put again. `premature`, `hops`, `expired` and `strange`: see scheduler.queues.QueueStatistics.
    """

    held: int
    taken: int
    dropped: Mapping[str, int]
    without_task: int
    here: int
    refused: Mapping[str, int]
    missing: int
    premature: int
    hops: int
    expired: int
    strange: int


@frozen
class AgentStatistics:
    """A node that shares a store; for its fields see Peer in scheduler.stores. `shards`: how many it owns."""

    name: str
    epoch: int
    shards: int
    skew: float | None = None
    is_off: bool = False


@frozen(kw_only=True)
class FleetStatistics:
    """The nodes that share a store, as `me` saw them last.

    `jobs_elsewhere`: jobs of other nodes. `waiting`: how many of these wait for labels that no node has, by labels.
    """

    me: str
    agents: tuple[AgentStatistics, ...]
    jobs_elsewhere: int
    waiting: Mapping[str, int] = field(factory=dict, hash=False)


@frozen(kw_only=True)
class Audit:
    """The findings of one audit. `at` in UTC seconds; `seconds`: how long it took.

    `interval`: seconds to the next audit; None: a user asked for this one. `has_lock` False: another audit ran, so this
    one did nothing. `jobs`: jobs checked. `failed`: jobs not mended. `planned`: jobs that got a missing start.
    `requeued`: starts that had to be put into their queue again. `withdrawn`: starts of jobs that must have none.
    `closed`: records of runs that no process runs. `trouble`: why a part was left out.
    """

    at: float
    interval: float | None
    has_lock: bool = True
    jobs: int = 0
    failed: int = 0
    planned: int = 0
    requeued: int = 0
    withdrawn: int = 0
    closed: int = 0
    seconds: float = 0.0
    trouble: str | None = None

    @property
    def mended(self) -> int:
        """The number of mended faults."""
        return self.planned + self.requeued + self.withdrawn + self.closed


@frozen(kw_only=True)
class WatchdogStatistics:
    """A scheduler's watchdog: it audits every `interval` seconds; None: only when asked.

    `failing`: jobs that the last audit could not mend. `oldest`: the job checked longest ago, and when, in UTC seconds.
    """

    interval: float | None
    audits: int
    last: Audit | None
    failing: tuple[str, ...] = ()
    oldest: tuple[str, float | None] | None = None


@frozen(kw_only=True)
class SchedulerStatistics:
    """A scheduler at one moment. `active_jobs` have a run, perhaps waiting for room.

    `lateness`, `outcomes` and `durations` are by kind: the first of a job's needs, or "default". They count since this
    scheduler began, and never fall. `outcomes`: ended runs. A crash has no duration, and counts where it is found.
    `missed_by_reason`: its sum is `missed`. `missed_is_exact` False: `missed` is a lower bound.

    `fleet`: None if no other nodes share the store. `queue`: None if next starts are in no outside queue. `timers`: the
    heap of all waits. `stalls`: how often the event loop stood still for `blocked_after`.
    """

    jobs: int
    active_jobs: int
    active_tasks: int
    waiting_tasks: int
    runs: int
    missed: int
    limits: Mapping[str, LimitStatistics] = field(repr=False)
    lateness: Mapping[str, LatenessStatistics] = field(repr=False)
    store: StoreStatistics | None = field(default=None, repr=False)
    missed_is_exact: bool = field(default=True, repr=False)
    fleet: FleetStatistics | None = field(default=None, repr=False)
    queue: DispatchStatistics | None = field(default=None, repr=False)
    watchdog: WatchdogStatistics | None = field(default=None, repr=False)
    outcomes: Mapping[str, Mapping[Outcome, int]] = field(factory=dict, repr=False)
    durations: Mapping[str, Mapping[Outcome, DurationStatistics]] = field(factory=dict, repr=False)
    missed_by_reason: Mapping[MissedReason, int] = field(factory=dict, repr=False)
    timers: QueueStatistics | None = field(default=None, repr=False, eq=False)  # an idle loop wakes up, too
    stalls: int = field(default=0, repr=False)
