"""News from the board."""

from __future__ import annotations

from attrs import frozen

from scheduler import (
    AgentJoined,
    AgentLost,
    ClockJumped,
    JobFinished,
    JobParked,
    LoopBlocked,
    RunAbandoned,
    RunMissed,
    RunNotLaunched,
    ScopePaused,
    ScopeResumed,
    SkewEnded,
    SkewTooLarge,
    StoreDown,
    StoreUp,
)

from .incidents import Closed, Incident, Opened
from .status import TargetStatus


@frozen
class Checked:
    """A target has a verdict, `target.last`."""

    target: TargetStatus
    is_change: bool


@frozen
class Remembered:
    """`target.last` is of an earlier process."""

    target: TargetStatus


@frozen
class GroupRecalled:
    """A group's status of earlier processes. `since`: UTC seconds of its last change."""

    name: str
    incident: Incident | None
    since: float


@frozen
class ChecksLeftOut:
    """Checks were missed."""

    target: TargetStatus
    missed: RunMissed


@frozen
class LeftOutBefore:
    """Checks were due while no agent ran. Not `is_exact`: at least these."""

    checks: int
    targets: int
    is_exact: bool


@frozen
class NotChecked:
    """A target is no longer checked."""

    name: str
    reason: str | None


@frozen
class CheckedAgain:
    """A target is checked again."""

    name: str


Trouble = ClockJumped | LoopBlocked | RunAbandoned | RunNotLaunched | JobParked | JobFinished
"""Trouble of the agent itself."""

Outage = ScopePaused | ScopeResumed | StoreDown | StoreUp | AgentJoined | AgentLost | SkewTooLarge | SkewEnded
"""Why not everything is checked."""

News = (
    Checked | Opened | Closed | Remembered | GroupRecalled | ChecksLeftOut | LeftOutBefore | NotChecked | CheckedAgain
    | Trouble | Outage
)  # fmt: skip
