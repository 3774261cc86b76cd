"""The way to one server: many questions about many databases under one limit of connections.

Offers `Reach`, which is asked `Request`s and ends each with a `Result`, and the parts that it is made of: `Connections`
under their limit, the `Breaker`, and what errors and rows mean. Requests for one database that come together go over
one connection in one pipeline. Knows no job, no schedule and no store. Lives on the event loop.
"""

from __future__ import annotations

from .breaker import Breaker
from .connections import Connections, NoRoom, Spawn
from .dialling import Dialler
from .reach import CUT_OFF, Reach
from .request import Request, Result, skipped

__all__ = ["CUT_OFF", "Breaker", "Connections", "Dialler", "NoRoom", "Reach", "Request", "Result", "Spawn", "skipped"]
