"""The checked targets, and what a new configuration does to them.

Adds and removes a target's status, check and job together. On the event loop.
"""

from __future__ import annotations

from .acting import act_deps, known_of, tell_acts
from .jobs import add_job, holds, is_new, is_ours
from .targets import CheckDeps, TargetChanges, Targets, check_of

__all__ = [
    "CheckDeps",
    "TargetChanges",
    "Targets",
    "act_deps",
    "add_job",
    "check_of",
    "holds",
    "is_new",
    "is_ours",
    "known_of",
    "tell_acts",
]
