"""Who of several schedulers that have one store has which job, and how that changes.

Sharded is the membership of a node whose jobs are those of its shards, Queued that of one whose jobs come out of a
queue. Both have a Node: the lease, who else is there, and what follows from being taken for dead. Requests go from node
to node through the store. Consequences are what follows from commits.

Knows no Memory: that one asks a Membership, whichever it is. Lives on the loop, but for what the lease calls.
"""

from .answers import Answers
from .consequences import QueuedConsequences, SharedConsequences
from .node import NodeParts
from .other_nodes import OtherNodes, fetched_if_unheeded, leave_to_owners
from .queued import Queued, QueueNode
from .rejoining import Owned, Rejoining
from .requests import Requests
from .sharded import Sharded

__all__ = [
    "Answers",
    "NodeParts",
    "OtherNodes",
    "Owned",
    "QueueNode",
    "Queued",
    "QueuedConsequences",
    "Rejoining",
    "Requests",
    "Sharded",
    "SharedConsequences",
    "fetched_if_unheeded",
    "leave_to_owners",
]
