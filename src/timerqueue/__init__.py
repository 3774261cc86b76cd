"""When is it due, and is there room: a heap of timers and a task group with limits. Knows no jobs and no calendars."""

from ._clock import Clock, Random, SystemClock, seeded_random, system_random
from ._crew import Crew
from ._errors import LifecycleError, TimerQueueError, UnknownLimit
from ._habits import UNKNOWN
from ._heap import OUT, Entry, TimerHeap
from ._lifecycle import Lifecycle, LifecycleState
from ._limits import LimitStatistics, Needs, needs_of
from ._pool import PoolStatistics, TaskPool
from ._queue import Alarm, QueueStatistics, Timer, TimerQueue
from ._wake import Pulse
from ._work import HELD, Begun, Held, Volley, Work, is_async
from ._worker import Worker

__all__ = [
    "HELD",
    "OUT",
    "UNKNOWN",
    "Alarm",
    "Begun",
    "Clock",
    "Crew",
    "Entry",
    "Held",
    "Lifecycle",
    "LifecycleError",
    "LifecycleState",
    "LimitStatistics",
    "Needs",
    "PoolStatistics",
    "Pulse",
    "QueueStatistics",
    "Random",
    "SystemClock",
    "TaskPool",
    "Timer",
    "TimerHeap",
    "TimerQueue",
    "TimerQueueError",
    "UnknownLimit",
    "Volley",
    "Work",
    "Worker",
    "is_async",
    "needs_of",
    "seeded_random",
    "system_random",
]
