"""Who runs it? Work, the workers that run coroutines, and the tasks of each event loop.

Knows no limit but by the needs of work.
"""

from .habits import UNKNOWN
from .work import HELD, Bundle, Detached, Held, Host, Runner, Work, is_async
from .worker import Worker
from .workers import Workers

__all__ = ["HELD", "UNKNOWN", "Bundle", "Detached", "Held", "Host", "Runner", "Work", "Worker", "Workers", "is_async"]
