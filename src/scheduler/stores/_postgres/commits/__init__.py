"""Committing batches, transactions in their line, and pruning history.

Shards and limits are unknown here.
"""

from .commit import send, write
from .pruning import PruneCandidates
from .session import CommitSession
from .transactions import PostgresTransactions

__all__ = ["CommitSession", "PostgresTransactions", "PruneCandidates", "send", "write"]
