"""Which of several schedulers on one store has which job, and how that changes.

A Sharded node owns shards; a Queued node takes jobs out of a queue. The package knows no Memory.
"""

from .answers import RequestAnswers
from .consequences import QueuedConsequences, SharedConsequences
from .lease import LeaseGuard, StoreWays
from .lending import Borrowing, Fleet, NoUnits, Rate, Units, fleet, rate, resize, sizes_of
from .node import NodeParts
from .other_nodes import OtherNodes, fetched_if_unheeded, leave_to_owners
from .queue import Claims, Dispatch, QueueAudit, QueueVisit, next_execution
from .queued import Queued, QueueNode
from .rejoining import Owned, Rejoining
from .requests import Requests
from .sharded import Sharded

__all__ = [
    "Borrowing",
    "Claims",
    "Dispatch",
    "Fleet",
    "LeaseGuard",
    "NoUnits",
    "NodeParts",
    "OtherNodes",
    "Owned",
    "QueueAudit",
    "QueueNode",
    "QueueVisit",
    "Queued",
    "QueuedConsequences",
    "Rate",
    "Rejoining",
    "RequestAnswers",
    "Requests",
    "Sharded",
    "SharedConsequences",
    "StoreWays",
    "Units",
    "fetched_if_unheeded",
    "fleet",
    "leave_to_owners",
    "next_execution",
    "rate",
    "resize",
    "sizes_of",
]
