"""How jobs become durable.

Memory opens a store, reads it and closes it. Polling sees what others change. A Membership knows whether others have
the store too: NoFleet is that of a store that is not shared. The package sees everything below; nothing below sees it.
"""

from .history import Record, record_of
from .membership import Membership, Nobody, NoFleet, Others
from .memory import Memory
from .polling import Polling

__all__ = ["Membership", "Memory", "NoFleet", "Nobody", "Others", "Polling", "Record", "record_of"]
