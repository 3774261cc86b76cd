"""Changes of others: how we hear of them, and which rows they are.

It knows nodes only by their names in the log of changes.
"""

from .listener import Listener
from .log import ChangeLog
from .news import IS_FOREIGN, NOW, NewsStatements, snapshot_of

__all__ = ["IS_FOREIGN", "NOW", "ChangeLog", "Listener", "NewsStatements", "snapshot_of"]
