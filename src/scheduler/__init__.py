"""A scheduler: runs jobs on their schedules, under limits, in one process, and remembers them in a store if you like.

Begin with `Scheduler` and its method `add`. `Missed`, `ScheduleError`, `LifecycleError` and `UnknownLimit` come from
the packages `schedule` and `timerqueue`; they are here so that you need not import those.
"""

from schedule import Missed, ScheduleError
from timerqueue import LifecycleError, UnknownLimit

from ._control import NewJob
from ._jobs import AskedRun, CurrentRun, Handle as Job, JobChanges, current_run
from ._memory import Record
from ._running import SchedulerState
from ._runs import Subtask
from ._scheduler import Scheduler
from ._tune_gc import tune_gc
from ._values import (
    AgentStatistics,
    AlreadyStopped,
    ClockJumped,
    Delivery,
    DuplicateJob,
    Event,
    FleetStatistics,
    ImpossibleTransition,
    InvalidJob,
    JobAdded,
    JobChanged,
    JobFinished,
    JobNotFound,
    JobParked,
    JobRemoved,
    JobState,
    JobStatistics,
    LatenessStatistics,
    Listener,
    LoopBlocked,
    MalformedJob,
    MissedReason,
    NotASubtask,
    Outcome,
    Overlap,
    Pause,
    Retry,
    RunAbandoned,
    RunEnded,
    RunMissed,
    RunNotLaunched,
    RunStarted,
    SchedulerError,
    SchedulerStarted,
    SchedulerStatistics,
    SchedulerStopped,
    ScopePaused,
    ScopeResumed,
    StoreDown,
    StoreStatistics,
    StoreUp,
    TooManySubtasks,
    UnknownTask,
)
from .stores import Retention, Store, StoreError, StoreTakenOver, StoreUnavailable, StoreUnusable

__all__ = [
    "AgentStatistics",
    "AlreadyStopped",
    "AskedRun",
    "ClockJumped",
    "CurrentRun",
    "Delivery",
    "DuplicateJob",
    "Event",
    "FleetStatistics",
    "ImpossibleTransition",
    "InvalidJob",
    "Job",
    "JobAdded",
    "JobChanged",
    "JobChanges",
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
    "NewJob",
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
    "tune_gc",
]

for _each in [globals()[name] for name in __all__]:  # a traceback says where users find the error, not where it lies
    if isinstance(_each, type) and issubclass(_each, Exception) and _each.__module__.startswith("scheduler."):
        _each.__module__ = "scheduler"
