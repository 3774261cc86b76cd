from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from timerqueue import Clock, TaskPool, TimerQueue

from .._jobs import JobList
from .._journal import Journal
from .._plan import Timeline
from .._runs import Runs
from .._starts import ClockGuard, MissedTicks, Pausing, Starts
from .._values import Listeners
from .loop import Loop
from .turn import Turn


@frozen(eq=False)
class Core:
    clock: Clock
    monotonic: Callable[[], float]
    pool: TaskPool
    queue: TimerQueue
    listeners: Listeners
    timeline: Timeline
    jobs: JobList
    journal: Journal
    missed: MissedTicks
    starts: Starts
    clock_guard: ClockGuard
    pausing: Pausing
    runs: Runs
    loop: Loop
    turn: Turn
