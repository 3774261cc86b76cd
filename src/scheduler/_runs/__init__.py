"""Runs: from a due tick to its outcome.

Of a store it knows only that a mark must be durable before a run begins. `Run.outcome` decides how a run ended,
`Completion.record` acts on it.
"""

from .bundles import RunBundle
from .completion import count_what_runs
from .marks import Marks
from .overlap import drop_waiting
from .run import MarkedRun, Run
from .runs import Runs
from .subtask import Subtask
from .subtask_work import SubtaskWork

__all__ = [
    "MarkedRun",
    "Marks",
    "Run",
    "RunBundle",
    "Runs",
    "Subtask",
    "SubtaskWork",
    "count_what_runs",
    "drop_waiting",
]
