"""Signals of push targets: their targets, their meaning, and the deadline of the next.

Offers `Signals` and `push_server`, which takes signals by HTTP. `Signals` puts a signal into its target's inbox, sets
the deadline and has it judged and stored. The check of a target judges them. Lives on the event loop.
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
