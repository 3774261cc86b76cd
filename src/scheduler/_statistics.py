"""The counts of a scheduler at one moment, gathered from its parts. Any thread."""

from __future__ import annotations

from ._control import Registry, fleet_of
from ._loop import Core
from ._memory import Memory
from ._values import SchedulerStatistics
from ._watchdog import Watchdog


def statistics_of(
    core: Core, registry: Registry, memory: Memory | None, watchdog: Watchdog, *, stalls: int
) -> SchedulerStatistics:
    """`memory` None: there is no store. `stalls`: of the event loop."""
    pool, missed = core.pool.statistics(), dict(core.missed.by_reason)
    durations = registry.lateness.durations()  # before the lateness, so that no run has ended and not begun
    lateness = {kind: counts.snapshot() for kind, counts in registry.lateness.now().items()}
    return SchedulerStatistics(
        jobs=len(core.jobs),
        active_jobs=len({run.job.id for run in core.runs.all()}),
        active_tasks=pool.active,
        waiting_tasks=pool.waiting,
        runs=registry.lateness.runs_so_far(lateness),
        missed=sum(missed.values()),
        missed_is_exact=core.missed.is_exact,
        missed_by_reason=missed,
        limits=pool.limits,
        lateness=lateness,
        outcomes=registry.lateness.outcomes(durations),
        durations=durations,
        store=None if memory is None else memory.statistics(),
        fleet=fleet_of(core.jobs),
        queue=None if memory is None else memory.queue_statistics(),
        watchdog=watchdog.statistics(),
        timers=core.queue.statistics(),
        stalls=stalls,
    )
