"""How things become durable, and how rows become jobs: the life of one store under one scheduler.

The only folder that calls a store, one call after another, in the writer's thread; what it answers is worked off on
the loop. It sees everything below; nothing below sees it.
"""

from .history import Record, record_of
from .memory import Memory, memory_of

__all__ = [
    "Memory",
    "Record",
    "memory_of",
    "record_of",
]
