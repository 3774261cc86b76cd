"""News of targets, as values: what the board tells those who subscribe to it."""

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
    """A target has a new verdict, `target.last`. `is_change`: its status is another one than before."""

    target: TargetStatus
    is_change: bool


@frozen
class Remembered:
    """A target stands as it did when an earlier process last checked it: `target.last`."""

    target: TargetStatus


@frozen
class GroupRecalled:
    """A group of targets stands so by what earlier processes have left: `incident` is open; None: none is. `since`:
    UTC seconds at which that was last known to have changed, if it has.
    """

    name: str
    incident: Incident | None
    since: float


@frozen
class LeftOut:
    """Checks of a target did not take place."""

    target: TargetStatus
    missed: RunMissed


@frozen
class LeftOutBefore:
    """So many checks of so many targets were due while no agent ran. Not `is_exact`: there may have been more."""

    checks: int
    targets: int
    is_exact: bool


@frozen
class NotChecked:
    """A target is not checked from now on, for that reason."""

    name: str
    reason: str | None


@frozen
class CheckedAgain:
    """A target is checked again that was not."""

    name: str


Trouble = ClockJumped | LoopBlocked | RunAbandoned | RunNotLaunched | JobParked | JobFinished
"""Events of the scheduler that concern the agent itself, passed on as they are."""

Outage = ScopePaused | ScopeResumed | StoreDown | StoreUp | AgentJoined | AgentLost | SkewTooLarge | SkewEnded
"""Events of the scheduler that say why nothing, or not everything, is checked."""

News = (
    Checked | Opened | Closed | Remembered | GroupRecalled | LeftOut | LeftOutBefore | NotChecked | CheckedAgain
    | Trouble | Outage
)  # fmt: skip
