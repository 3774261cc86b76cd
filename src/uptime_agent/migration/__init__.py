"""Jobs of an APScheduler 3 become jobs of a store of ours: all are judged first, and a second time changes nothing.

Offers `WithJobs`, the command `import` with the word `apscheduler`. It runs no job, and unpickles nothing by itself: a
job store of APScheduler is read by APScheduler. Lives on the main thread of a command.
"""

from __future__ import annotations

from .command import WithJobs

__all__ = ["WithJobs"]
