"""What a SQLite store promises beyond the protocol: its settings, its files, and what humans see in it."""

import sqlite3
import stat
from contextlib import closing

import pytest

from kit import no_hint
from scheduler.stores import (
    EVERYTHING,
    RUNNING,
    Batch,
    Retention,
    StoredJob,
    StoredPause,
    StoredState,
    StoredTick,
    StoreUnusable,
)
from scheduler.stores.sqlite import SQLiteStore

NOW_US = 1_800_000_000_000_000
HOSTILE = ["'; DROP TABLE job; --", '"', "%_\\", "a'b\"c", "?1", ":id", "{rows}", "\n", "-- x", "naïve ☃ 🎲"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "jobs.sqlite"


@pytest.fixture
def store(path):
    store = SQLiteStore(path)
    store.open(NOW_US, no_hint)
    yield store
    store.close()


@pytest.fixture
def other(store, path):
    """A connection of somebody else, with the settings that sqlite3 has by itself; each statement is a transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def job(job_id="a", **fields):
    return StoredJob(job_id, "task", "every 1m", **fields)


def mark(job_id="a", due_us=NOW_US, fence=1, attempt=1):
    return StoredTick(job_id, due_us, attempt, fence, RUNNING, due_us)


def setting(store, name):
    return store._session.writer().execute(f"PRAGMA {name}").fetchone()[0]


def loaded(store):
    return {row.id: (row, state) for rows in store.load() for row, state in rows}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("trusted_schema", 0),
        ("temp_store", 2),
        ("mmap_size", 0),
        ("journal_size_limit", 64 * 1024 * 1024),
        ("user_version", 5),
        ("application_id", int.from_bytes(b"TiQu", "big")),
    ],
)
def test_settings_are_as_promised(store, name, value):
    """As the connection that writes answers, not as it was asked."""
    assert setting(store, name) == value


def test_nobody_is_waited_for_longer_than_five_seconds(store):
    """No verb waits for longer than some seconds."""
    assert 0 < setting(store, "busy_timeout") <= 5_000


def test_fast_leaves_the_disk_to_checkpoints(path):
    """Each `prune` makes one, so that a quiet store does not leave its commits to the log for days."""
    store = SQLiteStore(path, durability="fast")
    store.open(NOW_US, no_hint)
    store.commit(Batch(jobs={"a": job()}))
    assert setting(store, "synchronous") == 1
    assert store.prune(Retention(), NOW_US) == 0
    assert setting(store, "wal_checkpoint(PASSIVE)") == 0
    store.close()


def test_all_tables_are_strict(store, other):
    """What a human writes has the type that is read."""
    tables = other.execute("SELECT name, strict FROM pragma_table_list WHERE type = 'table' AND schema = 'main'")
    assert [name for name, strict in tables if not strict] == ["sqlite_schema"]


def test_its_files_are_readable_by_their_owner_alone(store, path):
    """Arguments of jobs may be secret, and so are the files beside the database."""
    store.commit(Batch(jobs={"a": job()}))
    modes = {file.name.removeprefix(path.name): stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(["", "-wal", "-shm", ".lock", ".ballast"], 0o600)


def test_after_a_close_there_is_one_file_and_its_lock(store, path):
    """It may be copied then."""
    store.commit(Batch(jobs={"a": job()}))
    store.close()
    assert {file.name.removeprefix(path.name) for file in path.parent.iterdir()} == {"", ".lock"}


def test_nothing_is_made_before_it_is_opened(path):
    """A store that is only configured leaves no trace."""
    assert repr(SQLiteStore(path)) == f"<SQLiteStore {str(path)!r}, full, closed>"
    assert list(path.parent.iterdir()) == []


def test_its_text_says_where_it_is_and_how_often_it_was_opened(store, path):
    """It stands in the log."""
    assert repr(store) == f"<SQLiteStore {str(path)!r}, full, epoch 1>"
    assert store.path == str(path)


@pytest.mark.parametrize("path", ["", ":memory:", "file::memory:?cache=shared", "file:jobs.sqlite"])
def test_a_path_that_is_none_is_refused(path):
    """Who wants none is told where there is a store without one."""
    with pytest.raises(ValueError, match="MemoryStore"):
        SQLiteStore(path)


def test_an_unknown_durability_is_refused():
    """It is not taken for the faster one."""
    with pytest.raises(ValueError, match="'safe'"):
        SQLiteStore("jobs.sqlite", durability="safe")


def test_a_path_may_hold_what_means_something_in_a_url(tmp_path):
    """SQLite is given a URL, but the path is a path."""
    path = tmp_path / "a?mode=memory#b %41 é.sqlite"
    store = SQLiteStore(path)
    store.open(NOW_US, no_hint)
    store.close()
    assert path.exists()


def test_before_it_is_open_it_says_so(path):
    """Every verb but `history`."""
    store = SQLiteStore(path)
    for verb in (store.pauses, store.running, store.changes, lambda: store.commit(Batch())):
        with pytest.raises(StoreUnusable, match="call open first"):
            verb()


def test_hand_written_jobs_are_seen_with_defaults(store, other):
    """A human writes three columns."""
    assert not store.changes()
    other.execute("INSERT INTO job (id, task, schedule) VALUES ('a', 'task', 'every 1m')")
    assert store.changes().jobs == {"a": job()}
    assert not store.changes()


def test_a_rename_is_a_removal_and_a_new_job(store, other):
    """The state was that of the old id."""
    store.commit(Batch(jobs={"a": job()}, states={"a": StoredState("a", runs=1)}))
    other.execute("UPDATE job SET id = 'b'")
    assert store.changes().jobs == {"a": None, "b": job("b")}
    assert loaded(store) == {"b": (job("b"), None)}


def test_a_renamed_pause_is_a_removal_and_a_new_pause(store, other):
    """Of another scope."""
    pause = StoredPause(EVERYTHING, "night", NOW_US)
    store.commit(Batch(pauses={EVERYTHING: pause}))
    other.execute("UPDATE pause SET scope = 'tag:x'")
    assert store.changes().pauses == {EVERYTHING: None, "tag:x": pause._replace(scope="tag:x")}


@pytest.mark.parametrize("how", ["INSERT OR REPLACE", "INSERT OR IGNORE", "REPLACE"])
def test_however_a_human_inserts_it_is_seen_each_time(store, other, how):
    """A statement's policy holds for its triggers, too: none of them may fail on a key that it has logged."""
    for schedule in ("every 1m", "every 2m"):
        other.execute(f"{how} INTO job (id, task, schedule) VALUES (?, 'task', ?)", (schedule, schedule))
        other.execute(f"{how} INTO job (id, task, schedule) VALUES ('a', 'task', ?)", (schedule,))
    assert set(store.changes().jobs) == {"a", "every 1m", "every 2m"}


def test_own_changes_are_not_reported_but_those_between_them_are(store, other):
    """Own commits empty the log, and keep what others have written into it."""
    store.commit(Batch(jobs={"mine": job("mine")}))
    other.execute("INSERT INTO job (id, task, schedule) VALUES ('theirs', 'task', 'every 1m')")
    store.commit(Batch(jobs={"mine": None, "also mine": job("also mine")}))
    store.commit(Batch(pauses={EVERYTHING: StoredPause(EVERYTHING, "night", NOW_US)}))
    assert store.changes().jobs == {"theirs": job("theirs")}


def test_the_log_of_changes_does_not_grow(store, other):
    """It is a set of keys, and empty after a look."""
    for number in range(100):
        other.execute("INSERT OR REPLACE INTO job (id, task, schedule) VALUES ('a', 'task', ?)", (f"every {number}s",))
        store.commit(Batch(jobs={f"{number}": job(f"{number}")}))
        other.execute("UPDATE job SET name = 'x'")
    assert other.execute("SELECT count(*) FROM change").fetchone() == (101,)
    store.changes()
    assert other.execute("SELECT count(*) FROM change").fetchone() == (0,)


def test_malformed_content_is_passed_through(store, other):
    """What it means is judged elsewhere."""
    row = ("a", "no such task", "now and then", "[", "{'a': 1}", "\x00", "tags")
    other.execute("INSERT INTO job (id, task, schedule, args, kwargs, options, tags) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    assert store.changes().jobs == {"a": StoredJob(*row)}
    assert loaded(store) == {"a": (StoredJob(*row), None)}


def test_texts_that_are_no_utf_8_are_loaded_with_escapes(store, other):
    """One row of other hands must not keep a scheduler from starting."""
    store.commit(Batch(jobs={"good": job("good")}))
    other.execute("INSERT INTO job (id, task, schedule) VALUES ('bad', CAST(x'61ff62' AS TEXT), 'every 1m')")
    assert store.changes().jobs["bad"].task == "a\\xffb"
    assert loaded(store)["bad"][0].task == "a\\xffb"
    assert loaded(store)["good"] == (job("good"), None)


@pytest.mark.parametrize("job_id", HOSTILE)
def test_ids_are_never_part_of_a_statement(store, job_id):
    """They are bound, in each verb."""
    state, tick = StoredState(job_id, last_error=job_id), mark(job_id)
    pause = StoredPause(f"tag:{job_id}", job_id, NOW_US)
    store.commit(
        Batch(
            jobs={job_id: job(job_id, name=job_id), "other": job("other")},
            states={job_id: state},
            pauses={pause.scope: pause},
            marks=[tick, mark("other")],
        )
    )
    assert loaded(store) == {job_id: (job(job_id, name=job_id), state), "other": (job("other"), None)}
    assert store.history(job_id) == [tick]
    assert store.pauses() == [pause]
    store.commit(Batch(jobs={job_id: None}, pauses={pause.scope: None}, ended=[tick._replace(outcome="succeeded")]))
    assert store.prune(Retention(age=1.0), NOW_US + 2_000_000) == 1
    assert (list(loaded(store)), store.pauses(), store.history()) == (["other"], [], [mark("other")])


def test_texts_that_no_database_holds_do_not_break_a_batch(store):
    """An error message may quote anything, and the runs beside it have ended all the same."""
    ended = mark()._replace(outcome="failed", error="half \ud800 and NUL \x00 end", trace="\udfff")
    store.commit(Batch(jobs={"a": job()}, marks=[mark()]))
    store.commit(Batch(ended=[ended], states={"a": StoredState("a", last_error="\ud800")}))
    (found,) = store.history()
    assert (found.error, found.trace) == ("half \\ud800 and NUL \x00 end", "\\udfff")
    assert loaded(store)["a"][1].last_error == "\\ud800"
    assert store.history("\ud800") == []


def test_a_number_beyond_64_bits_is_refused_and_changes_nothing(store):
    """An error of the seam, not of the driver."""
    with pytest.raises(StoreUnusable, match="64 bits"):
        store.commit(Batch(jobs={"a": job()}, marks=[mark(fence=2**63)]))
    assert loaded(store) == {}
    store.commit(Batch(jobs={"a": job()}))


@pytest.mark.parametrize("count", [1, 2, 3, 1_023, 1_024, 1_025, 2_049])
def test_batches_of_any_length_are_put_whole(store, count):
    """Around the powers of two to which statements are filled up, and the most rows of one."""
    jobs = {f"{number:04}": job(f"{number:04}") for number in range(count)}
    states = {job_id: StoredState(job_id, number) for number, job_id in enumerate(jobs)}
    marks = [mark(job_id, fence=number + 1) for number, job_id in enumerate(jobs)]
    assert store.commit(Batch(jobs=jobs, states=states, marks=marks)).refused == ()
    assert loaded(store) == {job_id: (jobs[job_id], states[job_id]) for job_id in jobs}
    assert sorted(store.running()) == marks
    again = [tick._replace(fence=tick.fence + count, attempt=2) for tick in marks]
    assert store.commit(Batch(marks=again)).refused == tuple(again)


def test_the_view_says_the_same_in_words(store, other):
    """For who looks with the sqlite3 shell."""
    state = StoredState("a", next_us=NOW_US, runs=5, successes=2, failures=1, total_duration=6.0, last_start_us=NOW_US)
    state = state._replace(missed=32, missed_is_exact=False)
    store.commit(Batch(jobs={"a": job(), "b": job("b")}, states={"a": state}))
    with closing(other.execute("SELECT * FROM job_statistics ORDER BY id")) as cursor:
        names = [column[0] for column in cursor.description]
        first, second = (dict(zip(names, row, strict=True)) for row in cursor)
    assert (first["crashes"], first["mean_duration"]) == (2, 2.0)
    assert (first["missed"], first["missed_is_exact"]) == (32, 0)
    assert first["next_start"] == first["last_start"] == "2027-01-15 08:00:00.000"
    assert (second["id"], second["runs"]) == ("b", None)


def test_pruning_goes_on_right_after_a_change_of_the_bounds(store):
    """The sums that spare it a look at everything are those of the bounds of before."""
    ended = [mark(due_us=NOW_US + number)._replace(outcome="succeeded", ended_us=NOW_US) for number in range(10)]
    store.commit(Batch(ended=ended))
    assert store.prune(Retention(), NOW_US) == 0
    assert store.prune(Retention(per_job=4), NOW_US) == 6
    assert store.prune(Retention(per_job=4), NOW_US) == 0
    store.commit(Batch(marks=[mark(due_us=NOW_US + 10, fence=2)]))
    assert store.prune(Retention(per_job=4), NOW_US) == 0
    store.commit(Batch(ended=[mark(due_us=NOW_US + 10, fence=2)._replace(outcome="succeeded", ended_us=NOW_US)]))
    assert store.prune(Retention(per_job=4), NOW_US) == 1
    assert [tick.due_us - NOW_US for tick in store.history()] == [10, 9, 8, 7]
    assert store.prune(Retention(per_job=None, total_bytes=500), NOW_US) == 2


def test_the_bytes_of_a_long_time_are_counted_right(store):
    """Each run writes its record twice, a retry more often; what is kept is near the bound all the same."""
    retention = Retention(per_job=None, age=None, total_bytes=200_000)
    for first in range(0, 2_000, 100):
        for attempt in (1, 2):
            fence = 2 * first + 100 * attempt
            marks = [mark(due_us=NOW_US + first + n, fence=fence + n, attempt=attempt) for n in range(100)]
            store.commit(Batch(marks=marks))
            failed = [tick._replace(outcome="failed", ended_us=NOW_US, trace="x" * 800) for tick in marks]
            assert store.commit(Batch(ended=failed)).stale == ()
        while store.prune(retention, NOW_US):
            pass
    kept = len(store.history(limit=2_000))
    assert 180_000 < kept * (200 + 801) <= 200_000


def test_history_is_read_beside_the_agent_that_has_it_open(store, path):
    """And after it. Neither its lock nor its ballast is touched, and it goes on."""
    visitor = SQLiteStore(path)
    for fence in (1, 2):
        store.commit(Batch(marks=[mark(due_us=NOW_US + fence, fence=fence)]))
        assert len(visitor.history()) == len(visitor.history("a")) == fence
        visitor.close()
    assert path.with_name("jobs.sqlite.ballast").exists()
    store.close()
    assert len(visitor.history()) == 2
    assert {file.name for file in path.parent.iterdir()} == {"jobs.sqlite", "jobs.sqlite.lock"}
    visitor.open(NOW_US, no_hint)
    assert len(visitor.history()) == 2
    visitor.close()


def test_jobs_are_read_beside_the_agent_that_has_them_open(store, path):
    """And after it, as a command does when no agent answers; more of them than one page has."""
    jobs = {f"job-{number:04}": job(f"job-{number:04}") for number in range(1_500)}
    store.commit(Batch(jobs=jobs, states={"job-0007": StoredState("job-0007", next_us=NOW_US)}))
    visitor = SQLiteStore(path)
    for _ in range(2):
        found = {row.id: (row, state) for row, state in visitor.read_jobs()}
        assert found == loaded(store) if store._opened else len(found) == 1_500
        visitor.close()
        store.close()
    with pytest.raises(StoreUnusable, match="there is no database"):
        SQLiteStore(path.with_name("none.sqlite")).read_jobs()


def test_reading_history_makes_nothing(path):
    """Neither a file where there is none, nor tables in one that is empty or another's."""
    with pytest.raises(StoreUnusable, match="there is no database"):
        SQLiteStore(path).history()
    assert list(path.parent.iterdir()) == []
    path.touch()
    with pytest.raises(StoreUnusable, match="schema version 0"):
        SQLiteStore(path).history()
    assert path.read_bytes() == b""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE users (name)")
    with pytest.raises(StoreUnusable, match="another program"):
        SQLiteStore(path).history()
    path.write_text("no database at all, " * 100)
    with pytest.raises(StoreUnusable, match="no database"):
        SQLiteStore(path).history()
