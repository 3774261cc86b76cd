"""How targets stand: what is made of results, what history keeps of it, and how it is known again after a restart.

Offers `TargetStatus`, the task that checks a target and reports, and `Past`, which reads history. Does not know which
targets a file names, or who is shown how they stand. Lives on the event loop.
"""

from __future__ import annotations

from .recall import Past
from .report import told
from .status import TargetStatus, Verdict, verdict_of
from .task import TASK, CheckTask

__all__ = ["TASK", "CheckTask", "Past", "TargetStatus", "Verdict", "told", "verdict_of"]
