"""The watchdog checks that every job has its next start, and that every run recorded as RUNNING really runs.

It checks all jobs every five minutes and when asked, mends what is wrong, and reports it. While all else works there is
nothing to mend: it finds the effects of a defect, or of an edit by hand in the store. It is a timer of its own, so no
limit and no long run delays it.

It does not know how a store is opened or written: it calls the functions that it is given. Lives on the loop's thread.
"""

from .flaws import Flaw, flaw_of
from .records import AskWhatRuns, Records
from .watchdog import Watchdog

__all__ = ["AskWhatRuns", "Flaw", "Records", "Watchdog", "flaw_of"]
