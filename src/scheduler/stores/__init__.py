"""Stores: the protocol `Store`, its errors, and the values that pass through it.

If you write a store of your own, you need these, and the suite in `scheduler.testing.stores`. The stores of this
package are `scheduler.stores.memory`, `.sqlite` and `.postgres`. Import the one that you use: it brings its driver, and
nothing here imports one. Nothing here knows a job, a run or a clock. `Store` says which thread calls its methods.
"""

from .._values import EVERYTHING
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
from ._shards import SHARDS, Shares, rightful_owners, shard_of
from ._sharing import FORMAT, Peer, Sharing, View
from ._store import Opened, Store, StoreError, StoreTakenOver, StoreUnavailable, StoreUnusable, Unstorable
from ._url import store_at
from ._voting import Vote, Voting

__all__ = [
    "AT_LEAST",
    "EVERYTHING",
    "FORMAT",
    "LONGEST_RESULT",
    "RUNNING",
    "SHARDS",
    "SIZE_OF_TICK",
    "Batch",
    "Changes",
    "JobPause",
    "Opened",
    "Peer",
    "Receipt",
    "Retention",
    "Shares",
    "Sharing",
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
    "View",
    "Vote",
    "Voting",
    "rightful_owners",
    "shard_of",
    "size_of",
    "store_at",
]
