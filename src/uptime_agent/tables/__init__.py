"""PostgreSQL tables that name servers and probes. Their writers decide where the agent connects.

On the event loop; `make_tables` blocks.
"""

from __future__ import annotations

from .following import FoundRows, Tables, read_once
from .making import make_tables
from .place import POLL, TablesPlace
from .reading import TablesUnread
from .schema import SCHEMA, sql_of

__all__ = ["POLL", "SCHEMA", "FoundRows", "Tables", "TablesPlace", "TablesUnread", "make_tables", "read_once", "sql_of"]
