"""Planners turn schedules into microseconds; rules say what follows an end, crash or downtime.

Pure, except for looks at one clock. Knows no job, queue or store.
"""

from .after_restart import CrashFloor, after_crash, after_downtime, rest_until, retry_by
from .after_run import Decision, after_run
from .first_start import PLAIN, FirstStart, Plan, Planners, Start, left_out
from .planner import Grid, Once, Planner
from .skew import ClockVerdict, Skew, skew_of
from .timeline import AT_ONCE, JUMP, Timeline, aware, instant_at, instant_of, some_instant_of, us_of

__all__ = [
    "AT_ONCE",
    "JUMP",
    "PLAIN",
    "ClockVerdict",
    "CrashFloor",
    "Decision",
    "FirstStart",
    "Grid",
    "Once",
    "Plan",
    "Planner",
    "Planners",
    "Skew",
    "Start",
    "Timeline",
    "after_crash",
    "after_downtime",
    "after_run",
    "aware",
    "instant_at",
    "instant_of",
    "left_out",
    "rest_until",
    "retry_by",
    "skew_of",
    "some_instant_of",
    "us_of",
]
