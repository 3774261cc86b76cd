from __future__ import annotations

import enum
from typing import Final


class Outcome(enum.Enum):
    """How a tick ended. Every past tick has exactly one."""

    SUCCEEDED = "succeeded"
    """The run and all its subtasks returned."""
    FAILED = "failed"
    """The run, or one of its subtasks, raised."""
    TIMED_OUT = "timed out"
    """The run exceeded its timeout: cancelled, or given up if it ignored that."""
    CANCELLED = "cancelled"
    """The run was stopped from outside: by remove, replace, or an orderly stop."""
    CRASHED = "crashed"
    """The process died during the run."""
    MISSED = "missed"
    """There was no run; a MissedReason says why."""

    __hash__ = object.__hash__  # members are single objects; enum's own hash is a Python call, made on every run

    @property
    def key(self) -> str:
        """The outcome in one word, for JSON, metrics and CSS: "timed_out"."""
        return self.name.lower()


# Until Python 3.12, looking up a member of an enum costs ten times as much as a name.
SUCCEEDED: Final = Outcome.SUCCEEDED


class MissedReason(enum.Enum):
    """Why a tick has no run."""

    LATE = "late"
    """Found too late: the loop was busy, the machine slept, its clock was set, no process ran."""
    OVERLAP = "overlap"
    """The previous run had not ended."""
    NO_ROOM = "no room"
    """This or an earlier tick's run still waited for a limit."""
    STORE = "store"
    """It had room, but the store had not recorded it yet."""
    PAUSED = "paused"
    """The job was paused or disabled when the tick was due or waited."""
    REMOVED = "removed"
    """The job was removed while the tick waited."""
    STOPPED = "stopped"
    """The scheduler stopped while the tick waited."""
    REPEATED = "repeated"
    """It has a record already: the clock was set back, or the process restarted."""
    SKIPPED = "skipped"
    """`Job.skip` was called."""
    AFTER_CRASH = "after crash"
    """The job rested, because its process had died during a run."""

    @property
    def key(self) -> str:
        """The reason in one word: "no_room"."""
        return self.name.lower()


class Cause(enum.Enum):
    TIMEOUT = "timeout"
    REMOVED = "removed"
    REPLACED = "replaced"
    PAUSED = "paused"
    STOPPED = "stopped"
    LOST = "lost"
    """Its node was taken for dead. Another node has the job and records the outcome."""
    LEASE = "lease"
    """Its node no longer knows whether it holds its units of the fleet."""
