"""What has failed is tried again ever more seldom, and however often it has failed: there is always a next time."""

from hypothesis import given, strategies as st

from scheduler import Retry, Scheduler, StoreUp
from scheduler._values.retry import MAX_DELAY_S, Backoff
from scheduler.stores.memory import MemoryStore
from scheduler.testing.flaky import FlakyStore


@given(first=st.floats(1e-9, 1e9), longest=st.floats(1e-9, MAX_DELAY_S), failures=st.integers(1, 10**30))
def test_a_delay_has_its_bound_after_any_number_of_failures(first, longest, failures):
    """It never overflows, and never shrinks."""
    delay = Backoff(first, longest).after(failures)
    assert min(first, longest) <= delay <= longest


def test_delays_double_up_to_the_longest():
    """As commits wait."""
    assert [Backoff(0.05, 5.0).after(failures) for failures in (1, 2, 3, 8, 1_025, 10**9)] == [
        0.05, 0.1, 0.2, 5.0, 5.0, 5.0,
    ]  # fmt: skip


async def test_a_store_that_comes_back_after_two_thousand_failures_is_used_again(clock, events):
    """The 1,025th, some 85 minutes after the first, was the last: its delay did not fit into a float."""
    store, ran = FlakyStore(MemoryStore()), []
    s = Scheduler(store=store, clock=clock)
    s.listen(events)
    s.register("work", lambda: ran.append(clock.now()), inline=True)
    async with s:
        s.add("work", "@every 1m", id="job")
        await clock.travel(120)
        store.fail_on = range(store.counted + 1, 10**9)
        await clock.travel(2_000 * 5)
        assert store.counted > 2_000
        store.fail_on = ()
        before = len(ran)
        await clock.travel(3_600)
        assert len(ran) - before >= 60
        assert len(events.of(StoreUp)) == 1
        assert s.statistics().store.trouble is None


async def test_a_retry_without_a_cap_ends_each_run_and_is_stored(clock, events):
    """Its delay stops growing before it is later than what a store or a calendar can hold."""
    retry = Retry.exponential("1h", cap=None, past_next_start=True, jitter=0.0)
    assert retry.delay(10**6, random=0.0) == MAX_DELAY_S

    def fail():
        raise ValueError

    store = MemoryStore()
    s = Scheduler(store=store, clock=clock)
    s.listen(events)
    s.register("fail", fail, inline=True)
    async with s:
        job = s.add("fail", "@every 1m", id="job", retry=retry)
        await clock.travel(3_600)
        await s.flush()
        assert job.statistics().runs == len(events.outcomes()) == 60
        assert [record.outcome for record in await s.history()].count(None) == 0
        assert job.next_start is not None
