"""Committing batches, and pruning history.

Shards, leases and limits are unknown here.
"""

from .commit import send, write
from .pruning import PruneCandidates
from .session import CommitSession

__all__ = ["CommitSession", "PruneCandidates", "send", "write"]
