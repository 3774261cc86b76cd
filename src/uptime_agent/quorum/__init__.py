"""Quorum: which agents check a target, and how it stands by what each of them has found.

Offers `Quorum`, the rule of one target, `chosen` and `decide`, which are pure, and `Ballots`, over which agents that
share a store hear of each other's findings; and `Duties`, which only one of them does. Does not know how a target is
checked, what becomes of its status, or how agents come and go. Lives on the event loop; the store is asked in threads.
"""

from __future__ import annotations

from .ballots import Ballots
from .choice import chosen
from .decision import decide
from .duties import LOOKS_EVERY, Duties, duties_of
from .poll import Poll, poll_of
from .reading import FleetPlan, check_shared, read_fleet, read_quorum
from .rule import Quorum

__all__ = [
    "LOOKS_EVERY",
    "Ballots",
    "Duties",
    "FleetPlan",
    "Poll",
    "Quorum",
    "check_shared",
    "chosen",
    "decide",
    "duties_of",
    "poll_of",
    "read_fleet",
    "read_quorum",
]
