"""The checked targets. On the event loop."""

from __future__ import annotations

from .jobs import add_job, holds, is_new, is_ours
from .roster import Changes, Roster, Ways, check_of

__all__ = ["Changes", "Roster", "Ways", "add_job", "check_of", "holds", "is_new", "is_ours"]
