"""Jobs of an APScheduler 3 become jobs of our store. A repetition changes nothing.

Runs no job and unpickles nothing. On a command's main thread.
"""

from __future__ import annotations

from .command import WithJobs

__all__ = ["WithJobs"]
