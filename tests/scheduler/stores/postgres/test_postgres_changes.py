"""Edits by hand in PostgreSQL are seen: all of them, once, in whatever order they are committed."""

import threading
from contextlib import closing, contextmanager
from queue import SimpleQueue

import psycopg
import pytest
from psycopg import sql

from kit import PATIENCE
from scheduler.stores import (
    Batch,
    Changes,
    Retention,
    StoredJob,
    StoredPause,
    StoredTick,
    StoreUnavailable,
    StoreUnusable,
)
from scheduler.stores._postgres.beside import LentConnection
from scheduler.stores._postgres.changes import Listener, listener
from scheduler.stores._postgres.connection import ONE_SNAPSHOT, READ_COMMITTED, StoreConnection, connect
from scheduler.stores.postgres import PostgresStore


class Hints:
    """Counts, and can be waited for."""

    def __init__(self):
        self._semaphore = threading.Semaphore(0)

    def __call__(self):
        self._semaphore.release()

    def came(self):
        return self._semaphore.acquire(timeout=PATIENCE)


@pytest.fixture
def hints():
    return Hints()


@pytest.fixture
def store(postgres_server, postgres_schema, hints):
    """An open one, whose listener listens."""
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema)
    store.open(0, hints)
    assert hints.came()
    yield store
    store.close()


@pytest.fixture
def hand(postgres_server, postgres_schema):
    """Give connections of somebody who edits; {} in a statement stands for the schema."""

    class Hand(psycopg.Connection):
        def edit(self, text, *args):
            return self.execute(sql.SQL(text).format(sql.Identifier(postgres_schema)), args or None)

    open_ones = []

    def connect(**options):
        open_ones.append(Hand.connect(postgres_server.dsn, **options))
        return open_ones[-1]

    yield connect
    for connection in open_ones:
        connection.close()


def insert(hand, job_id):
    hand.edit("INSERT INTO {}.job (id, task, schedule) VALUES (%s, 't', 's')", job_id)


def test_an_edit_is_seen_once(store, hand):
    """A job and a pause that are new, changed and gone."""
    store.commit(Batch(jobs={"a": StoredJob("a", "t", "s"), "b": StoredJob("b", "t", "s")}))
    editor = hand(autocommit=True)
    editor.edit("UPDATE {}.job SET schedule = 'x' WHERE id = 'a'")
    editor.edit("DELETE FROM {}.job WHERE id = 'b'")
    editor.edit("INSERT INTO {}.pause (scope, since_us) VALUES ('*', 5)")
    assert store.changes() == Changes({"a": StoredJob("a", "t", "x"), "b": None}, {"*": StoredPause("*", "", 5)})
    assert not store.changes()


def test_a_renamed_job_is_gone_and_new(store, hand):
    """A change of the key concerns two jobs."""
    store.commit(Batch(jobs={"a": StoredJob("a", "t", "s")}))
    hand(autocommit=True).edit("UPDATE {}.job SET id = 'b'")
    assert store.changes().jobs == {"a": None, "b": StoredJob("b", "t", "s")}


def test_a_truncated_table_is_seen(store, hand):
    """TRUNCATE removes rows without telling which."""
    store.commit(Batch(jobs={"a": StoredJob("a", "t", "s")}, pauses={"*": StoredPause("*", "r", 0)}))
    editor = hand(autocommit=True)
    editor.edit("TRUNCATE {0}.job, {0}.job_state")
    editor.edit("TRUNCATE {}.pause")
    assert store.changes() == Changes({"a": None}, {"*": None})


def test_commits_out_of_order_are_all_seen(store, hand):
    """The transaction that began first, and so has the smaller number, commits last."""
    early, late = hand(), hand()
    insert(early, "early")
    insert(late, "late")
    late.commit()
    assert set(store.changes().jobs) == {"late"}
    assert not store.changes()
    early.commit()
    assert set(store.changes().jobs) == {"early"}
    assert not store.changes()


def test_an_edit_that_was_under_way_at_load_is_seen(store, hand):
    """It was not among what `load` has read."""
    early = hand()
    insert(early, "early")
    insert(other := hand(), "other")
    other.commit()
    assert [[job.id for job, _ in page] for page in store.load()] == [["other"]]
    early.commit()
    assert set(store.changes().jobs) == {"early"}


def test_an_edit_that_is_rolled_back_is_none(store, hand):
    """Nothing has happened."""
    editor = hand()
    insert(editor, "a")
    editor.rollback()
    assert not store.changes()


def test_what_the_store_writes_itself_is_no_change(store):
    """Or each commit would be followed by reading it again."""
    store.commit(Batch(jobs={"a": StoredJob("a", "t", "s")}, pauses={"*": StoredPause("*", "r", 0)}))
    store.commit(Batch(jobs={"a": None}, pauses={"*": None}))
    assert not store.changes()


def test_an_edit_gives_a_hint(store, hand, hints):
    """The agent need not wait for its next look."""
    insert(editor := hand(), "a")
    editor.commit()
    assert hints.came()
    assert set(store.changes().jobs) == {"a"}


def test_the_listener_comes_back(store, hand, hints, postgres_server):
    """Its backend is ended; it connects anew, gives a hint, and hears again."""
    editor = hand(autocommit=True)
    ended = editor.execute("SELECT pg_terminate_backend(%s)", [store.beside._connection.info.backend_pid]).fetchall()
    assert (True,) in ended
    assert hints.came()
    insert(editor, "a")
    assert hints.came()


def test_a_listener_survives_a_restart_of_the_server(store, hand, hints, postgres_server):
    """For as long as there is no server it tries again."""
    postgres_server.restart("immediate")
    assert hints.came()
    insert(hand(autocommit=True), "a")
    assert hints.came()


@pytest.fixture
def heard(postgres_server, postgres_schema):
    """Listen, and say things with NOTIFY. Return which hints were given, once so many have come."""
    hints = SimpleQueue()
    others = {"units": lambda: hints.put("units")}
    with (
        closing(LentConnection(lambda: connect(postgres_server.dsn), "here")) as beside,
        closing(Listener(beside, postgres_schema, lambda: hints.put("look"), others)),
        psycopg.connect(postgres_server.dsn, autocommit=True) as hand,
    ):

        def heard(count, *payloads):
            for said in payloads:
                hand.execute("SELECT pg_notify(%s, %s)", [postgres_schema, said])
            return [hints.get(timeout=PATIENCE) for _ in range(count)]

        yield heard


def test_hints_of_changed_rows_share_one_at_the_end_of_a_pause(monkeypatch, heard):
    """Each statement by hand had each agent look around, a hundred a second. What is ours by now is told at once."""
    monkeypatch.setattr(listener, "PAUSE", 3_600.0)
    assert heard(2) == ["look", "units"]  # it has connected
    assert heard(2, *[""] * 20, "units") == ["look", "units"]
    assert heard(2, *["news"] * 20, "units") == ["look", "units"]
    assert heard(3, "fleet 7", "", "fleet", "units") == ["look", "look", "units"]


def test_changes_that_come_fast_are_all_hinted_at(store, hand, hints):
    """Those that come in a pause have the hint at its end."""
    editor, seen = hand(autocommit=True), set()
    for number in range(30):
        insert(editor, str(number))
    while len(seen) < 30:
        assert hints.came()
        seen.update(store.changes().jobs)


def test_close_ends_the_listener(postgres_server, postgres_schema):
    """No thread and no connection stays."""
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema)
    store.open(0, hints := Hints())
    assert hints.came()
    store.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "timerqueue-postgres-listener"]


def test_the_log_of_changes_is_pruned_after_an_hour(store, hand):
    """And not before; nor what the store has not seen."""
    editor = hand(autocommit=True)
    insert(editor, "old")
    insert(editor, "new")
    editor.edit("UPDATE {}.change SET made_at = now() - interval '61 minutes' WHERE key = 'old'")
    store.prune(Retention(), 0)
    assert set(store.changes().jobs) == {"old", "new"}
    store.prune(Retention(), 0)
    assert editor.edit("SELECT key FROM {}.change").fetchall() == [("new",)]


def test_a_long_log_of_changes_is_pruned_to_its_end(store, hand):
    """A call that deletes a full page asks for another one. It said 0, and the next page waited for 1,000 records."""
    editor = hand(autocommit=True)
    old = "INSERT INTO {}.change (\"table\", key, made_at) SELECT 'job', n::text, now() - interval '2 hours'"
    editor.edit(old + " FROM generate_series(1, 5000) n")
    while store.changes().is_more:
        pass
    assert list(iter(lambda: store.prune(Retention(), 0), 0)) == [2_000, 2_000]
    assert editor.edit("SELECT count(*) FROM {}.change").fetchone() == (0,)


@pytest.mark.parametrize("stuck", ["change", "tick"])
def test_history_and_the_log_of_changes_are_pruned_apart(store, hand, stuck):
    """Where one cannot be deleted, the other goes all the same. History stayed for as long as the log could not go."""
    editor = hand(autocommit=True)
    insert(editor, "job")
    assert set(store.changes().jobs) == {"job"}
    store.commit(Batch(missed=[StoredTick("job", 0, 1, 1, "missed")]))
    editor.edit("UPDATE {}.change SET made_at = now() - interval '61 minutes'")
    editor.edit("CREATE FUNCTION {}.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'")
    editor.edit(f"CREATE TRIGGER refuse BEFORE DELETE ON {{0}}.{stuck} EXECUTE FUNCTION {{0}}.refuse()")
    with pytest.raises(StoreUnavailable, match="no"):
        store.prune(Retention(age=1.0), 10_000_000)
    left = {table: editor.edit(f"SELECT count(*) FROM {{}}.{table}").fetchone()[0] for table in ("change", "tick")}
    assert left == {"change": 0, "tick": 0} | {stuck: 1}


def test_the_second_who_opens_takes_over(store, postgres_server, postgres_schema):
    """The first is told at its next call, whichever it is."""
    second = PostgresStore(postgres_server.dsn, schema=postgres_schema)
    assert second.open(0, Hints()).epoch == 2
    for verb in (lambda: store.commit(Batch(jobs={"a": StoredJob("a", "t", "s")})), store.changes):
        with pytest.raises(StoreUnusable, match="another node has taken it over: process"):
            verb()
    assert list(second.load()) == []
    second.commit(Batch(jobs={"a": StoredJob("a", "t", "s")}))
    second.close()


def foresee(store, transactions=1_000):
    """Let the store have seen that many transactions more than there are: those that a standby does not know of."""
    snapshot, life = store.log.seen.split(" ")
    counted = int(snapshot.split(":")[1]) + transactions
    store.log.begin(f"{counted}:{counted}: {life}")


def test_a_server_that_has_forgotten_transactions_is_told(store, hand):
    """What it counts now counts as seen otherwise. It is told until all rows have been read anew."""
    foresee(store)
    insert(hand(autocommit=True), "a")
    assert store.changes().is_behind
    assert store.changes() == Changes(is_behind=True)
    assert [[job.id for job, _ in page] for page in store.load()] == [["a"]]
    assert not store.changes()
    insert(hand(autocommit=True), "b")
    assert set(store.changes().jobs) == {"b"}


def test_many_changes_are_told_a_page_at_a_time(store, hand):
    """All of them came in one answer, which no commit could overtake: 200,000 delayed all starts by 6.7 s."""
    editor = hand(autocommit=True)
    editor.edit("INSERT INTO {}.job (id, task, schedule) SELECT n, 't', 's' FROM generate_series(1, 1500) n")
    first = store.changes()
    editor.edit("INSERT INTO {}.pause (scope, since_us) VALUES ('*', 5)")
    editor.edit("UPDATE {}.job SET schedule = 'x'")
    second = store.changes()
    assert (len(first.jobs), len(second.jobs), first.is_more, second.is_more) == (1_000, 500, True, False)
    assert {row.schedule for row in second.jobs.values()} == {"x"}  # as they are by now
    assert len(first.jobs | second.jobs) == 1_500
    third, fourth, fifth = store.changes(), store.changes(), store.changes()
    assert {**third.pauses, **fourth.pauses}.keys() == {"*"}
    assert [third.is_more, fourth.is_more, bool(fifth)] == [True, False, False]
    assert len(third.jobs | fourth.jobs) == 1_500


def test_a_page_that_could_not_be_read_is_read_again(store, hand, postgres_server):
    """Nor is one passed over when the server has begun another life between two of them."""
    editor = hand(autocommit=True)
    editor.edit("INSERT INTO {}.job (id, task, schedule) SELECT n, 't', 's' FROM generate_series(1, 2500) n")
    told = dict(store.changes().jobs)
    postgres_server.restart("fast")
    with pytest.raises(StoreUnavailable):
        store.changes()
    while (page := store.changes()).is_more:
        told |= page.jobs
    assert len(told | page.jobs) == 2_500
    assert not store.changes()


def test_a_renewal_while_changes_are_read_is_not_taken_for_a_server_that_forgets(agent, hand):
    """It has seen more by then than what is being read: all rows were read anew, in vain."""
    store, editor, begin = agent(), hand(autocommit=True), StoreConnection.transaction_as

    @contextmanager
    def begin_and_renew(self, name, isolation=READ_COMMITTED, **options):
        with begin(self, name, isolation, **options) as answers:
            if isolation is ONE_SNAPSHOT:
                for _ in range(3):
                    editor.execute("SELECT pg_current_xact_id()")
                assert not store.sharing.renew().is_news
            yield answers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoreConnection, "transaction_as", begin_and_renew)
        assert store.changes() == Changes()
    assert store.changes() == Changes()


def test_what_was_read_when_the_connection_ended_is_told_again(store, hand):
    """It was lost: it counted as told before the transaction had ended."""
    editor, read = hand(autocommit=True), store.log.read

    def read_in_vain(connection, *args):
        answer = read(connection, *args)
        connection.close()
        return answer

    insert(editor, "a")
    store.log.read = read_in_vain
    with pytest.raises(StoreUnavailable):
        store.changes()
    store.log.read = read
    assert set(store.changes().jobs) == {"a"}


def test_who_shares_the_store_is_told_so_with_its_lease(agent):
    """It asks for changes when it is told that there are some."""
    store = agent()
    assert not store.sharing.renew().is_news
    foresee(store)
    assert store.sharing.renew().is_news
    assert store.sharing.renew().is_news
    assert store.changes().is_behind
    list(store.load())
    assert not store.sharing.renew().is_news


def test_in_another_life_of_the_server_all_that_the_log_has_is_news(store, hand, postgres_server):
    """Another server may have taken its place, and count as far by now with other transactions."""
    insert(hand(autocommit=True), "a")
    store.commit(Batch(jobs={"ours": StoredJob("ours", "t", "s")}))
    assert set(store.changes().jobs) == {"a"}
    foresee(store, 0)
    store.log.begin(store.log.seen.partition(" ")[0] + " 1")
    assert set(store.changes().jobs) == {"a"}
    assert not store.changes()


def test_changes_out_of_a_dump_of_another_server_are_no_news(agent, hand):
    """It had counted further, so no snapshot holds them. They were news in each look, and were never pruned."""
    store, editor = agent(), hand(autocommit=True)
    insert(editor, "old")
    editor.edit("UPDATE {}.change SET xid = '1000000000', made_at = now() - interval '61 minutes'")
    assert not store.sharing.renew().is_news
    assert not store.changes()
    insert(editor, "new")
    assert set(store.changes().jobs) == {"new"}
    store.prune(Retention(), 0)
    assert editor.edit("SELECT key FROM {}.change").fetchall() == [("new",)]
