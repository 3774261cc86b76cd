"""What a store is: its verbs, its errors, and the values that pass through it.

Whoever writes a store of their own needs what is here, and the suite in `scheduler.testing.stores`. The stores that
there are stand in `memory`, `sqlite` and `postgres` beside this file: import the one that you use, because it brings
its driver. Nothing here knows a job, a run or a clock, and no driver is imported. The verbs are synchronous; which
thread calls them is said at `Store`.
"""

from .._values.pauses import EVERYTHING
from ._rows import (
    AT_LEAST,
    LONGEST_RESULT,
    RUNNING,
    SIZE_OF_TICK,
    Batch,
    Changes,
    JobPause,
    Receipt,
    Retention,
    StoredJob,
    StoredPause,
    StoredState,
    StoredTick,
    size_of,
)
from ._store import Opened, Store, StoreError, StoreTakenOver, StoreUnavailable, StoreUnusable, Unstorable

__all__ = [
    "AT_LEAST",
    "EVERYTHING",
    "LONGEST_RESULT",
    "RUNNING",
    "SIZE_OF_TICK",
    "Batch",
    "Changes",
    "JobPause",
    "Opened",
    "Receipt",
    "Retention",
    "Store",
    "StoreError",
    "StoreTakenOver",
    "StoreUnavailable",
    "StoreUnusable",
    "StoredJob",
    "StoredPause",
    "StoredState",
    "StoredTick",
    "Unstorable",
    "size_of",
]
