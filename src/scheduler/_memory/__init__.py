"""How jobs become durable.

Memory opens a store, reads it and closes it. Polling sees what others change. Whether others have the store too is a
Membership's to know: NoFleet is that of a store which is ours alone. It sees everything below, and nothing below sees
it.
"""

from .history import Record, record_of
from .membership import Membership, Nobody, NoFleet, Others
from .memory import Memory
from .polling import Polling

__all__ = ["Membership", "Memory", "NoFleet", "Nobody", "Others", "Polling", "Record", "record_of"]
