"""Which of several schedulers on one store has which job, and how that changes.

Sharded is the membership of a node that has the jobs of its shards. Queued is the membership of a node whose jobs come
out of a queue. Both have a Node: the lease, the other nodes, and what happens when they take it for dead. Requests go
from node to node through the store. Consequences follow from commits.

Four folders below have the parts: `lease`, `shards`, `queue` and `lending`.

The package knows no Memory, which asks a Membership of either kind. On the loop, except for calls of the lease.
"""

from .answers import Answers
from .consequences import QueuedConsequences, SharedConsequences
from .lease import LeaseGuard, Ways
from .lending import Borrowing, Fleet, NoUnits, Rate, Units, fleet, rate, resize, sizes_of
from .node import NodeParts
from .other_nodes import OtherNodes, fetched_if_unheeded, leave_to_owners
from .queue import Claims, Dispatch, QueueAudit, QueueVisit, next_execution
from .queued import Queued, QueueNode
from .rejoining import Owned, Rejoining
from .requests import Requests
from .sharded import Sharded

__all__ = [
    "Answers",
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
    "Requests",
    "Sharded",
    "SharedConsequences",
    "Units",
    "Ways",
    "fetched_if_unheeded",
    "fleet",
    "leave_to_owners",
    "next_execution",
    "rate",
    "resize",
    "sizes_of",
]
