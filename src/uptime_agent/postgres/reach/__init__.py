"""Requests to one server, within its limit.

Lives on the event loop.
"""

from __future__ import annotations

from .breaker import Breaker
from .connections import Connections, NoRoom, Spawn
from .dialling import Dialler
from .reach import CUT_OFF, ServerReach
from .request import ProbeRequest, Result, skipped

__all__ = [
    "CUT_OFF",
    "Breaker",
    "Connections",
    "Dialler",
    "NoRoom",
    "ProbeRequest",
    "Result",
    "ServerReach",
    "Spawn",
    "skipped",
]
