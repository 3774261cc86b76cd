"""Checks: the kinds that there are, and one check of one target from the lookup of its name to the result.

Offers `KINDS`, `TargetCheck`, which checks a target within its time, and the values that a result is made of. README.md
in this folder says how to add a kind. Does not know when a check is due, how its target stood before, or who is shown
what it found. Lives on the event loop.
"""

from __future__ import annotations

from .contract import MOST_ATTEMPTS, Check, CheckResult, Status
from .holdups import Holdups
from .kinds import BY_SCHEME, KINDS, PORTS
from .net import Family, Resolver
from .target_check import Mode, TargetCheck

__all__ = [
    "BY_SCHEME",
    "KINDS",
    "MOST_ATTEMPTS",
    "PORTS",
    "Check",
    "CheckResult",
    "Family",
    "Holdups",
    "Mode",
    "Resolver",
    "Status",
    "TargetCheck",
]
