"""Judged jobs go into any store."""

import pytest

from scheduler.stores import Batch, StoredJob, StoreUnavailable, StoreUnusable
from scheduler.stores.memory import MemoryStore
from scheduler.testing import FlakyStore
from uptime_agent.migration.judging import Judged
from uptime_agent.migration.storing import stored


@pytest.mark.parametrize("verb", ["open", "load", "commit"])
def test_a_store_that_fails_halfway_is_closed(verb):
    """Whatever it was doing: it may hold a lock, or be known to a server as a node."""
    store = MemoryStore()
    flaky = FlakyStore(store, fail_on=1, verbs=(verb,), before_or_after="after")
    with pytest.raises(StoreUnavailable):
        stored(flaky, [Judged(id="a", row=StoredJob("a", "task", "@every 1h"))], 0)
    with pytest.raises(StoreUnusable, match="is closed"):
        store.commit(Batch())
