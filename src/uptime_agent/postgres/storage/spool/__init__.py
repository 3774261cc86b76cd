"""The spool: unstored batches wait on disk, within a bound.

Used on the writer's thread.
"""

from __future__ import annotations

from .segment import Counts
from .spool import Spool, SpoolFailed

__all__ = ["Counts", "Spool", "SpoolFailed"]
