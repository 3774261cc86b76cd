"""What do others change? When we are told that there is something, and which rows it is.

It knows no agents but by the names in the log of changes.
"""

from .listener import Listener
from .log import ChangeLog
from .news import IS_FOREIGN, NOW, NewsStatements, snapshot_of

__all__ = ["IS_FOREIGN", "NOW", "ChangeLog", "Listener", "NewsStatements", "snapshot_of"]
