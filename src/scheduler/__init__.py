"""A scheduler runs jobs on their schedules, under limits, in one process. A store can remember the jobs.

Begin with `Scheduler` and its method `add`. `Missed`, `ScheduleError`, `LifecycleError` and `UnknownLimit` come from
the packages `schedule` and `timerqueue`.
"""

from typing import TYPE_CHECKING

try:
    from schedule import Missed, ScheduleError
except ImportError as error:
    if error.name != "schedule":
        raise
    import schedule

    msg = (
        f"{schedule!r} is not the package of timerqueue: another distribution (PyPI has one called schedule) has been "
        "installed over it, or a file of yours hides it. Rename that file; or: pip uninstall schedule, then pip "
        "install --force-reinstall --no-deps timerqueue. Two environments can have one each."
    )
    raise ImportError(msg, name="schedule") from error
from timerqueue import LifecycleError, UnknownLimit

from ._audit_store import Became, Finding, StoreAudit, audit_store
from ._changes import Change, acting_as
from ._control import NewJob
from ._fleet import Fleet, Rate, fleet, rate
from ._jobs import AskedRun, CurrentRun, Handle as Job, JobChanges, current_run
from ._memory import Record, record_of
from ._running import SchedulerState
from ._runs import Subtask
from ._scheduler import Scheduler
from ._sets import Synced, export_json, export_toml, read_jobs
from ._shape import Holder, JobInfo, JobSpec, RunInfo, Waited, from_json, json_schema_of, to_json
from ._tune_gc import tune_gc
from ._values import (
    AgentJoined,
    AgentLost,
    AgentStatistics,
    AlreadyStopped,
    Audit,
    AuditEnded,
    AuditStarted,
    ClockJumped,
    Delivery,
    DispatchStatistics,
    DuplicateJob,
    DurationStatistics,
    Event,
    EventPage,
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
    NumberedEvent,
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
    ShardsMoved,
    SkewEnded,
    SkewTooLarge,
    StoreDown,
    StoreStatistics,
    StoreUp,
    TooManySubtasks,
    UnknownTask,
    WatchdogStatistics,
    WrongOwner,
)
from ._why import Verdict, Why, why_from
from .stores import Retention, Store, StoreError, StoreTakenOver, StoreUnavailable, StoreUnusable

__all__ = [
    "AgentJoined",
    "AgentLost",
    "AgentStatistics",
    "AlreadyStopped",
    "AskedRun",
    "Audit",
    "AuditEnded",
    "AuditStarted",
    "Became",
    "Change",
    "ClockJumped",
    "CurrentRun",
    "Delivery",
    "DispatchStatistics",
    "DuplicateJob",
    "DurationStatistics",
    "Event",
    "EventPage",
    "Finding",
    "Fleet",
    "FleetStatistics",
    "Holder",
    "ImpossibleTransition",
    "InvalidJob",
    "Job",
    "JobAdded",
    "JobChanged",
    "JobChanges",
    "JobFinished",
    "JobInfo",
    "JobNotFound",
    "JobParked",
    "JobRemoved",
    "JobSpec",
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
    "NumberedEvent",
    "Outcome",
    "Overlap",
    "Pause",
    "Rate",
    "Record",
    "Retention",
    "Retry",
    "RunAbandoned",
    "RunEnded",
    "RunInfo",
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
    "ShardsMoved",
    "SkewEnded",
    "SkewTooLarge",
    "Store",
    "StoreAudit",
    "StoreDown",
    "StoreError",
    "StoreStatistics",
    "StoreTakenOver",
    "StoreUnavailable",
    "StoreUnusable",
    "StoreUp",
    "Subtask",
    "Synced",
    "TooManySubtasks",
    "UnknownLimit",
    "UnknownTask",
    "Verdict",
    "Waited",
    "WatchdogStatistics",
    "Why",
    "WrongOwner",
    "acting_as",
    "audit_store",
    "current_run",
    "export_json",
    "export_toml",
    "fleet",
    "from_json",
    "json_schema_of",
    "rate",
    "read_jobs",
    "record_of",
    "to_json",
    "tune_gc",
    "why_from",
]

if TYPE_CHECKING:
    __version__: str
else:  # so that type checkers refuse names that the package lacks

    def __getattr__(name: str) -> str:
        if name != "__version__":
            msg = f"module 'scheduler' has no attribute {name!r}"
            raise AttributeError(msg)
        from importlib.metadata import version  # noqa: PLC0415 - a tenth of a second that few want

        return version("timerqueue")


for _each in [globals()[name] for name in __all__]:  # a traceback names the module from which users import the error
    if isinstance(_each, type) and issubclass(_each, Exception) and _each.__module__.startswith("scheduler."):
        _each.__module__ = "scheduler"
