"""Random rows in every table: no start fails, no other job notices, history answers, and all of it can be stored."""

import math
import sqlite3
from contextlib import closing, suppress
from functools import partial
from itertools import count
from typing import get_args, get_type_hints

import anyio
import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from psycopg import sql

from scheduler import Scheduler
from scheduler._journal.sanitize import MAX_NUMBER
from scheduler.stores import RUNNING, Changes, StoredJob, StoredPause, StoredState, StoredTick
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore
from scheduler.testing import FlakyStore
from timerqueue.testing import ManualClock

NOW = 1_767_225_600_000_000
KINDS = {"job": StoredJob, "job_state": StoredState, "tick": StoredTick, "pause": StoredPause}
SCHEMAS = count(1)
LEAST, LAST = -(2**63), 2**63 - 1
NUMBERS = [
    0, 1, -1, 2, 1_000, LAST, LEAST, LAST - 1, MAX_NUMBER, MAX_NUMBER + 1, 2**31, 2**53, NOW,
    NOW * 1_000, NOW // 1_000_000,
    NOW + 3_000_000, NOW - 86_400_000_000 * 400, 253_402_300_799_999_999, 253_402_300_800_000_000,
    -62_135_596_800_000_000, -62_135_596_800_000_001,
]  # fmt: skip
SCHEDULES = [
    "@every 1s", "@every 1us", "@every 100d", "@every 300000d", "@every 3000000d", "@after 1s", "@after 200000000d",
    "@after 3000000d", "* * * * *", "@at 2030-01-01T00:00Z", "@at 2020-01-01T00:00Z", "@at 9999-12-31T23:59:59Z",
    "@every 1s except (0 0 29 2 * for 300000d)", "@every 300000d from 9999-01-01T00:00Z", "@every 10s jitter=300000d",
    "@calendar 9000 years origin=2026-01-31T12:00:00+00:00 | @every 300000d", "H 2 * * *", "0 0 30 2 *", "[", "",
]  # fmt: skip
TEXTS = [
    "", "*", "tag:x", "tag:", "job:fine", "v", "fine", RUNNING, "succeeded", "failed", "crashed", "missed", "late",
    "Running", "[", "{", "[]", "{}", "[1]", "null", '{"attempt": 1000000000000000000}', '"\\ud800"', "[" * 5_000,
    "1" * 5_000, '{"timeout": 1e308}', '{"timeout": -1}', '{"retry": {"growth": "exponential", "base": "9e9d"}}',
    '{"delivery": "at_least_once"}', '{"needs": "nothing"}', '{"max_running": 1e99, "overlap": "allow"}', "x" * 10_000,
]  # fmt: skip
SCOPES = ["*x", "tag:x", "tag:", "job:fine", "", "tag:\u00fc"]
REALS = [0.0, -1.0, 1.5, 1e308, -1e308, math.inf, -math.inf, math.nan]


def column(kind, name, field, *, any_type):
    """Values of the type that the column has, or of any type at all."""
    hint = get_type_hints(kind)[field]
    types = set(get_args(hint) or (hint,))
    values = []
    if int in types:
        values.append(st.sampled_from(NUMBERS) | st.integers(LEAST, LAST))
    if float in types:
        values.append(st.sampled_from(REALS) | st.floats())
    if bool in types:
        values.append(st.booleans())
    if str in types:
        values.append(st.sampled_from(SCHEDULES if field == "schedule" else TEXTS))
    if type(None) in types:
        values.append(st.none())
    if any_type:
        values.append(st.sampled_from([None, b"x", "x", 1.5, -7, 10**30, [], {}, object, math.nan, True]))
    if name == "job" and field == "task":
        values = [st.sampled_from(["fine", "work", "none such"])]
    return st.one_of(values)


def row(name, *, any_type=False):
    """A row of a table. Keys are those of other jobs than the one that is not to notice."""
    kind = KINDS[name]
    fields = {field: column(kind, name, field, any_type=any_type) for field in kind._fields}
    fields[kind._fields[0]] = (
        st.sampled_from(["*x", "tag:x", "tag:", "job:fine", "", "tag:\u00fc"])
        if name == "pause"
        else st.sampled_from("vw")
    )
    return st.builds(kind, **fields)


def rows(*, any_type=False):
    """Some rows of each table."""
    tables = {name: st.lists(row(name, any_type=any_type), max_size=3) for name in KINDS}
    return st.fixed_dictionaries(tables)


class Immediate(FlakyStore):
    """Called on the loop, so that a clock that stands still does not wait for threads."""

    def __init__(self, store):
        super().__init__(store, is_immediate=True)


class Odd(Immediate):
    """A store of somebody else that gives out rows of its own besides."""

    def __init__(self, store, rows):
        super().__init__(store)
        self._rows = rows
        self._told = len(rows["job"]), len(rows["pause"])

    def load(self):
        states = {state.job_id: state for state in self._rows["job_state"]}
        mine = {job.id: (job, states.get(job.id)) for job in self._rows["job"]}
        rows = [[pair for pair in chunk if pair[0].id not in mine] for chunk in super().load()]
        return iter([*rows, list(mine.values())])

    def pauses(self):
        return super().pauses() + self._rows["pause"]

    def running(self):
        return super().running() + [tick for tick in self._rows["tick"] if tick.outcome == RUNNING]

    def owed(self):
        return super().owed() + [tick for tick in self._rows["tick"] if tick.owed is True]

    def history(self, job_id=None, **others):
        mine = [tick for tick in self._rows["tick"] if job_id in {None, tick.job_id}]
        return mine + super().history(job_id, **others)

    def changes(self):
        jobs, pauses = self._rows["job"][self._told[0] :], self._rows["pause"][self._told[1] :]
        self._told = len(self._rows["job"]), len(self._rows["pause"])
        return Changes({job.id: job for job in jobs}, {pause.scope: pause for pause in pauses})


class Memory:
    def __init__(self):
        self._store = MemoryStore()
        self._rows = {name: [] for name in KINDS}

    def store(self):
        return Odd(self._store.another(), self._rows)

    def put(self, table, row):
        self._rows[table].append(row)


class SQLite:
    def __init__(self, path):
        self._path = path

    def store(self):
        return Immediate(SQLiteStore(self._path, durability="fast"))

    def put(self, table, row):
        names, places = ", ".join(row._fields), ", ".join("?" * len(row))
        no_such_row = suppress(sqlite3.IntegrityError, UnicodeEncodeError)
        with closing(sqlite3.connect(self._path)) as connection, connection, no_such_row:
            connection.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})", row)


class Postgres:
    def __init__(self, dsn, schema):
        self._dsn, self._schema = dsn, schema

    def store(self):
        return Immediate(PostgresStore(self._dsn, schema=self._schema))

    def put(self, table, row):
        place = sql.Identifier(self._schema, table)
        names = sql.SQL(", ").join(map(sql.Identifier, row._fields))
        values = sql.SQL(", ").join(sql.Placeholder() * len(row))
        put = sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT DO NOTHING").format(place, names, values)
        with psycopg.connect(self._dsn) as connection:
            try:
                connection.execute(put, row)
            except psycopg.Error:
                connection.rollback()  # it takes no such row


async def live(place, clock, edits, *, runs):
    """Run a scheduler while the rows of `edits` come in, and ask it all that can be asked."""
    s = Scheduler(store=place.store(), clock=clock, blocked_after=None, crash_floor="1s")
    s.register("fine", lambda: None, inline=True)
    s.register("work", lambda: {"attempt": 1}, inline=True)
    async with s:
        fine = s.add("fine", "@every 1s", id="fine", on_conflict="update")
        await clock.travel(2)
        for table, some in edits.items():
            for each in some:
                place.put(table, each)
        s._memory.polling.poll()
        await clock.travel(3)
        await s.flush()
        assert s.statistics().store.trouble is None
        counts = fine.statistics()
        assert counts.runs == counts.successes >= runs + 4
        assert all(pause.since for pause in s.pauses())
        for job in s.jobs():
            job.statistics(), job.next_start, job.next_starts(3), repr(job), job.error
        records = await s.history(limit=10_000)
        assert sum(record.job_id == "fine" for record in records) >= 4
        assert await s.history("v", limit=10_000) == [record for record in records if record.job_id == "v"]
    return counts.runs


async def play(place, before, during):
    clock = ManualClock()
    runs = await live(place, clock, {}, runs=0)
    for table, some in before.items():
        for each in some:
            place.put(table, each)
    runs = await live(place, clock, during, runs=runs)
    await live(place, clock, {}, runs=runs)


NOTHING = {name: [] for name in KINDS}
FAR = 9 * 10**18
MEANT = [  # what was found by hand, each of which ended a start, the polling or the store for all jobs
    {"pause": [StoredPause("tag:x", "upgrade", NOW, NOW * 1_000)]},
    {"pause": [StoredPause("tag:x", "upgrade", FAR, None)]},
    {"job": [StoredJob("v", "work", "@every 1s")], "job_state": [StoredState("v", runs=LAST)]},
    {"job": [StoredJob("v", "work", "@every 1s")], "job_state": [StoredState("v", next_us=LEAST)]},
    {"job": [StoredJob("v", "work", "@every 1s")], "job_state": [StoredState("v", None, False, LEAST, LAST, LEAST)]},
    {"job": [StoredJob("v", "work", "@after 200000000d")]},
    {"job": [StoredJob("v", "work", "@every 200000000d | @hourly")]},
    {"tick": [StoredTick("v", FAR, 1, 1, "succeeded")]},
    {"tick": [StoredTick("v", 5, 1, 1, "no outcome")]},
    {"tick": [StoredTick("v", 5, 1, 1, "missed", reason="no reason")]},
    {"tick": [StoredTick("v", 5, 1, 1, "succeeded", result="{")]},
    {"tick": [StoredTick("v", 5, 1, 1, "succeeded", result='{"attempt": 1000000000000000000}')]},
    {"tick": [StoredTick("v", LEAST, 1, 1, RUNNING)]},
    {"job": [StoredJob("v", "work", "@every 1s")], "tick": [StoredTick("v", NOW, 1, 1, RUNNING, started_us=LAST)]},
    {"job": [StoredJob("v", "work", "@every 1s")], "tick": [StoredTick("v", NOW, LAST, 1, RUNNING)]},
]  # fmt: skip


@pytest.mark.parametrize("when", ["before the start", "while it runs"])
@pytest.mark.parametrize("number", range(len(MEANT)))
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_rows_that_make_no_sense_cost_nobody_else_anything(tmp_path, number, when):
    """Those that were found by hand: an instant in nanoseconds, counts that are full, outcomes that are none."""
    before, during = (MEANT[number], NOTHING) if when == "before the start" else (NOTHING, MEANT[number])
    await play(SQLite(tmp_path / "jobs.sqlite"), before, during)


def check(place, before, during):
    anyio.run(partial(play, place, before, during))


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(rows(any_type=True), rows(any_type=True))
@example(NOTHING, NOTHING)
def test_random_rows_in_memory(before, during):
    """Of any type: a store of somebody else may give anything."""
    check(Memory(), before, during)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(rows(), rows())
def test_random_rows_in_sqlite(tmp_path_factory, before, during):
    """All that its tables take."""
    check(SQLite(tmp_path_factory.mktemp("rows") / "jobs.sqlite"), before, during)


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(rows(), rows())
def test_random_rows_in_postgresql(postgres_server, before, during):
    """All that its tables take."""
    check(Postgres(postgres_server.dsn, f"random_rows_{next(SCHEMAS)}"), before, during)
