"""The answer to "why did it run late, or not at all?", as a value."""

from __future__ import annotations

import enum
from datetime import datetime

from attrs import frozen

from .._shape import Waited
from .._values import MissedReason, Outcome, Pause


class Verdict(enum.Enum):
    """The end of a due instant of a job."""

    RAN = "ran"
    """It ran, and began in time. `Why.outcome` says how it ended."""
    RAN_LATE = "ran late"
    """It ran, and began late."""
    RUNS = "runs"
    """It runs now."""
    WAITS = "waits"
    """It waits now: for room, for the store, or for an earlier run of its job."""
    CUT_OFF = "cut off"
    """A death or a stop ended it. `Why.owed` says whether it will be tried again."""
    OVERLAPPED = "overlapped"
    """It gave way to an earlier run of its job."""
    LEFT_OUT = "left out"
    """A pause left it out."""
    MISSED = "missed"
    """It did not run for another reason: see `Why.reason`."""
    NOT_DUE = "not due"
    """The schedule has no start there, or the next start was set to a later instant: see `Why.next`."""
    TO_COME = "to come"
    """It is still to come."""
    PAUSED = "paused"
    """A pause holds the job, so it will not start then."""
    RESTS = "rests"
    """The job rests after a crash, so it does not start then. `Why.until` says how long."""
    PARKED = "parked"
    """The job cannot start: its row, its task or its schedule is at fault."""
    GONE = "gone"
    """There is no such job any more, and no record of this instant."""
    PRUNED = "pruned"
    """It lies before the first record that is kept."""
    NOT_KNOWN = "not known"
    """Nothing is recorded of it, or not yet."""

    @property
    def key(self) -> str:
        """The verdict in one word, for JSON: "ran_late"."""
        return self.name.lower()


@frozen(kw_only=True)
class Why:
    """Why a job did or did not run at an instant. `str(why)` says it in English. Instants are aware, in UTC.

    - `at`: the instant asked about. `due`: the tick that the answer is about; None: there is none.
    - `outcome`, `attempt`, `started`, `ended`, `lateness` (seconds): of its last run. `owed`: it will be tried again.
    - `waited`: the full limit that it found, and the runs that held it. `run`: the due instant of the earlier run of
      its job for which it waited, or to which it gave way.
    - `reason`: why it has no run, and `decided`: when that was decided. `pause`: the present pause that holds the job.
      `until`: when its rest after a crash ends.
    - `node`: the epoch of the scheduler that ran it: how often its store had been opened then. `node_before`: that of
      the run before, if it was another. `error`: the error of the run, or why it cannot start. `because`: why it waits.
    - `previous`, `next`: the starts before and after `at`, by the present schedule. `text`: the answer in English.
    """

    job_id: str
    at: datetime
    verdict: Verdict
    due: datetime | None = None
    outcome: Outcome | None = None
    attempt: int | None = None
    started: datetime | None = None
    ended: datetime | None = None
    lateness: float | None = None
    owed: bool = False
    waited: Waited | None = None
    run: datetime | None = None
    reason: MissedReason | None = None
    decided: datetime | None = None
    pause: Pause | None = None
    until: datetime | None = None
    node: int | None = None
    node_before: int | None = None
    error: str | None = None
    because: str | None = None
    previous: datetime | None = None
    next: datetime | None = None
    text: str = ""

    def __str__(self) -> str:
        return self.text
