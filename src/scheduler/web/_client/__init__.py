"""A client of the control API: requests, refusals as errors, and jobs of another process.

Knows no ASGI, and no app: it needs only the standard library and this package.
"""

from .client import Client
from .errors import ApiError, NotAllowed, Unreachable
from .job import RemoteJob
from .reads import Summary
from .run import RemoteRun

__all__ = ["ApiError", "Client", "NotAllowed", "RemoteJob", "RemoteRun", "Summary", "Unreachable"]
