"""News of targets, as values: what the board tells its subscribers."""

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
    """A target has a new verdict, `target.last`. `is_change`: its status has changed."""

    target: TargetStatus
    is_change: bool


@frozen
class Remembered:
    """A target's status is as of an earlier process: `target.last`."""

    target: TargetStatus


@frozen
class GroupRecalled:
    """The status of a group as of earlier processes: `incident` is the open one; None: none. `since`: UTC seconds of
    its last known change, if any.
    """

    name: str
    incident: Incident | None
    since: float


@frozen
class LeftOut:
    """Checks of a target were missed."""

    target: TargetStatus
    missed: RunMissed


@frozen
class LeftOutBefore:
    """A number of checks of some targets were due while no agent ran. Not `is_exact`: there may be more."""

    checks: int
    targets: int
    is_exact: bool


@frozen
class NotChecked:
    """A target is no longer checked, for that reason."""

    name: str
    reason: str | None


@frozen
class CheckedAgain:
    """A target is checked again."""

    name: str


Trouble = ClockJumped | LoopBlocked | RunAbandoned | RunNotLaunched | JobParked | JobFinished
"""Events of the scheduler about the agent itself, passed on unchanged."""

Outage = ScopePaused | ScopeResumed | StoreDown | StoreUp | AgentJoined | AgentLost | SkewTooLarge | SkewEnded
"""Events of the scheduler that say why nothing, or not everything, is checked."""

News = (
    Checked | Opened | Closed | Remembered | GroupRecalled | LeftOut | LeftOutBefore | NotChecked | CheckedAgain
    | Trouble | Outage
)  # fmt: skip
