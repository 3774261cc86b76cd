"""How a node hears of others' changes, and which rows they are. And who made a change.

Nodes are only names in the log.
"""

from .listener import Listener
from .log import ChangeLog
from .made import TABLE as MADE_CHANGES, MadeStatements, PostgresChanges
from .news import IS_FOREIGN, NOW, NewsStatements, snapshot_of

__all__ = [
    "IS_FOREIGN",
    "MADE_CHANGES",
    "NOW",
    "ChangeLog",
    "Listener",
    "MadeStatements",
    "NewsStatements",
    "PostgresChanges",
    "snapshot_of",
]
