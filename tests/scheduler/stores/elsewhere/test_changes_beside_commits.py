"""A node reads what others have changed beside its commits: neither waits for the other, and the later change wins."""

import threading
from contextlib import asynccontextmanager

import psycopg
import pytest

from kit import PATIENCE, until
from scheduler import Scheduler
from scheduler.stores.postgres import PostgresStore


class Claim:
    """A call that waits until it is `let`. `is_waiting`: it does."""

    def __init__(self):
        self.is_waiting, self.let = threading.Event(), threading.Event()


class Claims(PostgresStore):
    """A store of which a call can be held: "before changes", which asks the server, "after changes" of which there are
    any, or "before done", the commit that says that a request is done.
    """

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self._holds = {}

    def hold(self, when):
        """Hold the next one."""
        self._holds[when] = hold = Claim()
        return hold

    def _wait_if_held(self, when):
        if hold := self._holds.pop(when, None):
            hold.is_waiting.set()
            assert hold.let.wait(PATIENCE)

    def changes(self):
        self._wait_if_held("before changes")
        found = super().changes()
        if found:
            self._wait_if_held("after changes")
        return found

    def commit(self, batch):
        if batch.done:
            self._wait_if_held("before done")
        return super().commit(batch)


class World:
    def __init__(self, server, schema):
        self.server, self.schema = server, schema
        self.runs = []

    @asynccontextmanager
    async def node(self, name="one", kind=Claims):
        self.store = kind(self.server.dsn, schema=self.schema, shared=True, name=name)
        async with Scheduler(store=self.store, poll="50ms") as s:
            s.register("work", self.work)
            yield s

    async def work(self):
        self.runs.append(1)

    def by_hand(self, text):
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            connection.execute(text.replace("{}", self.schema))


@pytest.fixture
def world(postgres_server, postgres_schema):
    return World(postgres_server, postgres_schema)


async def test_a_page_of_changes_keeps_no_commit_waiting(world):
    """A page of what others have changed took a far node longer than a commit, and starts waited for 40 of these."""
    async with world.node(kind=PostgresStore) as s:
        s.add("work", "@every 20ms", id="often")
        s.add("work", "@every 1h", id="job")
        await until(lambda: world.runs)
        with psycopg.connect(world.server.dsn) as lock, psycopg.connect(world.server.dsn, autocommit=True) as look:
            lock.execute(f"LOCK TABLE {world.schema}.pause IN ACCESS EXCLUSIVE MODE")
            world.by_hand("UPDATE {}.job SET schedule = '@every 2h' WHERE id = 'job'")
            waits = f"SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{world.schema}.pause'::regclass"
            await until(lambda: look.execute(waits).fetchone()[0])
            begun = len(world.runs)
            await until(lambda: len(world.runs) > begun + 5)
            assert look.execute(waits).fetchone()[0], "the page was not waited for so long"
            lock.rollback()
        await until(lambda: str(s.get("job").schedule) == "@every 2h")


@pytest.mark.parametrize("who", ["we", "others"])
async def test_of_a_row_that_we_write_while_a_page_is_on_its_way_the_later_change_is_followed(world, who):
    """The page may be older than what we wrote, or newer."""
    async with world.node() as s:
        s.add("work", "@every 1h", id="job")
        await s.flush()
        await change_while_a_page_is_on_its_way(
            world,
            s,
            who,
            ours=lambda: s.get("job").update(schedule="@every 3h"),
            theirs="UPDATE {}.job SET schedule = '@every 2h' WHERE id = 'job'",
        )
        wanted = "@every 3h" if who == "we" else "@every 2h"
        await until_all_is_followed(world, s)
        await until(lambda: str(s.get("job").schedule) == wanted)


@pytest.mark.parametrize("who", ["we", "others"])
async def test_of_a_pause_that_we_write_while_a_page_is_on_its_way_the_later_change_is_followed(world, who):
    """As above. Others lift it, and we pause until further notice."""
    async with world.node() as s:
        s.add("work", "@every 1h", id="job", tags={"shop"})
        s.pause("shop")
        await s.flush()
        await change_while_a_page_is_on_its_way(
            world,
            s,
            who,
            ours=lambda: s.pause("shop", reason="ours"),
            theirs="UPDATE {}.pause SET reason = 'theirs'",
        )
        await until_all_is_followed(world, s)
        await until(lambda: [pause.reason for pause in s.pauses()] == ["ours" if who == "we" else "theirs"])


async def change_while_a_page_is_on_its_way(world, s, who, *, ours, theirs):
    """Have others change something, and us, in that order or the other one, between a question and its answer."""
    if who == "we":
        page = world.store.hold("after changes")
        world.by_hand(theirs)
        await until(page.is_waiting.is_set)
        ours()
        await s.flush()
    else:
        page = world.store.hold("before changes")
        world.by_hand("INSERT INTO {}.job (id, task, schedule) VALUES ('asks', 'work', '@every 1h')")
        await until(page.is_waiting.is_set)
        ours()
        await s.flush()
        world.by_hand(theirs)
    page.let.set()


async def until_all_is_followed(world, s):
    """Wait until pages that come now have been followed."""
    world.by_hand("INSERT INTO {}.job (id, task, schedule) VALUES ('last', 'work', '@every 1h')")
    await until(lambda: "last" in {job.id for job in s.jobs()})


async def test_a_run_that_another_asks_for_is_carried_out_once_though_a_page_is_older_than_its_end(world):
    """The page is read before it is durable that the run is done, and answered after that."""
    async with world.node() as s:
        store = world.store
        async with world.node("two", PostgresStore) as other:
            for number in range(30):
                s.add("work", "@every 1d", id=f"job {number}")
            await until(lambda: {job.agent for job in other.jobs()} == {"one", "two"})
            id = next(job.id for job in s.jobs() if job.is_ours)
            done = store.hold("before done")
            asked = other.get(id).run_now()
            await until(done.is_waiting.is_set)
            page = store.hold("after changes")
            world.by_hand("INSERT INTO {}.job (id, task, schedule) VALUES ('asks', 'work', '@every 1h')")
            await until(page.is_waiting.is_set)
            done.let.set()
            assert (await asked).outcome.value == "succeeded"
            page.let.set()
            await until(lambda: "asks" in {job.id for job in s.jobs()})
            await s.flush()
            assert len(world.runs) == 1
