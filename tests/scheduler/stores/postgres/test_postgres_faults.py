"""PostgreSQL restarts, freezes, is locked, does not answer: each call ends soon and says so, and nothing is lost."""

import os
import signal
import threading
from contextlib import contextmanager, suppress

import psycopg
import pytest
from psycopg import sql

from kit import PATIENCE, no_hint, wait_until
from proxy import Proxy
from scheduler.stores import (
    RUNNING,
    Batch,
    Receipt,
    StoredJob,
    StoredState,
    StoredTick,
    StoreError,
    StoreUnavailable,
    StoreUnreachable,
    StoreUnusable,
    Unstorable,
)
from scheduler.stores._postgres.connection import StoreConnection, psycopg as driver, translated
from scheduler.stores.postgres import PostgresStore

pytestmark = pytest.mark.slow


@pytest.fixture
def store(postgres_server, postgres_schema):
    """An open one with a job."""
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema)
    store.open(0, no_hint)
    store.commit(Batch(jobs={"a": StoredJob("a", "t", "s")}))
    yield store
    store.close()


@pytest.fixture
def admin(postgres_server, postgres_schema):
    """Run a statement as the superuser; {} stands for the schema."""

    def run(text, *args):
        with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
            return connection.execute(sql.SQL(text).format(sql.Identifier(postgres_schema)), args or None).fetchall()

    return run


def mark(fence, job_id="a"):
    return StoredTick(job_id, fence, 1, fence, RUNNING, 0)


def marks(*fences):
    return Batch(marks=[mark(fence) for fence in fences])


def backend_of(store):
    return store._commits.connection.info.backend_pid


def verbs(store):
    return {
        "commit": lambda: store.commit(marks(1)),
        "changes": store.changes,
        "pauses": store.pauses,
        "running": store.running,
        "load": lambda: list(store.load()),
        "history": store.history,
    }


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_restart_between_two_commits_is_told_once(store, postgres_server, how):
    """The first call finds its connection dead, the next connects anew; what was acknowledged is there."""
    store.commit(marks(1))
    postgres_server.restart(how)
    with pytest.raises(StoreUnavailable):
        store.commit(marks(2))
    store.commit(marks(2))
    assert [tick.fence for tick in store.running()] == [1, 2]


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_nothing_acknowledged_is_lost_by_a_restart_under_load(store, postgres_server, how):
    """Commits go on while the server goes down and comes back; each is sent again until it is answered."""
    acknowledged, enough, ended = [], threading.Event(), threading.Event()

    def commit_all():
        fence = 0
        while not ended.is_set():
            fence += 1
            while True:
                try:
                    receipt = store.commit(marks(fence))
                except StoreUnavailable:
                    continue
                assert receipt == Receipt()
                break
            acknowledged.append(fence)
            if len(acknowledged) % 20 == 0:
                enough.set()

    thread = threading.Thread(target=commit_all)
    thread.start()
    for _ in range(3):
        enough.clear()
        assert enough.wait(PATIENCE)
        postgres_server.restart(how)
    enough.clear()
    assert enough.wait(PATIENCE)
    ended.set()
    thread.join(PATIENCE)
    found = sorted(tick.fence for tick in store.running())
    assert found == acknowledged


@pytest.mark.parametrize("verb", ["commit", "changes", "pauses", "running", "history"])
def test_a_backend_that_is_ended_is_replaced(store, admin, verb):
    """By the next call, whichever connection it was."""
    store._listener.close()  # which would find it first
    store.history()
    call = verbs(store)[verb]
    admin(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
    )
    with pytest.raises(StoreUnavailable):
        call()
    call()


def test_a_stopped_server_is_unavailable_until_it_is_back(store, postgres_server):
    """Each call tries to connect, and says where."""
    postgres_server.stop("fast")
    try:
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match=str(postgres_server.folder)):
                store.commit(marks(1))
    finally:
        postgres_server.start()
    store.commit(marks(1))
    assert store.running() == [mark(1)]


def test_a_frozen_backend_ends_the_call(store, postgres_server, monkeypatch):
    """No timeout of the server or of TCP ends this one; it works again on another connection at once."""
    assert StoreConnection.patience == 70, "tenths of a second: longer than the server itself takes to end a statement"
    monkeypatch.setattr(StoreConnection, "patience", 5)
    with postgres_server.frozen(backend_of(store)):
        with pytest.raises(StoreUnavailable, match=r"has not answered for 0\.5 s"):
            store.commit(marks(1))
        assert store.commit(marks(1)) == Receipt()
    assert store.running() == [mark(1)]


@pytest.mark.parametrize("verb", ["commit", "changes", "pauses", "running", "history"])
def test_each_call_ends_on_a_backend_that_freezes(store, postgres_server, verb, monkeypatch):
    """Each asks its own connection, and takes another the next time."""
    monkeypatch.setattr(StoreConnection, "patience", 5)
    store.history()
    call = verbs(store)[verb]
    with postgres_server.frozen(backend_of(store), store.beside._connection.info.backend_pid):
        with pytest.raises(StoreUnavailable, match="not answered"):
            call()
        call()


@pytest.mark.parametrize("verb", ["commit", "load", "history"])
def test_each_call_ends_on_a_server_to_which_nobody_can_connect(store, postgres_server, verb):
    """The postmaster is frozen: the kernel takes the connection, and nobody answers."""
    store._listener.close()
    store._commits.connection.close()
    store.beside.close()
    store._dsn += " connect_timeout=2"
    call = verbs(store)[verb]
    with postgres_server.frozen(), pytest.raises(StoreUnavailable, match="timeout"):
        call()
    call()


def test_a_commit_that_thaws_after_it_was_given_up_changes_nothing_later(store, postgres_server, admin, monkeypatch):
    """The server was frozen inside of a commit that adds jobs; it holds its agent's row until it has ended."""
    monkeypatch.setattr(StoreConnection, "patience", 5)
    old, new = (Batch(states={"a": StoredState("a", next_us=when)}) for when in (1, 2))
    old.jobs["b"], old.added["b"] = StoredJob("b", "task", "@every 1s"), "refuse"
    backend = backend_of(store)
    with in_the_middle_of_a_commit(store, lambda: os.kill(backend, signal.SIGSTOP)), pytest.raises(StoreUnavailable):
        store.commit(old)
    with postgres_server.frozen(backend), pytest.raises(StoreUnavailable):
        store.commit(new)  # waits for the lock
    wait_until(lambda: not admin("SELECT FROM pg_stat_activity WHERE pid = %s", backend))
    store.commit(new)
    assert [state for page in store.load() for _, state in page] == [StoredState("a", next_us=2)]


def test_a_commit_that_arrives_after_later_ones_writes_nothing(store, postgres_server, admin, monkeypatch):
    """It was sent in one way, and its connection was given up. What it says is old by then."""
    monkeypatch.setattr(StoreConnection, "patience", 5)
    backend = backend_of(store)
    with postgres_server.frozen(backend):
        with pytest.raises(StoreUnavailable):
            store.commit(Batch(states={"a": StoredState("a", next_us=1)}))
        store.commit(Batch(states={"a": StoredState("a", next_us=2)}))
    wait_until(lambda: not admin("SELECT FROM pg_stat_activity WHERE pid = %s", backend))
    assert [state for page in store.load() for _, state in page] == [StoredState("a", next_us=2)]


def test_a_connection_that_breaks_within_a_commit_is_told_by_an_error_alone(store, admin, caplog):
    """Psycopg logged a warning of its own for each node at each outage."""
    assert admin("SELECT pg_terminate_backend(%s)", backend_of(store))
    wait_until(lambda: not admin("SELECT FROM pg_stat_activity WHERE pid = %s", backend_of(store)))
    with pytest.raises(StoreUnreachable):
        store.commit(marks(1))
    assert caplog.records == []


def test_a_server_that_does_not_know_the_connection_of_a_commit_gets_it_over_another(store, admin, postgres_schema):
    """A pooler kept the connection while a standby took the place of its server, and had missed the last changes."""
    admin(f"UPDATE {postgres_schema}.agent SET session = 7 RETURNING 1")
    with pytest.raises(StoreUnavailable, match="sent again over another"):
        store.commit(marks(1))
    store.commit(marks(1))


@contextmanager
def in_the_middle_of_a_commit(store, happen):
    """Let it happen when the commit has locked its row and has not sent what it changes."""
    connection = store._commits.connection
    transaction = connection.transaction_as

    @contextmanager
    def spied(*args, **options):
        with transaction(*args, **options) as held:
            happen()
            yield held

    connection.transaction_as = spied
    yield
    assert connection.closed


@pytest.mark.parametrize("table", ["tick", "agent"])
def test_a_table_that_somebody_locks_ends_the_call(store, postgres_server, postgres_schema, table):
    """A migration of theirs, or a careless session."""
    with psycopg.connect(postgres_server.dsn) as other:
        other.execute(sql.SQL("LOCK TABLE {}").format(sql.Identifier(postgres_schema, table)))
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            store.commit(Batch(states={"a": StoredState("a")}, marks=[mark(1)]))
    store.commit(marks(1))


def test_a_read_only_server_is_unavailable(store, admin):
    """A standby, until it is the primary."""
    with psycopg.connect(store._dsn, autocommit=True) as connection:
        connection.execute("ALTER DATABASE postgres SET default_transaction_read_only = on")
        try:
            store._commits.connection.close()
            with pytest.raises(StoreUnavailable, match="read-only"):
                store.commit(marks(1))
        finally:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER DATABASE postgres RESET default_transaction_read_only")
    store.commit(marks(1))


def test_a_commit_whose_answer_is_lost_changes_nothing_when_repeated(postgres_server, postgres_schema):
    """It was carried out, and nobody knows."""
    with Proxy(postgres_server.folder / ".s.PGSQL.5432") as proxy:
        store = PostgresStore(proxy.dsn, schema=postgres_schema)
        store.open(0, no_hint)
        batch = Batch(jobs={"a": StoredJob("a", "t", "s")}, states={"a": StoredState("a", runs=1)}, marks=[mark(1)])
        swallowing = threading.Thread(target=swallow_answer, args=(proxy, proxy.hold(after=b".tick")))
        swallowing.start()
        with pytest.raises(StoreUnavailable):
            store.commit(batch)
        swallowing.join(PATIENCE)
        with suppress(StoreUnreachable):  # all connections were reset, and that of the readers may have been there
            store.history()
        held = store.history(), list(store.load())
        assert held == ([mark(1)], [[(StoredJob("a", "t", "s"), StoredState("a", runs=1))]])
        assert store.commit(batch) == Receipt()
        assert held == (store.history(), list(store.load()))
        store.close()


def test_a_transaction_that_a_broken_connection_has_left_open_keeps_nobody_waiting(postgres_server, postgres_schema):
    """The server did not hear that it broke, and its own timer for that stands as long as its clock is set back."""
    with Proxy(postgres_server.folder / ".s.PGSQL.5432") as proxy:
        store = PostgresStore(proxy.dsn, schema=postgres_schema)
        store.open(0, no_hint)
        with pytest.raises(StoreUnreachable):
            break_within_a_transaction(store, proxy)
        store.commit(marks(1))
        store.close()


def break_within_a_transaction(store, proxy):
    with store.writing() as connection:
        proxy.leave_server_hanging()
        connection.execute("SELECT 1")


def swallow_answer(proxy, has_come):
    """Cut the connection of a commit once the server has answered."""
    assert has_come.wait(PATIENCE)
    wait_until(lambda: proxy.held)
    proxy.reset()


def test_close_does_not_wait_for_a_reader(store, postgres_server, monkeypatch):
    """Another thread reads history from a server that has frozen: what ends that is the end of the store."""
    monkeypatch.setattr(StoreConnection, "patience", 10_000_000)
    store.history()
    caught = []

    def read():
        try:
            store.history()
        except StoreError as error:
            caught.append(error)

    with postgres_server.frozen(store.beside._connection.info.backend_pid):
        reader = threading.Thread(target=read)
        reader.start()
        wait_until(lambda: store.beside._connection.silence)  # the listener has it now and then, and asks nothing
        store.close()
        reader.join(PATIENCE)
    assert ["is being closed" in str(error) for error in caught] == [True]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("08006", StoreUnreachable),
        ("57P01", StoreUnreachable),
        ("57P03", StoreUnreachable),
        ("57014", StoreUnavailable),
        ("53100", StoreUnavailable),
        ("53300", StoreUnavailable),
        ("25006", StoreUnavailable),
        ("40001", StoreUnavailable),
        ("40P01", StoreUnavailable),
        ("55P03", StoreUnavailable),
        ("23503", StoreUnavailable),
        ("22003", Unstorable),
        ("23514", Unstorable),
        ("54000", Unstorable),
        ("42501", StoreUnusable),
        ("42P01", StoreUnusable),
        ("3F000", StoreUnusable),
        ("XX001", StoreUnusable),
    ],
)
def test_codes_of_the_server_tell_whether_waiting_helps(code, kind):
    """What waiting does not make better is told at once."""
    error = driver.errors.lookup(code)("said so")
    with pytest.raises(kind, match="here: said so"), translated("here"):
        raise error
