"""One connection to a PostgreSQL server, driven on the event loop.

How is a server asked, given up, and left? Offers `Server` (where it is and who we are there), `Connection` with its
pipelines of `Query`s and their `Answer`s, and the errors of both. Knows no probe, no limit and no schedule. Lives on
the event loop, asyncio's or trio's, without a thread. psycopg is imported when a connection is made, so that the agent
runs without it.
"""

from __future__ import annotations

from .connection import Connection
from .errors import Garbled, NoDriver, ServerError, ServerFull, Unreachable
from .leaving import gone
from .pipeline import Answer, Bytes, Query
from .server import APPLICATION, Server, auth_methods, read_dsn

__all__ = [
    "APPLICATION",
    "Answer",
    "Bytes",
    "Connection",
    "Garbled",
    "NoDriver",
    "Query",
    "Server",
    "ServerError",
    "ServerFull",
    "Unreachable",
    "auth_methods",
    "gone",
    "read_dsn",
]
