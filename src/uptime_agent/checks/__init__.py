"""The kinds of check, and one check of one target.

Knows no schedule, no store and no other target.
"""

from __future__ import annotations

from .contract import (
    MOST_ATTEMPTS,
    NO_PORT,
    Attempt,
    Check,
    CheckFailed,
    CheckResult,
    Clash,
    Detail,
    Finding,
    Hop,
    Kind,
    Status,
    Stopwatch,
    Trouble,
    judge,
)
from .holdups import Holdups
from .http import Exchange
from .inbox import Inbox, Said, Signal
from .kinds import BY_SCHEME, COMMON, KINDS, PORTS, Kinds, gathered, known_kinds
from .net import ANYWHERE, Budget, Family, Reach, Resolver, Unresolved, certificates, dialled, reach
from .push import LONGEST_LOG, PUSH, PushCheck, log_of
from .steps import STEPS, TIMEOUT_OF_ALWAYS, StepsCheck, StepsRun, prepared, read_steps
from .target_check import MOST_ADDRESSES, Mode, TargetCheck

__all__ = [
    "ANYWHERE",
    "BY_SCHEME",
    "COMMON",
    "KINDS",
    "LONGEST_LOG",
    "MOST_ADDRESSES",
    "MOST_ATTEMPTS",
    "NO_PORT",
    "PORTS",
    "PUSH",
    "STEPS",
    "TIMEOUT_OF_ALWAYS",
    "Attempt",
    "Budget",
    "Check",
    "CheckFailed",
    "CheckResult",
    "Clash",
    "Detail",
    "Exchange",
    "Family",
    "Finding",
    "Holdups",
    "Hop",
    "Inbox",
    "Kind",
    "Kinds",
    "Mode",
    "PushCheck",
    "Reach",
    "Resolver",
    "Said",
    "Signal",
    "Status",
    "StepsCheck",
    "StepsRun",
    "Stopwatch",
    "TargetCheck",
    "Trouble",
    "Unresolved",
    "certificates",
    "dialled",
    "gathered",
    "judge",
    "known_kinds",
    "log_of",
    "prepared",
    "reach",
    "read_steps",
]
