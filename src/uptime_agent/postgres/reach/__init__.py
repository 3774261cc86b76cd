"""Requests to one server, within its limit.

Lives on the event loop.
"""

from __future__ import annotations

from .breaker import Breaker
from .connections import Connections, NoRoom, Spawn
from .dialling import Dialler
from .reach import CUT_OFF, Reach
from .request import Request, Result, skipped

__all__ = ["CUT_OFF", "Breaker", "Connections", "Dialler", "NoRoom", "Reach", "Request", "Result", "Spawn", "skipped"]
