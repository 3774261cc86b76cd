"""PostgreSQL fleets: which probes are due on which servers and databases, what they find, and where it is kept.

Offers `Fleet` and its `PostgresTarget`s. Knows nothing of the configuration, of notifications and of displays. Queries
live on the event loop, storage on a thread of its own. psycopg is imported where it is used.
"""

from __future__ import annotations

from .fleet import Fleet
from .target import Choice, PostgresTarget

__all__ = ["Choice", "Fleet", "PostgresTarget"]
