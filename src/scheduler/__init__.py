"""Run it, remember it, decide: jobs on schedules, under limits, in one process."""

from ._current import CurrentRun, current_run
from ._errors import (
    AlreadyStopped,
    DuplicateJob,
    ImpossibleTransition,
    InvalidJob,
    JobNotFound,
    NotASubtask,
    SchedulerError,
    TooManySubtasks,
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
    RunStarted,
    SchedulerStarted,
    SchedulerStopped,
)
from ._job import Job
from ._outcome import MissedReason, Outcome
from ._policy import Overlap
from ._retry import Retry
from ._scheduler import Scheduler, SchedulerState
from ._state import JobState
from ._statistics import JobStatistics, LatenessStatistics, SchedulerStatistics
from ._subtask import Subtask

__all__ = [
    "AlreadyStopped",
    "ClockJumped",
    "CurrentRun",
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
    "Listener",
    "LoopBlocked",
    "MissedReason",
    "NotASubtask",
    "Outcome",
    "Overlap",
    "Retry",
    "RunAbandoned",
    "RunEnded",
    "RunMissed",
    "RunStarted",
    "Scheduler",
    "SchedulerError",
    "SchedulerStarted",
    "SchedulerState",
    "SchedulerStatistics",
    "SchedulerStopped",
    "Subtask",
    "TooManySubtasks",
    "current_run",
]
