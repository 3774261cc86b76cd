"""The spool: what could not be stored waits on disk, in order, within a bound.

Offers `Spool`. Knows no store. Used by one thread at a time, the writer's.
"""

from __future__ import annotations

from .segment import Counts
from .spool import Spool, SpoolFailed

__all__ = ["Counts", "Spool", "SpoolFailed"]
