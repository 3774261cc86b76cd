"""Jobs of an APScheduler 3 become jobs of our store. All are judged first, and a repetition changes nothing.

Offers `WithJobs`, the command `import` with the word `apscheduler`. Runs no job and unpickles nothing: APScheduler
reads its own job stores. Runs on the main thread of a command.
"""

from __future__ import annotations

from .command import WithJobs

__all__ = ["WithJobs"]
