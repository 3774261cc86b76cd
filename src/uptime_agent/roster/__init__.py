"""The roster: which targets are checked by now, and what becomes of them when the configuration changes.

Offers `Roster`, and what follows from the configuration of one target: its jobs, how late and how patient they are.
Does not know how a target is checked, what is made of that, or who shows it. Lives on the event loop.
"""

from __future__ import annotations

from .jobs import add_job, holds, is_new, is_ours
from .roster import Changes, Roster, Ways, check_of

__all__ = ["Changes", "Roster", "Ways", "add_job", "check_of", "holds", "is_new", "is_ours"]
