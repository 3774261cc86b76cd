"""Run it, remember it, decide: jobs on schedules, under limits, in one process.

`Missed`, `ScheduleError`, `LifecycleError` and `UnknownLimit` are those of the packages below, for convenience.
"""

from schedule import Missed, ScheduleError
from timerqueue import LifecycleError, UnknownLimit

from ._current import CurrentRun, current_run
from ._errors import (
    AlreadyStopped,
    DuplicateJob,
    ImpossibleTransition,
    InvalidJob,
    JobNotFound,
    MalformedJob,
    NotASubtask,
    SchedulerError,
    TooManySubtasks,
    UnknownTask,
)
from ._events import (
    ClockJumped,
    Event,
    JobAdded,
    JobChanged,
    JobFinished,
    JobParked,
    JobRemoved,
    Listener,
    LoopBlocked,
    RunAbandoned,
    RunEnded,
    RunMissed,
    RunNotLaunched,
    RunStarted,
    SchedulerStarted,
    SchedulerStopped,
    ScopePaused,
    ScopeResumed,
    StoreDown,
    StoreUp,
)
from ._job import Job
from ._outcome import MissedReason, Outcome
from ._pauses import Pause
from ._policy import Delivery, Overlap
from ._record import Record
from ._retry import Retry
from ._scheduler import Scheduler, SchedulerState
from ._state import JobState
from ._statistics import JobStatistics, LatenessStatistics, SchedulerStatistics, StoreStatistics
from ._store import Store, StoreError, StoreTakenOver, StoreUnavailable, StoreUnusable
from ._stored import Retention
from ._subtask import Subtask

__all__ = [
    "AlreadyStopped",
    "ClockJumped",
    "CurrentRun",
    "Delivery",
    "DuplicateJob",
    "Event",
    "ImpossibleTransition",
    "InvalidJob",
    "Job",
    "JobAdded",
    "JobChanged",
    "JobFinished",
    "JobNotFound",
    "JobParked",
    "JobRemoved",
    "JobState",
    "JobStatistics",
    "LatenessStatistics",
    "LifecycleError",
    "Listener",
    "LoopBlocked",
    "MalformedJob",
    "Missed",
    "MissedReason",
    "NotASubtask",
    "Outcome",
    "Overlap",
    "Pause",
    "Record",
    "Retention",
    "Retry",
    "RunAbandoned",
    "RunEnded",
    "RunMissed",
    "RunNotLaunched",
    "RunStarted",
    "ScheduleError",
    "Scheduler",
    "SchedulerError",
    "SchedulerStarted",
    "SchedulerState",
    "SchedulerStatistics",
    "SchedulerStopped",
    "ScopePaused",
    "ScopeResumed",
    "Store",
    "StoreDown",
    "StoreError",
    "StoreStatistics",
    "StoreTakenOver",
    "StoreUnavailable",
    "StoreUnusable",
    "StoreUp",
    "Subtask",
    "TooManySubtasks",
    "UnknownLimit",
    "UnknownTask",
    "current_run",
]
