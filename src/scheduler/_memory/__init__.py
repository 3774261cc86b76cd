"""How jobs become durable.

Memory opens and closes a store. Polling reads changes.
"""

from .history import Record, record_of
from .membership import Membership, Nobody, NoFleet, Others
from .memory import Memory
from .polling import Polling

__all__ = ["Membership", "Memory", "NoFleet", "Nobody", "Others", "Polling", "Record", "record_of"]
