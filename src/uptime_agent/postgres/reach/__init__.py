"""The way to one server: many questions about many databases within one limit of connections.

Offers `Reach`, which ends each `Request` with a `Result`, and its parts: `Connections` under their limit, the
`Breaker`, and the meaning of errors and rows. Requests for one database that come together share a connection and a
pipeline. Knows no job, schedule or store. Lives on the event loop.
"""

from __future__ import annotations

from .breaker import Breaker
from .connections import Connections, NoRoom, Spawn
from .dialling import Dialler
from .reach import CUT_OFF, Reach
from .request import Request, Result, skipped

__all__ = ["CUT_OFF", "Breaker", "Connections", "Dialler", "NoRoom", "Reach", "Request", "Result", "Spawn", "skipped"]
