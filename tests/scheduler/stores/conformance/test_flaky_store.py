"""A FlakyStore fails where it is told to, and is the store it wraps everywhere else."""

import pytest

from scheduler.stores import Batch, Retention, StoredJob, StoreUnavailable, StoreUnusable
from scheduler.stores.memory import MemoryStore
from scheduler.testing import FlakyStore
from scheduler.testing.stores import StoreConformance


def put(job_id):
    """Return a batch with one job."""
    return Batch(jobs={job_id: StoredJob(job_id, "task", "@every 1m")})


def ids(store):
    """List the jobs of a store."""
    return sorted(job.id for rows in store.load() for job, _ in rows)


def flaky(**options):
    """Wrap a new store, and open it."""
    store = FlakyStore(MemoryStore(), **options)
    store.open(0, lambda: None)
    return store


def commit_each(store, *job_ids):
    """Tell which of the commits raised."""
    failed = []
    for job_id in job_ids:
        try:
            store.commit(put(job_id))
        except StoreUnavailable:
            failed.append(job_id)
    return failed


class TestFlakyStoreThatNeverFails(StoreConformance):
    """It is a store."""

    @pytest.fixture
    def make_store(self):
        memory = MemoryStore()
        return lambda: FlakyStore(memory.another())


@pytest.mark.parametrize(("fail_on", "failed"), [((), ""), (2, "b"), ({1, 3}, "ac"), (range(2, 99), "bcd")])
def test_it_fails_at_the_calls_it_was_told(fail_on, failed):
    """Counted from one."""
    store = flaky(fail_on=fail_on)
    assert commit_each(store, *"abcd") == list(failed)
    assert ids(store) == sorted(set("abcd") - set(failed))


def test_a_lost_answer_leaves_the_work_done():
    """The same call again finds it done."""
    store = flaky(fail_on=1, before_or_after="after")
    assert commit_each(store, "a", "b") == ["a"]
    assert ids(store) == ["a", "b"]


def test_it_raises_what_it_was_told():
    """One that does not get better, for example."""
    store = flaky(fail_on=1, error=StoreUnusable("replaced by a copy"))
    with pytest.raises(StoreUnusable, match="replaced by a copy"):
        store.commit(put("a"))


def test_calls_are_counted_over_the_chosen_verbs():
    """Others pass, and count for nothing but their own sum."""
    store = flaky(fail_on=2, verbs=("load", "prune"))
    assert ids(store) == []
    store.commit(put("a"))
    with pytest.raises(StoreUnavailable):
        store.prune(Retention(), 0)
    assert ids(store) == ["a"]
    assert store.counted == 3
    assert store.calls == {"open": 1, "load": 2, "commit": 1, "prune": 1}


@pytest.mark.parametrize("verb", ["changes", "commit", "history", "load", "open", "pauses", "prune", "running"])
def test_each_verb_but_close_can_fail(verb):
    """At the call itself, not when its result is read."""
    store = FlakyStore(MemoryStore(), fail_on=1, verbs=[verb])
    arguments = {"commit": [Batch()], "open": [0, lambda: None], "prune": [Retention(), 0]}.get(verb, [])
    if verb != "open":
        store.open(0, lambda: None)
    with pytest.raises(StoreUnavailable, match="told to fail"):
        getattr(store, verb)(*arguments)
    store.close()


def test_when_it_fails_may_be_changed_on_the_way():
    """Down for a while, and up again."""
    store = flaky(fail_on=range(1, 1_000))
    assert commit_each(store, "a", "b") == ["a", "b"]
    store.fail_on = ()
    assert commit_each(store, "a") == []


def test_a_verb_that_no_store_has_is_refused():
    """Its call would never come."""
    with pytest.raises(ValueError, match=r"\['close', 'save'\].*close never fails"):
        FlakyStore(MemoryStore(), verbs=("save", "close"))


def test_an_immediate_store_can_be_made_one_that_waits():
    """So that the way over a thread can be tested with it."""
    assert FlakyStore(MemoryStore()).is_immediate
    assert not FlakyStore(MemoryStore(), is_immediate=False).is_immediate
