"""The status of targets, by verdicts and history.

Opens no connection. On the event loop.
"""

from __future__ import annotations

from .board import Board, Summary
from .flapping import TargetStanding, is_down, state_id
from .gate import Gate, OnlineTarget
from .incidents import FLAPPING, Closed, Incident, Opened
from .maintenance import Maintenance, PlannedMaintenance
from .news import (
    Checked,
    CheckedAgain,
    ChecksLeftOut,
    GroupRecalled,
    LeftOutBefore,
    News,
    NotChecked,
    Outage,
    Remembered,
    Trouble,
)
from .reading import restore, skipped_for, told, verdict_of_record
from .recall import Recall
from .recheck import Recheck
from .report import Skipped
from .status import Marked, Marks, Recalled, TargetStatus, Verdict, has_instants
from .task import TASK, CheckTask

__all__ = [
    "FLAPPING",
    "TASK",
    "Board",
    "CheckTask",
    "Checked",
    "CheckedAgain",
    "ChecksLeftOut",
    "Closed",
    "Gate",
    "GroupRecalled",
    "Incident",
    "LeftOutBefore",
    "Maintenance",
    "Marked",
    "Marks",
    "News",
    "NotChecked",
    "OnlineTarget",
    "Opened",
    "Outage",
    "PlannedMaintenance",
    "Recall",
    "Recalled",
    "Recheck",
    "Remembered",
    "Skipped",
    "Summary",
    "TargetStanding",
    "TargetStatus",
    "Trouble",
    "Verdict",
    "has_instants",
    "is_down",
    "restore",
    "skipped_for",
    "state_id",
    "told",
    "verdict_of_record",
]
