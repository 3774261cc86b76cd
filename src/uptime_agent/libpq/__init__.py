"""One connection to a PostgreSQL server, on the event loop of asyncio or trio, without a thread.

The first connection imports psycopg.
"""

from __future__ import annotations

from .connection import Connection
from .errors import Garbled, NoDriver, ServerError, ServerFull, Unreachable
from .leaving import gone
from .pipeline import Bytes, Query, QueryAnswer
from .server import APPLICATION, Server, auth_methods, read_dsn

__all__ = [
    "APPLICATION",
    "Bytes",
    "Connection",
    "Garbled",
    "NoDriver",
    "Query",
    "QueryAnswer",
    "Server",
    "ServerError",
    "ServerFull",
    "Unreachable",
    "auth_methods",
    "gone",
    "read_dsn",
]
