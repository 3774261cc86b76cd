"""The jobs of others come to us in parts: what is due first, then the rest, which nobody waits for."""

import threading
from collections import Counter
from datetime import UTC, datetime
from itertools import count

import pytest

from agents_in_place import Place
from kit import PATIENCE, until
from schedule import Every, Missed
from scheduler import JobState, Overlap, Scheduler, current_run
from scheduler._fleet.shards import takeover
from scheduler._loop import long_work
from scheduler.stores import StoreUnavailable, shard_of
from scheduler.stores.postgres import PostgresStore

JOBS = 60

ALL = {"missed": Missed.ALL, "catch_up": 1_000, "overlap": Overlap.QUEUE}
"""No tick is passed over because its time has gone by."""


class Slow:
    """A sharing that gives the rest of a part when it is told to, as a server does that has many rows."""

    def __init__(self, sharing):
        self._sharing = sharing
        self.waits = self.is_broken = False
        self.goes_on = threading.Event()
        self.asked = 0

    def __getattr__(self, name):
        return getattr(self._sharing, name)

    def load(self, shards):
        self.asked += self.waits
        if self.waits:
            self.goes_on.wait()
        if self.is_broken:
            self.is_broken = False
            raise StoreUnavailable("it is not there for a moment")
        yield from self._sharing.load(shards)


class Claims:
    """A sharing whose first read of a part is given out when it is told to: what is written meanwhile is not in it."""

    def __init__(self, sharing):
        self._sharing = sharing
        self.holds = True
        self.has_read = threading.Event()
        self.goes_on = threading.Event()

    def __getattr__(self, name):
        return getattr(self._sharing, name)

    def take(self, shards, *args):
        taken = self._sharing.take(shards, *args)
        if self.holds and taken.jobs:
            self.holds, self.shards = False, shards
            self.has_read.set()
            self.goes_on.wait(PATIENCE)
        return taken


class SlowStore:
    """A shared store with such a sharing."""

    def __init__(self, store, kind=Slow):
        self._store = store
        self.sharing = kind(store.sharing)

    def __getattr__(self, name):
        return getattr(self._store, name)


class Fleet:
    """Agents, and what their tasks have noted: who began which tick of which job."""

    def __init__(self, dsn, schema):
        self.place = {"dsn": dsn, "schema": schema, "shared": True}
        self.begun = []

    def agent(self, name, store=None):
        s = Scheduler(store=store or self.store(name), poll="50ms")

        async def work():
            self.begun.append((name, current_run().job_id, current_run().due))

        s.register("work", work)
        for number in range(JOBS):
            s.add("work", Every("200ms"), id=f"job {number}", on_conflict="keep")
        return s

    def store(self, name):
        return PostgresStore(name=name, **self.place)

    async def until_all_run(self, *names):
        """Wait until each job has begun once more, and on these agents only."""
        since = len(self.begun)
        await until(lambda: len({job for name, job, _ in self.begun[since:] if name in names}) == JOBS)

    def twice(self):
        return [tick for tick, count in Counter((job, due) for _, job, due in self.begun).items() if count > 1]


@pytest.fixture
def fleet(postgres_server, postgres_schema, monkeypatch):
    monkeypatch.setattr(takeover, "MOST_AT_ONCE", 3)
    return Fleet(postgres_server.dsn, postgres_schema)


def jobs_of(s, name):
    return {job.id for job in s.jobs() if job.agent == name}


async def test_what_comes_meanwhile_does_not_wait_for_the_rest_of_an_earlier_part(fleet):
    """The next who went had none of its jobs begun before all of the one before had been read."""
    store = SlowStore(fleet.store("two"))
    slow = store.sharing
    async with fleet.agent("two", store) as two, fleet.agent("three") as three:
        async with fleet.agent("one"):
            await until(lambda: all(len(jobs_of(two, name)) > JOBS / 8 for name in ("one", "two", "three")))
            await fleet.until_all_run("one", "two", "three")
            slow.waits = True
        await until(lambda: slow.asked == 1)
        theirs, since = jobs_of(two, "three"), len(fleet.begun)
        three.stop()
        await until(lambda: theirs & {job for name, job, _ in fleet.begun[since:] if name == "two"})
        assert not slow.goes_on.is_set()
        slow.goes_on.set()
        await fleet.until_all_run("two")
    assert fleet.twice() == []


async def test_a_tick_that_was_left_at_a_stop_does_not_wait_for_the_rest(fleet):
    """Its job came with the rest, in the order of next starts: a tick of a daily job began only once all were read."""
    place, store = Place(fleet.place["dsn"], fleet.place["schema"]), SlowStore(fleet.store("two"))
    async with place.scheduler("two", store) as two:
        async with place.scheduler("one") as one:
            one.add_many("work", [(f"daily {number}", Every("1d")) for number in range(JOBS)])
            await until(lambda: all(len(jobs_of(two, name)) > JOBS / 4 for name in ("one", "two")))
            last = max((one.get(id) for id in jobs_of(one, "one")), key=lambda job: job.next_start)
            store.sharing.waits = True
            last.run_now()
            one.stop(grace=0)
        try:
            await until(lambda: place.runs)
        finally:
            store.sharing.goes_on.set()
        two.stop(grace=0)
    assert [(name, id) for name, id, _ in place.runs] == [("two", last.id)]


async def test_a_rest_that_could_not_be_read_is_read_again(fleet):
    """What is here by then goes on, and begins once."""
    store = SlowStore(fleet.store("two"))
    slow = store.sharing
    async with fleet.agent("two", store) as two:
        async with fleet.agent("one"):
            await until(lambda: len(jobs_of(two, "one")) > JOBS / 4)
            slow.waits = slow.is_broken = True
            slow.goes_on.set()
        await until(lambda: slow.asked > 1)
        await fleet.until_all_run("two")
        assert not slow.is_broken
    assert fleet.twice() == []


async def test_whatever_is_due_comes_between_the_jobs_of_a_rest(fleet, monkeypatch):
    """A hundred were taken up without a pause, and then one turn was left to all the others."""
    monkeypatch.setattr(long_work, "PIECE_S", 0.0)
    order, store = [], SlowStore(fleet.store("two"))
    async with fleet.agent("two", store) as two:
        async with fleet.agent("one"):
            await until(lambda: len(jobs_of(two, "one")) > JOBS / 4)
            store.sharing.waits = True
        theirs = len(order_of_take_overs(two, order))
        await until(lambda: store.sharing.asked)
        store.sharing.goes_on.set()
        await fleet.until_all_run("two")
    assert theirs == 0
    assert "job job job job job" not in " ".join(order)
    assert fleet.twice() == []


@pytest.mark.parametrize("adds", ["one", "two"])
async def test_a_job_that_is_stored_while_its_shard_is_read_starts_when_it_was_to(
    postgres_server, postgres_schema, adds
):
    """Its row came after the read began and before that ended, by us or by another agent: where it was to start was
    found in neither, and its first ticks were lost.
    """
    place = Place(postgres_server.dsn, postgres_schema)
    store = SlowStore(place.store("one", region="eu"), Claims)
    async with place.scheduler("one", store) as one, place.scheduler("two") as two:
        one.add("work", Every("50ms"), id="makes the shard", where="region=eu", place="here")
        await until(store.sharing.has_read.is_set)
        who = {"one": one, "two": two}[adds]
        who.add("work", Every("200ms"), id="late", where="region=eu", place="here", **ALL)
        await who.flush()
        (first,) = place.execute("SELECT to_timestamp(next_us / 1e6) FROM job_state WHERE job_id = 'late'").fetchone()
        await until(lambda: "late" in one and datetime.now(UTC) > first)
        assert place.runs == []  # the shard is not here yet
        store.sharing.goes_on.set()
        await place.all_run(["late"])
        one.stop(grace=0)
        two.stop(grace=0)
    assert next(due for _, id, due in place.runs if id == "late") == first


@pytest.mark.parametrize(
    ("wrong", "error", "mend"),
    [
        ({"schedule": "@newer 1h"}, "@newer 1h", "UPDATE job SET schedule = '@every 50ms' WHERE id = %s"),
        ({"task": "later"}, "no task 'later'", None),
    ],
    ids=["unreadable", "without its task"],
)
async def test_a_job_that_cannot_run_is_stored_while_its_shard_is_read(
    postgres_server, postgres_schema, wrong, error, mend
):
    """It is parked, as it is when it comes at any other time. The agent that read the shard ended: an older one did so
    with each job of a newer one that came just then.
    """
    place = Place(postgres_server.dsn, postgres_schema)
    store = SlowStore(place.store("one"), Claims)
    async with place.scheduler("two") as two:
        two.add_many("work", [(f"job {number}", Every("50ms")) for number in range(30)])
        await two.flush()
        async with place.scheduler("one", store) as one:
            await until(store.sharing.has_read.is_set)
            late = next(id for id in map("late {}".format, count()) if shard_of(id) in store.sharing.shards)
            row = {"id": late, "task": "work", "schedule": "@every 50ms"} | wrong
            place.execute("INSERT INTO job (id, task, schedule) VALUES (%s, %s, %s)", *row.values())
            await until(lambda: late in one)
            store.sharing.goes_on.set()
            await until(lambda: one.get(late).agent == "one" and "one" in place.runners())
            assert one.get(late).state is JobState.DISABLED
            assert error in one.get(late).error
            if mend is None:
                one.register("later", place.works_on("one"))
            else:
                place.execute(mend, late)
            await place.all_run([late])
            two.stop(grace=0)
            one.stop(grace=0)


def order_of_take_overs(s, order):
    """Note from now on in which order jobs are taken up, and calls come that each of them leaves to the loop."""
    reconciler, core = s._memory.reconciler, s._core
    take_over = reconciler.take_over

    def noted(*args):
        order.append("job")
        core.loop.call_soon(order.append, "call")
        take_over(*args)

    reconciler.take_over = noted
    return order
