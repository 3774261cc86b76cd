"""Quorum: which nodes check a target, and its status by their findings.

Lives on the event loop; asks the store in threads.
"""

from __future__ import annotations

from .choice import chosen
from .decision import decide
from .duties import LOOKS_EVERY, Duties, duties_of
from .poll import Poll, poll_of
from .reading import FleetPlan, check_shared, read_fleet, read_quorum
from .rule import Quorum
from .vote_exchange import VoteExchange

__all__ = [
    "LOOKS_EVERY",
    "Duties",
    "FleetPlan",
    "Poll",
    "Quorum",
    "VoteExchange",
    "check_shared",
    "chosen",
    "decide",
    "duties_of",
    "poll_of",
    "read_fleet",
    "read_quorum",
]
