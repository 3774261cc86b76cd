"""The watchdog checks that every job has its next start, and that every run recorded as RUNNING really runs.

It mends and reports what is wrong, every five minutes and when asked. No limit and no long run delays it. On the loop's
thread.
"""

from .flaws import Flaw, flaw_of
from .records import AskWhatRuns, Records
from .watchdog import Watchdog

__all__ = ["AskWhatRuns", "Flaw", "Records", "Watchdog", "flaw_of"]
