"""How jobs become durable, and which part of a store is ours.

Memory opens a store, reads it and closes it. Commits send it what the journal has noted, and act on its answers.
Polling sees what others change, and Shards share a store with other agents.

The only folder that calls a Store. It sees everything below, and nothing below sees it. All of it lives on the loop's
thread, but for the calls of a store that waits, which a writer makes in a thread of its own.
"""

from .commits import Commits
from .history import Record, record_of
from .membership import Membership
from .memory import Memory
from .polling import Polling
from .rejoining import Rejoining
from .requests import Requests
from .shards import ShardParts, Shards
from .writer import InlineWriter, ThreadWriter, Writer

__all__ = [
    "Commits",
    "InlineWriter",
    "Membership",
    "Memory",
    "Polling",
    "Record",
    "Rejoining",
    "Requests",
    "ShardParts",
    "Shards",
    "ThreadWriter",
    "Writer",
    "record_of",
]
