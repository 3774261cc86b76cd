"""How a tick ended."""

from __future__ import annotations

import enum
from typing import Final


class Outcome(enum.Enum):
    """Exactly one for every tick that has passed."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """It, or one of its subtasks, raised."""
    TIMED_OUT = "timed out"
    """It took longer than its timeout and was cancelled, or given up if it did not listen."""
    CANCELLED = "cancelled"
    """It was stopped from outside: by remove, replace or an orderly stop of the scheduler."""
    CRASHED = "crashed"
    """Its process died under it."""
    MISSED = "missed"
    """There was no run. The reason is a MissedReason."""

    __hash__ = object.__hash__  # members are single objects; enum's own hash is a Python call, made on every run


# Until Python 3.12 looking up a member of an enum costs ten times as much as a name: that of every run has one.
SUCCEEDED: Final = Outcome.SUCCEEDED


class MissedReason(enum.Enum):
    """Why a tick has no run."""

    LATE = "late"
    """It was found too late: the loop was busy, the machine slept, or its clock was set forward."""
    OVERLAP = "overlap"
    """The previous run had not ended."""
    NO_ROOM = "no room"
    """The run of an earlier tick, or its own, still waited for a limit."""
    STORE = "store"
    """It had room, and waited for the store to have it on record."""
    PAUSED = "paused"
    """The job was paused or disabled while the tick waited, for room or for the end of a run."""
    REMOVED = "removed"
    """The job was removed while the tick waited."""
    STOPPED = "stopped"
    """The scheduler stopped while the tick waited."""
    REPEATED = "repeated"
    """The tick has a record already, of a run before the clock was set back or before a restart."""
    AFTER_CRASH = "after crash"
    """The job waited because its process had died under it."""


class Cause(enum.Enum):
    """Who cancelled a run."""

    TIMEOUT = "timeout"
    REMOVED = "removed"
    REPLACED = "replaced"
    PAUSED = "paused"
    STOPPED = "stopped"
