"""Signals of push targets: from whom one comes, what it says, and until when the next one has to come.

Offers `Signals`, which puts a signal into the inbox of its target, sets its deadline and has it judged and stored, and
`push_server`, which takes them by HTTP. Does not judge them: that is for the check of a target. Lives on the event
loop.
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
