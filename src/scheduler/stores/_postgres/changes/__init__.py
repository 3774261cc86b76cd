"""How a node hears of others' changes, and which rows they are.

Nodes are only names in the log.
"""

from .listener import Listener
from .log import ChangeLog
from .news import IS_FOREIGN, NOW, NewsStatements, snapshot_of

__all__ = ["IS_FOREIGN", "NOW", "ChangeLog", "Listener", "NewsStatements", "snapshot_of"]
