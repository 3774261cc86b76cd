"""Signals of push targets: taken by HTTP, judged and stored.

Lives on the event loop.
"""

from __future__ import annotations

from .handing import LIMIT, MOST
from .signals import Signals, first_deadline, push_server

__all__ = [
    "LIMIT",
    "MOST",
    "Signals",
    "first_deadline",
    "push_server",
]
