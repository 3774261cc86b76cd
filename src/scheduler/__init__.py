"""A scheduler: runs jobs on their schedules, under limits, in one process, and remembers them in a store if you like.

Begin with `Scheduler` and its method `add`. `Missed`, `ScheduleError`, `LifecycleError` and `UnknownLimit` come from
the packages `schedule` and `timerqueue`; they are here so that you need not import those.
"""

from schedule import Missed, ScheduleError
from timerqueue import LifecycleError, UnknownLimit

from ._jobs.current import CurrentRun, current_run
from ._jobs.job import Job
from ._memory.history import Record
from ._runs.subtask import Subtask
from ._scheduler import Scheduler, SchedulerState
from ._values.errors import (
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
from ._values.events import (
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
from ._values.outcome import MissedReason, Outcome
from ._values.pauses import Pause
from ._values.policy import Delivery, Overlap
from ._values.retry import Retry
from ._values.state import JobState
from ._values.statistics import JobStatistics, LatenessStatistics, SchedulerStatistics, StoreStatistics
from .stores._rows import Retention
from .stores._store import Store, StoreError, StoreTakenOver, StoreUnavailable, StoreUnusable

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

for _each in [globals()[name] for name in __all__]:  # a traceback says where users find the error, not where it lies
    if isinstance(_each, type) and issubclass(_each, Exception) and _each.__module__.startswith("scheduler."):
        _each.__module__ = "scheduler"
