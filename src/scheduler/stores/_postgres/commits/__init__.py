"""Committing batches, and pruning history.

Shards, leases and limits are unknown here.
"""

from .commit import send, write
from .pruning import Pruning
from .session import CommitSession

__all__ = ["CommitSession", "Pruning", "send", "write"]
