"""Signals of push targets: taken by HTTP, judged and stored.

Lives on the event loop.
"""

from __future__ import annotations

from .handing import LIMIT, MAX_AT_ONCE
from .signals import Signals, first_deadline, push_server

__all__ = [
    "LIMIT",
    "MAX_AT_ONCE",
    "Signals",
    "first_deadline",
    "push_server",
]
