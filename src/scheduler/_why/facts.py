"""The facts behind an answer. A running scheduler and a reader of a store get the same answer from equal facts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from attrs import Factory, frozen

from schedule import Schedule

from .._shape import RunInfo, Waited
from .._values import Pause
from ..stores import StoredTick

RUN_GOES_ON: Final = "an earlier run of its job has not ended"

MOST_TICKS: Final = 64
"""Records before an instant that an answer may need: the run to which a tick gave way is among them."""


@frozen(kw_only=True)
class Standing:
    """How a job stands. `schedule`: bound to the job; None: it cannot be read. `fault`: why it cannot start.

    `left_out_from`: the first start that its pause leaves out. `rests_from`: the first start that its rest after a
    crash costs, until `rests_until`. `next_start`: its next start. `last_start`: that of its last run, from its counts.
    `most_late`: the most seconds by which a run was late, likewise. `shift`: how far the starts to come have moved from
    its schedule, because the clock was set. `elsewhere`: the name of the node that has it, if that is another one.
    """

    schedule: Schedule | None
    fault: str | None = None
    pauses: Sequence[Pause] = ()
    left_out_from: datetime | None = None
    rests_from: datetime | None = None
    rests_until: datetime | None = None
    next_start: datetime | None = None
    last_start: datetime | None = None
    most_late: float = 0.0
    shift: timedelta = timedelta(0)
    elsewhere: str | None = None


@frozen(kw_only=True)
class Facts:
    """The facts about a job around an instant.

    `standing` None: the job is gone. `ticks`: its records due up to that instant, latest first, at most MOST_TICKS.
    `has_later`: there are later ones. `runs`: its runs that go on or wait now. `waits`: what holds up waiting runs, by
    due instant. `is_kept`: a store keeps records. `epoch`: of the scheduler that is asked; None: a reader is asked.
    """

    job_id: str
    now: datetime
    standing: Standing | None
    ticks: Sequence[StoredTick] = ()
    has_later: bool = False
    runs: Sequence[RunInfo] = ()
    waits: dict[datetime, Waited] = Factory(dict)
    is_kept: bool = True
    epoch: int | None = None
