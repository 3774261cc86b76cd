"""Options of APScheduler as options of `Scheduler.add`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from schedule import At, Calendar, Cron, Every, Missed, Schedule
from scheduler import Overlap

from .old_job import OldJob
from .refusal import NotCarried

_SHORTEST_DAY: Final = 82_800.0
"""Seconds, when clocks go forward."""

_MINUTE: Final = 60.0
_WITHOUT_SECONDS: Final = 5
"""Fields of an expression without seconds."""


def options_of(job: OldJob, schedule: Schedule) -> dict[str, Any]:
    """Translate options. Raises NotCarried."""
    found = _late(job, schedule)
    if job.max_instances > 1:
        found |= {"overlap": Overlap.ALLOW, "max_running": job.max_instances}
    return found


def _late(job: OldJob, schedule: Schedule) -> dict[str, Any]:
    """Without coalescing APScheduler runs each start within the grace."""
    grace = job.grace
    if grace is None:
        return {} if job.coalesce else {"missed": Missed.ALL}
    if job.coalesce or grace <= _spacing(schedule):  # of starts so far apart no two are within the grace
        return {"missed": Missed.SKIP, "grace": grace}
    inner = getattr(schedule, "schedule", schedule)  # without its bounds
    if isinstance(inner, Every) and not inner.jitter:
        within = timedelta(seconds=grace) // inner.interval
        return {"missed": Missed.ALL, "catch_up": within}
    raise NotCarried(
        f"coalesce=False with misfire_grace_time={grace:g}: here late starts are counted, not measured; "
        "coalesce=True, or a grace that is shorter than the time between two starts, can"
    )


def _spacing(schedule: Schedule) -> float:
    """Seconds between two starts, at least."""
    match schedule:
        case Every():
            return (schedule.interval - schedule.jitter).total_seconds()
        case At():
            return float("inf")
        case Calendar():
            return _SHORTEST_DAY
        case Cron():
            return _MINUTE if len(schedule.expression.split()) == _WITHOUT_SECONDS else 1.0
        case _:
            parts = getattr(schedule, "parts", None) or [getattr(schedule, "schedule", None)]
            return _spacing_together(parts)


def _spacing_together(parts: Any) -> float:
    """Starts on whole minutes are a minute apart, or one start."""
    if len(parts) == 1 and parts[0] is not None:
        return _spacing(parts[0])
    return min((_spacing(each) if isinstance(each, Cron) else 0.0 for each in parts), default=0.0)
