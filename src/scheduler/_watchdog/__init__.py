"""The watchdog sees that each job has the start that it is to have, and each run that is recorded somebody who runs it.

It looks at all jobs every five minutes and when it is asked to, mends what is wrong, and says so. While all else works
there is nothing to mend: it finds what a defect, or a hand in the store, has left behind. It is a timer of its own, so
no limit and no run that goes on keeps it from its work.

It does not know how a store is opened or written, and calls it through what it is given. It lives on the loop's thread.
"""

from .flaws import Flaw, flaw_of
from .records import AskWhatRuns, Records
from .watchdog import Watchdog

__all__ = ["AskWhatRuns", "Flaw", "Records", "Watchdog", "flaw_of"]
