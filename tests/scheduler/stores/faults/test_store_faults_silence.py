"""A driver whose call does not return: the event loop does not notice, and the scheduler can be stopped."""

from threading import Event

import anyio
import pytest

from kit import PATIENCE, until
from scheduler import SchedulerError, StoreDown, StoreUp
from scheduler._commits import commits
from scheduler._memory import memory
from scheduler.stores import StoreUnusable


class SilentStore:
    """The store, but a commit does not return while it is told to be silent."""

    def __init__(self, store):
        self._store = store
        self.may_answer = Event()
        self.may_answer.set()

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, batch):
        self.may_answer.wait()
        return self._store.commit(batch)


@pytest.fixture(params=["sqlite"])
def place(place):
    return place


@pytest.fixture
def store(place, monkeypatch):
    monkeypatch.setattr(commits, "STALLED", 0.2)
    monkeypatch.setattr(memory, "LAST_WORDS", 0.3)
    store = SilentStore(place.store())
    yield store
    store.may_answer.set()


async def test_the_loop_goes_on_while_a_commit_does_not_return(place, store, ticking, work, events):
    """What is not stored keeps its times, what is stored waits for its marks, and all of it comes back."""
    beats = []

    async def beat():
        beats.append("now")

    async with ticking(store) as s:
        s.add(beat, "@every 20ms", durable=False)
        await until(lambda: len(work) >= 2)
        store.may_answer.clear()
        await until(lambda: events.of(StoreDown))
        assert "has not answered" in events.of(StoreDown)[0].error
        begun, count = len(work), len(beats)
        await until(lambda: len(beats) >= count + 10)
        assert len(work) == begun
        store.may_answer.set()
        await until(lambda: events.of(StoreUp))
        await until(lambda: len(work) >= begun + 3)
    work.check(place.content()[1])


async def test_a_scheduler_stops_though_a_commit_does_not_return(place, store, ticking, work, events):
    """After its last words have been waited for. What was not durable is a crash to the next one."""
    with anyio.fail_after(PATIENCE):
        async with ticking(store):
            await until(lambda: len(work) >= 2)
            store.may_answer.clear()
            await until(lambda: events.of(StoreDown))


async def test_a_store_that_answers_after_the_end_is_let_go(place, store, ticking, work, events):
    """The process may go on, and somebody in it may want the same file."""
    async with ticking(store):
        await until(lambda: len(work) >= 2)
        store.may_answer.clear()
        await until(lambda: events.of(StoreDown))
    other = place.store()
    with pytest.raises(StoreUnusable, match="in use"):
        other.open(0, print)
    store.may_answer.set()

    def is_free():
        try:
            other.open(0, print)
        except StoreUnusable:
            return False
        other.close()
        return True

    await until(is_free)


async def test_a_flush_that_waits_is_told_when_the_scheduler_stops(place, store, ticking, work, events):
    """Not left waiting for an answer that nobody will give."""
    told = []

    async def flush(scheduler):
        try:
            await scheduler.flush()
        except SchedulerError as exc:
            told.append(exc)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group, ticking(store) as s:
            await until(lambda: len(work) >= 2)
            store.may_answer.clear()
            s.get("ticks").update(timeout="1m")
            group.start_soon(flush, s)
            await until(lambda: events.of(StoreDown))
    assert told
