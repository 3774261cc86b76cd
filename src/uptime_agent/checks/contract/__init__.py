"""The contract of checks: what a check is, gets and finds.

Opens no connection.
"""

from __future__ import annotations

from .check import NO_PORT, Attempt, Check, Clash, Hop, Kind
from .result import MOST_ATTEMPTS, CheckResult, Detail, Finding, Status
from .stopwatch import Stopwatch
from .trouble import OUT_OF_DESCRIPTORS, CheckFailed, NotInTime, Trouble, judge, out_of_descriptors

__all__ = [
    "MOST_ATTEMPTS",
    "NO_PORT",
    "OUT_OF_DESCRIPTORS",
    "Attempt",
    "Check",
    "CheckFailed",
    "CheckResult",
    "Clash",
    "Detail",
    "Finding",
    "Hop",
    "Kind",
    "NotInTime",
    "Status",
    "Stopwatch",
    "Trouble",
    "judge",
    "out_of_descriptors",
]
