"""What a late run waited for is kept: through each store, beside older records, and for readers without a scheduler."""

import sqlite3
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

from scheduler import Holder, Scheduler, Verdict, Waited, why_from
from scheduler._shape import waited_of, waited_text
from scheduler.stores import StoreUnusable
from scheduler.stores._postgres.schema.steps import MIGRATIONS
from scheduler.stores._sqlite import schema
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore
from timerqueue.testing import START


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def make_store(request, tmp_path):
    """Return what opens one place again and again."""
    if request.param == "memory":
        store = MemoryStore()
        return store.another
    if request.param == "sqlite":
        return lambda: SQLiteStore(tmp_path / "jobs.db")
    server = request.getfixturevalue("postgres_server")
    name = request.getfixturevalue("postgres_schema")
    return lambda: PostgresStore(server.dsn, schema=name)


async def until(clock, is_so):
    """Let time pass in small steps, and the store's thread work, until it is so."""
    await clock.travel_until(is_so, lambda: True)


async def lived(store, clock, look):
    """Let a late run wait for a slow one, pause a third job, then `look`. Return when the late run was due."""
    ended = []
    async with Scheduler(store=store, clock=clock, limits={"host": 1}) as s:

        @s.task("work")
        async def work(name, takes):
            await clock.sleep(takes)
            ended.append(name)

        s.add("work", "@every 1d", id="slow", args=["slow", 10], needs="host", start=START + timedelta(seconds=1))
        s.add("work", "@every 1d", id="late", args=["late", 0], needs="host", start=START + timedelta(seconds=2))
        paused = s.add("work", "@every 10s", id="paused", args=["paused", 0], tags=["disks"])
        await until(clock, lambda: "late" in ended)
        paused.pause("new disks")
        await s.flush()
        look()
        s.stop(grace=0)
    return START + timedelta(seconds=2)


async def test_a_reader_has_the_answer_without_a_scheduler(make_store, clock):
    """It opens nothing, and may look while another has the store."""
    reader, seen = make_store(), []
    due = await lived(make_store(), clock, lambda: seen.append(why_from(reader, "late", clock=clock)))
    assert [each.verdict for each in seen] == [Verdict.RAN_LATE]
    clock.advance(60)
    why = why_from(reader, "late", due, clock=clock)
    assert why.verdict is Verdict.RAN_LATE
    assert [(holder.job_id, holder.due) for holder in why.waited.holders] == [("slow", due - timedelta(seconds=1))]
    assert why_from(reader, "late", clock=clock).due == due
    paused = why_from(reader, "paused", clock=clock)
    assert (paused.verdict, paused.pause.reason) == (Verdict.PAUSED, "new disks")
    assert why_from(reader, "nobody", due, clock=clock).verdict is Verdict.GONE


def test_a_file_that_is_not_there_is_not_made(tmp_path):
    """The reader may have mistyped the path."""
    with pytest.raises(StoreUnusable, match="there is no database"):
        why_from(SQLiteStore(tmp_path / "none.db"), "a")
    assert not (tmp_path / "none.db").exists()


def test_records_of_the_version_before_have_waited_for_nothing(tmp_path):
    """A file of SQLite gets the column at the first start."""
    path = tmp_path / "jobs.db"
    with sqlite3.connect(path) as connection:
        for script in schema.MIGRATIONS[:3]:
            for statement in schema._statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 3")
        connection.execute("INSERT INTO tick (job_id, due_us, attempt, fence, outcome) VALUES ('a', 1, 1, 1, 'failed')")
    connection.close()
    store = SQLiteStore(path)
    store.open(0, lambda: None)
    (tick,) = store.history("a")
    store.close()
    assert (tick.outcome, tick.owed, tick.waited) == ("failed", False, None)


def test_tables_of_the_version_before_get_the_column(postgres_server, postgres_schema):
    """In PostgreSQL, too."""
    place = sql.Identifier(postgres_schema)
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(place))
        for script in MIGRATIONS[:-1]:
            connection.execute(script.format(schema=place))
        connection.execute(sql.SQL("UPDATE {}.meta SET version = %s").format(place), [len(MIGRATIONS) - 1])
        fields = "job_id, due_us, attempt, fence, outcome"
        insert = sql.SQL("INSERT INTO {}.tick ({}) VALUES ('a', 1, 1, 1, 'failed')")
        connection.execute(insert.format(place, sql.SQL(fields)))
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema)
    store.open(0, lambda: None)
    (tick,) = store.history("a")
    store.close()
    assert (tick.outcome, tick.waited) == ("failed", None)


NOTE = Waited(
    at=START,
    limit="host:\ud800\0",
    size=3.0,
    holders=(Holder(job_id="a" * 256, due=START, since=START, units=2),),
    others=4,
    elsewhere=1,
)


@pytest.mark.parametrize("note", [NOTE, Waited(at=START, run=START)])
def test_a_note_reads_back_as_it_was(note):
    """Any store can hold its text."""
    text = waited_text(note)
    assert text.isascii()
    assert waited_of(text) == note


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"held": 5}', "[" * 9_999, '{"at":1e99,"held":[]}'])
def test_a_note_that_makes_no_sense_is_none(text):
    """It may come from a hand."""
    assert waited_of(text) is None
