"""The tables in PostgreSQL: who may make them, what is refused, and names that look like commands."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import sql

from kit import no_hint, wait_until
from scheduler.stores import (
    RUNNING,
    Batch,
    StoredChange,
    StoredJob,
    StoredState,
    StoredTick,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from scheduler.stores._postgres import connection
from scheduler.stores._postgres.changes import MADE_CHANGES
from scheduler.stores._postgres.schema import preparing
from scheduler.stores._postgres.schema.steps import KEYED, MIGRATIONS, VERSION
from scheduler.stores.postgres import PostgresStore

NASTY = [
    "'; DROP TABLE job; --",
    '"',
    "a'b",
    "{0}",
    "%s",
    "%(x)s",
    "\\",
    "_",
    "{",
    "NULL",
    "ü\N{PILE OF POO}",
    "a,b",
    " ",
]


@pytest.fixture
def store(postgres_server, postgres_schema):
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema)
    yield store
    store.close()


def jobs_of(store):
    return [job.id for page in store.load() for job, _ in page]


def test_nothing_connects_before_open():
    """A program can be configured while its database is down."""
    store = PostgresStore("host=/nowhere user=me password=secret dbname=db")
    assert "secret" not in repr(store)
    assert "/nowhere" in repr(store)
    with pytest.raises(StoreUnavailable, match="/nowhere"):
        store.open(0, no_hint)


@pytest.mark.parametrize("dsn", ["postgresql://me:secret@host/db?nonsense=1", "password=secret host", "secret"])
def test_a_bad_dsn_is_refused_without_showing_the_password(dsn):
    """The driver's own message would show a part of it."""
    with pytest.raises(ValueError, match="libpq") as caught:
        PostgresStore(dsn)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("schema", ["", "a\0b", "x" * 64, "ü" * 32, "a%b", "\ud800"])
def test_a_name_that_no_schema_can_have_is_refused(schema):
    """PostgreSQL would cut a long one off and find another schema."""
    with pytest.raises(ValueError, match="is not a name for a schema"):
        PostgresStore("", schema=schema)


def test_a_store_that_is_not_open_says_so(store):
    """Before open, and after close."""
    with pytest.raises(StoreUnusable, match="not open"):
        store.commit(Batch())
    store.open(0, no_hint)
    store.close()
    store.close()
    with pytest.raises(StoreUnusable, match="not open"):
        store.changes()


def test_jobs_are_read_without_opening_the_store(store):
    """As a command does when no agent answers. A node may have it open."""
    store.open(0, no_hint)
    jobs = {f"job-{number:04}": StoredJob(f"job-{number:04}", "app.task", "@daily") for number in range(1_500)}
    store.commit(Batch(jobs=jobs, states={"job-0007": StoredState("job-0007", next_us=5)}))
    expected = {job.id: (job, state) for page in store.load() for job, state in page}
    visitor = PostgresStore(store._dsn, schema=store._schema)
    for reader in (visitor, store):
        assert {job.id: (job, state) for job, state in reader.read_jobs()} == expected
    visitor.close()
    store.close()
    assert len(visitor.read_jobs()) == len(expected) == 1_500


def test_a_human_needs_three_columns_only(store, by_hand):
    """The others have defaults."""
    store.open(0, no_hint)
    by_hand("INSERT INTO {}.job (id, task, schedule) VALUES ('a', 'app.task', '@daily')")
    assert list(store.load()) == [[(StoredJob("a", "app.task", "@daily"), None)]]


def test_many_may_open_at_once_where_there_is_nothing(postgres_server, postgres_schema):
    """One makes the tables, the others find them."""
    stores = [PostgresStore(postgres_server.dsn, schema=postgres_schema) for _ in range(4)]
    with ThreadPoolExecutor() as threads:
        opened = list(threads.map(lambda store: store.open(0, no_hint), stores))
    assert sorted(each.epoch for each in opened) == [1, 2, 3, 4]
    assert len({each.instance for each in opened}) == 1
    for each in stores:
        each.close()


def test_what_the_first_version_owed_is_owed(store, by_hand, postgres_server, postgres_schema):
    """There it stood in the place for a retry, of a tick that a death or a stop had ended."""
    by_hand("CREATE SCHEMA {}")
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute(MIGRATIONS[0].format(schema=sql.Identifier(postgres_schema)))
    by_hand("UPDATE {}.meta SET version = 1")
    by_hand("INSERT INTO {}.job (id, task, schedule) SELECT unnest(array['a', 'b', 'c']), 't', '@daily'")
    zeros = ", ".join(["0"] * 12)
    by_hand(
        "INSERT INTO {}.job_state (job_id, retry_due_us, retry_attempt, retry_at_us, next_by_hand, runs, successes,"
        " failures, timeouts, cancellations, missed, consecutive_failures, consecutive_crashes, total_duration,"
        " total_duration_failures, lateness_sum, lateness_max) VALUES "
        + ", ".join(f"('{id}', 1, {attempt}, 9, false, {zeros})" for id, attempt in (("a", 2), ("b", 3), ("c", 2)))
    )
    by_hand(
        "INSERT INTO {}.tick (job_id, due_us, attempt, fence, outcome) VALUES"
        " ('a', 1, 1, 1, 'crashed'), ('a', 2, 1, 2, 'crashed'), ('b', 1, 2, 3, 'cancelled'), ('c', 1, 1, 4, 'failed')"
    )
    store.open(0, no_hint)
    assert sorted((tick.job_id, tick.due_us) for tick in store.owed()) == [("a", 1), ("b", 1)]


def test_tables_are_brought_up_to_date_beside_an_agent_that_commits(store, by_hand, postgres_server, postgres_schema):
    """It waits for that commit before it locks anything. They had what each other waited for, and one of them lost."""
    by_hand("CREATE SCHEMA {}")
    with psycopg.connect(postgres_server.dsn) as older:
        older.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(postgres_schema)))
        older.execute(MIGRATIONS[0].format(schema=sql.Identifier(postgres_schema)))
        older.execute("UPDATE meta SET version = 1")
        older.execute("INSERT INTO agent (epoch, opened_us) VALUES (1, 0)")
        older.commit()
        older.execute("SELECT FROM agent FOR NO KEY UPDATE")
        with ThreadPoolExecutor(1) as threads:
            opened = threads.submit(store.open, 0, no_hint)
            waits = "SELECT FROM pg_locks WHERE NOT granted AND relation = '{}.agent'::regclass"
            wait_until(lambda: opened.done() or by_hand(waits).rowcount)
            assert by_hand("SELECT FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock'").rowcount == 0
            older.execute("LOCK TABLE job, job_state, tick IN ROW EXCLUSIVE MODE NOWAIT")
            older.commit()
            if isinstance(opened.exception(), StoreUnavailable):  # it has waited for too long
                opened = threads.submit(store.open, 0, no_hint)
            assert opened.result().epoch == 1


def test_of_the_second_version_what_may_be_a_lower_bound_is_one(store, by_hand, postgres_server, postgres_schema):
    """It did not keep which counts of missed ticks are: a record says so, or the schedule is counted up to 32."""
    by_hand("CREATE SCHEMA {}")
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        for script in MIGRATIONS[:2]:
            connection.execute(script.format(schema=sql.Identifier(postgres_schema)))
    by_hand("UPDATE {}.meta SET version = 2")
    by_hand(
        "INSERT INTO {}.job (id, task, schedule) VALUES ('few', 't', '@daily | @hourly'),"
        " ('many', 't', '@daily | @hourly'), ('known', 't', '@daily'),"
        " ('counted', 't', '@daily'), ('cut', 't', '@hourly EXCEPT (@daily for 2h)')"
    )
    zeros = ", ".join(["0"] * 11)
    by_hand(
        "INSERT INTO {}.job_state (job_id, missed, next_by_hand, runs, successes, failures, timeouts, cancellations,"
        " consecutive_failures, consecutive_crashes, total_duration, total_duration_failures, lateness_sum,"
        " lateness_max) VALUES "
        + ", ".join(
            f"('{id}', {missed}, false, {zeros})"
            for id, missed in (("few", 31), ("many", 32), ("known", 101), ("counted", 99), ("cut", 32))
        )
    )
    by_hand(
        "INSERT INTO {}.tick (job_id, due_us, attempt, fence, outcome, error) VALUES"
        " ('known', 1, 1, 1, 'missed', 'at least'), ('counted', 1, 1, 2, 'missed', NULL)"
    )
    store.open(0, no_hint)
    states = {job.id: state.missed_is_exact for page in store.load() for job, state in page}
    assert states == {"few": True, "many": False, "known": False, "counted": True, "cut": False}


def test_a_store_of_the_version_before_keeps_changes_from_now_on(store, by_hand, postgres_server, postgres_schema):
    """It did not know who changed what. Its jobs stay."""
    by_hand("CREATE SCHEMA {}")
    before = MIGRATIONS[: MIGRATIONS.index(sql.SQL(MADE_CHANGES))]
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        for script in before:
            connection.execute(script.format(schema=sql.Identifier(postgres_schema)))
    by_hand("UPDATE {}.meta SET version = %s", len(before))
    by_hand("INSERT INTO {}.job (id, task, schedule) VALUES ('a', 't', '@daily')")
    store.open(0, no_hint)
    assert jobs_of(store) == ["a"]
    change = StoredChange(1, 5, "pause", "job:a", "ann")
    store.commit(Batch(made=[change]))
    assert store.made_changes.read() == [change]
    store.close()
    assert store.made_changes.read() == [change]


def test_every_table_has_a_primary_key(store, by_hand, postgres_schema):
    """Where a publication holds all tables, PostgreSQL changes and deletes no row of a table without one."""
    store.open(0, no_hint)
    tables = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = %s::regnamespace"
    keyed = " AND EXISTS (SELECT FROM pg_index WHERE indrelid = pg_class.oid AND indisprimary)"
    every, with_key = (set(by_hand(text, postgres_schema)) for text in (tables, tables + keyed))
    assert ("change",) in every
    assert every == with_key


def test_a_key_for_the_log_of_changes_loses_none_that_an_agent_has_not_seen(
    store, by_hand, postgres_server, postgres_schema
):
    """The table is written anew, and an agent that had begun to read finds it empty. What is an hour old goes."""
    by_hand("CREATE SCHEMA {}")
    before = MIGRATIONS[: MIGRATIONS.index(sql.SQL(KEYED))]
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        for script in before:
            connection.execute(script.format(schema=sql.Identifier(postgres_schema)))
    by_hand("UPDATE {}.meta SET version = %s", len(before))
    log = "INSERT INTO {}.change (\"table\", key, made_at) VALUES ('job', %s, now() - %s::interval)"
    for key, age in (("old", "2 hours"), ("seen", "5 minutes"), ("new", "0")):
        by_hand(log, key, age)
    with psycopg.connect(postgres_server.dsn) as older:
        older.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        (snapshot,) = older.execute("SELECT pg_current_snapshot()::text").fetchone()
        store.open(0, no_hint)
        found = older.execute(sql.SQL("SELECT key FROM {}.change").format(sql.Identifier(postgres_schema)))
        assert found.fetchall() == []
    assert by_hand("SELECT key FROM {}.change ORDER BY made_at").fetchall() == [("seen",), ("new",)]
    news = "SELECT key FROM {}.change WHERE NOT pg_visible_in_snapshot(xid, %s::pg_snapshot)"
    assert by_hand(news, snapshot).fetchall() == [("new",)]


def test_a_newer_version_is_refused(store, by_hand):
    """It may mean what this program does not know."""
    store.open(0, no_hint)
    by_hand("UPDATE {}.meta SET version = version + 1")
    with pytest.raises(StoreUnusable, match=f"version {VERSION + 1}.*update timerqueue"):
        store.open(0, no_hint)


@pytest.mark.parametrize("table", ["job (x int)", "meta (x int)", "meta (version int, program text)"])
def test_tables_of_another_program_are_refused(store, by_hand, table):
    """And left as they are."""
    by_hand("CREATE SCHEMA {}")
    by_hand("CREATE TABLE {}." + table)
    with pytest.raises(StoreUnusable, match="another program"):
        store.open(0, no_hint)
    assert by_hand("SELECT count(*) FROM pg_class WHERE relnamespace = '{}'::regnamespace").fetchone() == (1,)


def test_an_empty_schema_is_filled(store, by_hand):
    """Somebody with more rights has made it for us."""
    by_hand("CREATE SCHEMA {}")
    assert store.open(0, no_hint).epoch == 1


def test_a_missing_table_is_no_matter_of_waiting(store, by_hand):
    """Somebody has dropped it."""
    store.open(0, no_hint)
    by_hand("DROP TABLE {}.tick")
    with pytest.raises(StoreUnusable, match="tick"):
        store.commit(Batch(marks=[StoredTick("a", 0, 1, 1, RUNNING)]))


@pytest.fixture
def role(by_hand, postgres_schema):
    """A role that may use what there is, and make nothing."""
    name = sql.Identifier(f"worker of {postgres_schema}")
    by_hand("CREATE ROLE " + name.as_string() + " LOGIN")
    yield name.as_string()
    by_hand("DROP OWNED BY " + name.as_string())
    by_hand("DROP ROLE " + name.as_string())


def test_a_role_without_rights_to_make_tables_can_work(store, postgres_server, postgres_schema, by_hand, role):
    """Migrations are somebody else's."""
    worker = PostgresStore(f"{postgres_server.dsn} user='worker of {postgres_schema}'", schema=postgres_schema)
    with pytest.raises(StoreUnusable, match="may not make the tables"):
        worker.open(0, no_hint)
    store.open(0, no_hint)
    with pytest.raises(StoreUnusable, match="USAGE on the schema"):
        worker.open(0, no_hint)
    by_hand("GRANT USAGE ON SCHEMA {} TO " + role)
    by_hand("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {} TO " + role)
    assert worker.open(0, no_hint).epoch == 2
    tick = StoredTick("a", 0, 1, 1, RUNNING)
    worker.commit(Batch(jobs={"a": StoredJob("a", "t", "s")}, states={"a": StoredState("a")}, marks=[tick]))
    assert worker.history() == [tick]
    worker.close()


@pytest.mark.parametrize("text", NASTY)
def test_texts_that_look_like_commands_are_texts(store, text):
    """In ids, scopes, errors; and in questions."""
    store.open(0, no_hint)
    job = StoredJob(text, text, text, text, text, text, text, text, text)
    tick = StoredTick(text, 0, 1, 1, "failed", error=text, trace=text)
    batch = Batch(jobs={text: job}, states={text: StoredState(text, last_error=text)}, ended=[tick])
    assert store.commit(batch) == store.commit(batch)
    assert list(store.load()) == [[(job, StoredState(text, last_error=text))]]
    assert store.history(text) == [tick]
    assert store.history("%") == []
    store.commit(Batch(jobs={text: None}))
    assert jobs_of(store) == []


@pytest.mark.parametrize("name", ['a"; DROP SCHEMA public; --', "A b", "ü.{x}", "select", "'", "\\"])
def test_any_name_of_a_schema_is_quoted(postgres_server, name):
    """In statements, in what the triggers do, and as the channel of notifications."""
    store = PostgresStore(postgres_server.dsn, schema=name)
    store.open(0, no_hint)
    store.commit(Batch(jobs={"a": StoredJob("a", "t", "s")}, ended=[StoredTick("a", 0, 1, 1, "failed")]))
    store.changes()
    assert jobs_of(store) == ["a"]
    store.close()


def test_what_postgresql_cannot_hold_is_replaced(store):
    """NUL and halves of surrogate pairs come out of programs that fail; the rest of the batch is not lost by them."""
    store.open(0, no_hint)
    bad = StoredTick("a", 0, 1, 1, "failed", error="a\0b", trace="x\ud800y")
    store.commit(Batch(ended=[bad, StoredTick("b", 0, 1, 2, "failed", error="\N{PILE OF POO}")]))
    assert {tick.job_id: (tick.error, tick.trace) for tick in store.history()} == {
        "a": ("a\ufffdb", "x\ufffdy"),
        "b": ("\N{PILE OF POO}", None),
    }


def test_a_copy_in_its_place_is_not_taken_for_it(store, by_hand):
    """Another instance, or an older state of the same one."""
    store.open(0, no_hint)
    by_hand("UPDATE {}.meta SET instance = 'another'")
    for verb in (lambda: store.commit(Batch()), store.changes):
        with pytest.raises(StoreUnusable, match="replaced"):
            verb()


def test_without_the_driver_it_says_how_to_get_it():
    """`import` alone would name a module that nobody has heard of."""
    script = "import sys; sys.modules['psycopg'] = None; import scheduler.stores.postgres"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "pip install timerqueue[postgres]" in done.stderr


def test_a_step_that_brings_the_tables_up_to_date_may_take_longer_than_other_statements(store, monkeypatch):
    """One that rewrites a million jobs was broken off after five seconds, at each start anew. What comes after it may
    not.
    """
    deadline = sql.SQL("SELECT set_config('statement_timeout', '100ms', true), %s")
    slow = sql.SQL("SELECT pg_sleep(0.4)")
    monkeypatch.setattr(connection, "SETTINGS", deadline)
    monkeypatch.setattr(connection.StoreConnection, "patience", 3)
    monkeypatch.setattr(preparing, "MIGRATIONS", (*MIGRATIONS, slow))
    monkeypatch.setattr(preparing, "VERSION", VERSION + 1)
    store.open(0, no_hint)
    with pytest.raises(StoreUnavailable), store.transaction() as opened:
        opened.execute(slow)


@pytest.fixture
def newer(monkeypatch):
    """Add these steps to those that bring the tables up to date."""

    def newer(*steps):
        monkeypatch.setattr(preparing, "MIGRATIONS", (*MIGRATIONS, *map(sql.SQL, steps)))
        monkeypatch.setattr(preparing, "VERSION", VERSION + len(steps))

    return newer


def test_leases_are_renewed_while_a_step_takes_long(shared_store, newer, by_hand):
    """Commits wait for it. Its lock kept the renewals waiting, too, and whoever renewed first buried all others."""
    one, two = shared_store("one"), shared_store("two")
    one.open(0, no_hint)
    newer(
        "DO $$ BEGIN WHILE NOT pg_try_advisory_xact_lock(5) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$", "SELECT 1"
    )
    with ThreadPoolExecutor(1) as threads:
        by_hand("SELECT pg_advisory_lock(5)")
        opened = threads.submit(two.open, 0, no_hint)
        step = "SELECT FROM pg_locks WHERE granted AND mode = 'ExclusiveLock' AND relation = '{}.agent'::regclass"
        wait_until(lambda: by_hand(step).rowcount)
        view = one.sharing.renew()
        assert [peer.name for peer in view.peers] == ["one"]
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            one.commit(Batch(jobs={"a": StoredJob("a", "t", "@daily")}))
        by_hand("SELECT pg_advisory_unlock(5)")
        opened.result()
    assert [peer.name for peer in one.sharing.renew().peers] == ["one", "two"]
    one.commit(Batch(jobs={"a": StoredJob("a", "t", "@daily")}))
    one.close()
    two.close()


def test_each_step_is_taken_by_itself(store, newer, by_hand):
    """What it locks it locks no longer than for itself. One that fails leaves those before it, and is tried again."""
    store.open(0, no_hint)
    newer("CREATE TABLE {schema}.one (id integer)", "SELECT 1 / 0", "CREATE TABLE {schema}.three (id integer)")
    with pytest.raises(StoreError, match="division by zero"):
        store.open(0, no_hint)
    assert by_hand("SELECT version FROM {}.meta").fetchone() == (VERSION + 1,)
    newer("CREATE TABLE {schema}.one (id integer)", "SELECT 1", "CREATE TABLE {schema}.three (id integer)")
    store.open(0, no_hint)
    assert by_hand("SELECT version FROM {}.meta").fetchone() == (VERSION + 3,)
    by_hand("SELECT FROM {0}.one, {0}.three")


def test_leases_are_renewed_while_a_step_waits_for_a_dump(
    shared_store, newer, by_hand, postgres_server, postgres_schema
):
    """The step waits for that reader, and each renewal behind the step. It gives way, and is tried again."""
    one, two = shared_store("one"), shared_store("two")
    one.open(0, no_hint)
    newer("ALTER TABLE {schema}.change ADD COLUMN more integer")
    with psycopg.connect(postgres_server.dsn) as dump:
        dump.execute(f'LOCK TABLE "{postgres_schema}".change IN ACCESS SHARE MODE')
        with ThreadPoolExecutor(1) as threads:
            opened = threads.submit(two.open, 0, no_hint)
            while not opened.done():
                assert [peer.name for peer in one.sharing.renew().peers] == ["one"]
            with pytest.raises(StoreUnavailable, match="lock timeout"):
                opened.result()
    two.open(0, no_hint)
    one.close()
    two.close()
