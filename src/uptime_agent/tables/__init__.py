"""Tables of a PostgreSQL database that name servers and probes: read, followed, and made.

Offers `TablesPlace` (where they are), `Tables`, which follows them while the agent runs, `read_once`, and
`make_tables`. Probes no server. Lives on the event loop, over one connection; `make_tables` blocks. A role that may
write these tables decides where the agent connects to.
"""

from __future__ import annotations

from .following import Found, Tables, read_once
from .making import make_tables
from .place import POLL, TablesPlace
from .reading import TablesUnread
from .schema import SCHEMA, sql_of

__all__ = ["POLL", "SCHEMA", "Found", "Tables", "TablesPlace", "TablesUnread", "make_tables", "read_once", "sql_of"]
