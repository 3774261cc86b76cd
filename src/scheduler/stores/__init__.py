"""Stores: the protocol `Store`, its errors, and the values that pass through it.

If you write a store of your own, you need these, and the suite in `scheduler.testing.stores`. The stores of this
package are `scheduler.stores.memory`, `.sqlite` and `.postgres`. Import the one that you use: it brings its driver, and
nothing here imports one. Nothing here knows a job, a run or a clock. `Store` says which thread calls its methods.
"""

from .._values import EVERYTHING
from ._executions import LIVE, PARTS, Audited, Decide, Executions, Mended, NotTaken, Standing, Taken
from ._rows import (
    AT_LEAST,
    DONE,
    LONGEST_RESULT,
    PENDING,
    RUNNING,
    SCHEDULED,
    SIZE_OF_TICK,
    SKIPPED,
    SUPERSEDED,
    TAKEN,
    Batch,
    Changes,
    Execution,
    JobPause,
    Placed,
    Planned,
    Receipt,
    Retention,
    StoredJob,
    StoredPause,
    StoredState,
    StoredTick,
    size_of,
)
from ._shards import SHARDS, Shares, rightful_owners, shard_of
from ._sharing import FORMAT, LEASE, Peer, Sharing, TakenShards, View
from ._store import Opened, Store, StoreError, StoreTakenOver, StoreUnavailable, StoreUnusable, Unstorable
from ._url import store_at
from ._voting import Vote, Voting

__all__ = [
    "AT_LEAST",
    "DONE",
    "EVERYTHING",
    "FORMAT",
    "LEASE",
    "LIVE",
    "LONGEST_RESULT",
    "PARTS",
    "PENDING",
    "RUNNING",
    "SCHEDULED",
    "SHARDS",
    "SIZE_OF_TICK",
    "SKIPPED",
    "SUPERSEDED",
    "TAKEN",
    "Audited",
    "Batch",
    "Changes",
    "Decide",
    "Execution",
    "Executions",
    "JobPause",
    "Mended",
    "NotTaken",
    "Opened",
    "Peer",
    "Placed",
    "Planned",
    "Receipt",
    "Retention",
    "Shares",
    "Sharing",
    "Standing",
    "Store",
    "StoreError",
    "StoreTakenOver",
    "StoreUnavailable",
    "StoreUnusable",
    "StoredJob",
    "StoredPause",
    "StoredState",
    "StoredTick",
    "Taken",
    "TakenShards",
    "Unstorable",
    "View",
    "Vote",
    "Voting",
    "rightful_owners",
    "shard_of",
    "size_of",
    "store_at",
]
