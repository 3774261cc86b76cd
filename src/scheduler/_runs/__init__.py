"""Runs: what becomes of a tick that is due. The overlap rule, room, the user's code with its subtasks, one outcome, and
what follows it.

It knows the pool and the queue, and no thread but the loop's; of a store it knows only that a mark has to be durable
before a run begins. How a run ended is decided in `Run.outcome`, and acted on in `Completion.record`.
"""

from .bundles import RunBundle
from .completion import count_what_runs
from .marks import Marks
from .overlap import drop_waiting
from .run import Run
from .runs import Runs
from .subtask import Subtask

__all__ = [
    "Marks",
    "Run",
    "RunBundle",
    "Runs",
    "Subtask",
    "count_what_runs",
    "drop_waiting",
]
