"""Timers that any thread can set, and tasks that run within limits.

`TimerQueue` calls functions at monotonic seconds. `TaskPool` runs tasks when their limits have room.
"""

from ._clock import Clock, Random, SystemClock, boottime, seeded_random, system_random
from ._errors import LifecycleError, TimerQueueError, UnknownLimit
from ._forks import LeftBehind, Resident
from ._gil import check_build
from ._heap import OUT, Entry, TimerHeap
from ._lifecycle import Lifecycle, LifecycleState
from ._limits import HeldUnits, Lender, LimitStatistics, Needs, needs_of
from ._pool import PoolStatistics, TaskPool
from ._queue import Alarm, QueueStatistics, Timer, TimerQueue
from ._rests import Rests
from ._wake import Pulse
from ._workers import HELD, UNKNOWN, Bundle, Detached, Held, Host, Runner, Work, Worker, Workers, is_async

check_build()

__all__ = [
    "HELD",
    "OUT",
    "UNKNOWN",
    "Alarm",
    "Bundle",
    "Clock",
    "Detached",
    "Entry",
    "Held",
    "HeldUnits",
    "Host",
    "LeftBehind",
    "Lender",
    "Lifecycle",
    "LifecycleError",
    "LifecycleState",
    "LimitStatistics",
    "Needs",
    "PoolStatistics",
    "Pulse",
    "QueueStatistics",
    "Random",
    "Resident",
    "Rests",
    "Runner",
    "SystemClock",
    "TaskPool",
    "Timer",
    "TimerHeap",
    "TimerQueue",
    "TimerQueueError",
    "UnknownLimit",
    "Work",
    "Worker",
    "Workers",
    "boottime",
    "is_async",
    "needs_of",
    "seeded_random",
    "system_random",
]

for _each in [globals()[name] for name in __all__]:  # a traceback says where users find the error, not where it lies
    if isinstance(_each, type) and issubclass(_each, Exception) and _each.__module__.startswith("timerqueue."):
        _each.__module__ = "timerqueue"
