"""Commits: how a batch is written in one transaction, over which connection, and how history is pruned between two.

It knows no shards, leases or limits.
"""

from .commit import send, write
from .pruning import Pruning
from .session import CommitSession

__all__ = ["CommitSession", "Pruning", "send", "write"]
