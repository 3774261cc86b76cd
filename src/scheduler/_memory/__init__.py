"""How jobs become durable, and which part of a store is ours.

Memory opens a store, reads it and closes it. Polling sees what others change, and Shards share a store with other
agents. It sees everything below, and nothing below sees it.
"""

from .history import Record, record_of
from .membership import Membership
from .memory import Memory
from .polling import Polling
from .rejoining import Rejoining
from .requests import Requests
from .shards import ShardParts, Shards

__all__ = [
    "Membership",
    "Memory",
    "Polling",
    "Record",
    "Rejoining",
    "Requests",
    "ShardParts",
    "Shards",
    "record_of",
]
