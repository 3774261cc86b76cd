"""What a SQLite store does not open, and what it does not write into: each with a message that says what to do."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from kit import no_hint
from scheduler.stores import Batch, StoredChange, StoredJob, StoredState, StoreUnavailable, StoreUnusable
from scheduler.stores._sqlite import schema
from scheduler.stores.sqlite import SQLiteStore

NOW_US = 1_800_000_000_000_000
JOBS = {f"{number:05}": StoredJob(f"{number:05}", "task", "every 1m", name="x" * 100) for number in range(2_000)}


def opened(path):
    store = SQLiteStore(path)
    store.open(NOW_US, no_hint)
    return store


def execute(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def refusal(path, error=StoreUnusable):
    """What is said when it is opened; the file is as it was, and nothing holds it."""
    before = path.read_bytes() if path.is_file() else None
    store = SQLiteStore(path)
    for _ in range(2):
        with pytest.raises(error) as caught:
            store.open(NOW_US, no_hint)
    store.close()
    assert (path.read_bytes() if path.is_file() else None) == before
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "jobs.sqlite"


@pytest.fixture
def filled(path):
    """A database with some pages, closed in order."""
    store = opened(path)
    store.commit(Batch(jobs=JOBS, states={job_id: StoredState(job_id) for job_id in JOBS}))
    store.close()
    return path


def crash(path):
    """Let it look as after kill -9."""
    execute(path, "UPDATE meta SET clean = 0")


def test_a_schema_of_a_later_release_is_refused(filled):
    """It could mean something else."""
    execute(filled, f"PRAGMA user_version = {len(schema.MIGRATIONS) + 1}")
    assert "install the release that wrote it" in refusal(filled)


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE users (name)"],
        ["PRAGMA application_id = 7"],
        ["PRAGMA user_version = 1"],
        ["CREATE TABLE job (id)", "PRAGMA application_id = 7", "PRAGMA user_version = 1"],
    ],
)
def test_a_database_of_another_program_is_refused_and_left_as_it_is(path, statements):
    """To the byte: it is not even given a write-ahead log."""
    execute(path, *statements)
    assert "a file of its own" in refusal(path)


@pytest.mark.parametrize("content", [b"[jobs]\n" * 1_000, b"\x00" * 4_096, b"SQLite format 4\x00" + bytes(5_000)])
def test_a_file_that_is_no_database_is_refused(path, content):
    """A typing error in a path costs no file."""
    path.write_bytes(content)
    refusal(path)


def test_an_empty_file_becomes_a_database(path):
    """One made by `touch` or `mktemp`."""
    path.touch()
    store = opened(path)
    store.commit(Batch(jobs=JOBS))
    store.close()


def test_a_truncated_database_is_refused(filled):
    """Its header says how many pages there are."""
    with filled.open("r+b") as file:
        file.truncate(filled.stat().st_size // 2)
    assert "backup" in refusal(filled)


def test_flipped_bytes_are_found_after_an_unclean_stop(filled):
    """All pages are looked at then."""
    crash(filled)
    with filled.open("r+b") as file:
        size = filled.stat().st_size
        for page in range(size // 4_096 // 2, size // 4_096):
            file.seek(page * 4_096)
            header = file.read(8)
            file.seek(page * 4_096)
            file.write(bytes(byte ^ 0x55 for byte in header))
    assert "corrupt" in refusal(filled)


def test_an_unclean_stop_alone_is_no_reason_to_refuse(filled):
    """It is what the log is for."""
    crash(filled)
    store = opened(filled)
    assert sum(map(len, store.load())) == len(JOBS)
    store.close()


def test_a_table_that_is_gone_is_said(filled):
    """By its name."""
    store = opened(filled)
    execute(filled, "DROP TABLE job_state")
    with pytest.raises(StoreUnusable, match="job_state"):
        list(store.load())
    store.close()


def test_all_migrations_or_none(path, monkeypatch):
    """One that fails leaves no table behind."""
    scripts = (*schema.MIGRATIONS, "CREATE TABLE more (id TEXT) STRICT;\nCREATE TABLE job (id TEXT) STRICT;\n")
    monkeypatch.setattr(schema, "MIGRATIONS", scripts)
    with pytest.raises(StoreUnusable, match="job already exists"):
        opened(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)


def test_an_older_schema_is_migrated_and_keeps_what_it_holds(filled, monkeypatch):
    """Once; the second time it is of this version."""
    scripts = (*schema.MIGRATIONS, "ALTER TABLE job ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';\n")
    monkeypatch.setattr(schema, "MIGRATIONS", scripts)
    for _ in range(2):
        store = opened(filled)
        assert sum(map(len, store.load())) == len(JOBS)
        store.close()
    with closing(sqlite3.connect(filled)) as connection:
        assert connection.execute("SELECT DISTINCT colour FROM job").fetchall() == [("red",)]
        assert connection.execute("PRAGMA user_version").fetchone() == (len(scripts),)


def test_what_the_first_version_owed_is_owed(path):
    """There it stood in the place for a retry, of a tick that a death or a stop had ended."""
    execute(
        path,
        *schema._statements(schema.MIGRATIONS[0]),
        f"PRAGMA application_id = {schema.APPLICATION_ID}",
        "PRAGMA user_version = 1",
        "INSERT INTO job (id, task, schedule) VALUES ('a', 't', '@daily'), ('b', 't', '@daily'), ('c', 't', '@daily')",
        "INSERT INTO job_state (job_id, retry_due_us, retry_attempt, retry_at_us)"
        " VALUES ('a', 1, 2, 9), ('b', 1, 3, 9), ('c', 1, 2, 9)",
        "INSERT INTO tick (job_id, due_us, attempt, fence, outcome) VALUES"
        " ('a', 1, 1, 1, 'crashed'), ('a', 2, 1, 2, 'crashed'), ('b', 1, 2, 3, 'cancelled'),"
        " ('c', 1, 1, 4, 'failed')",
    )
    store = opened(path)
    assert sorted((tick.job_id, tick.due_us) for tick in store.owed()) == [("a", 1), ("b", 1)]
    store.close()


def test_of_the_second_version_what_may_be_a_lower_bound_is_one(path):
    """It did not keep which counts of missed ticks are: a record says so, or the schedule is counted up to 32."""
    execute(
        path,
        *(statement for script in schema.MIGRATIONS[:2] for statement in schema._statements(script)),
        f"PRAGMA application_id = {schema.APPLICATION_ID}",
        "PRAGMA user_version = 2",
        "INSERT INTO job (id, task, schedule) VALUES ('few', 't', '@daily | @hourly'),"
        " ('many', 't', '@daily | @hourly'), ('known', 't', '@daily'),"
        " ('counted', 't', '@daily'), ('cut', 't', '@hourly EXCEPT (@daily for 2h)')",
        "INSERT INTO job_state (job_id, missed)"
        " VALUES ('few', 31), ('many', 32), ('known', 101), ('counted', 99), ('cut', 32)",
        "INSERT INTO tick (job_id, due_us, attempt, fence, outcome, error) VALUES"
        " ('known', 1, 1, 1, 'missed', 'at least'), ('counted', 1, 1, 2, 'missed', NULL)",
    )
    store = opened(path)
    states = {job.id: state.missed_is_exact for page in store.load() for job, state in page}
    assert states == {"few": True, "many": False, "known": False, "counted": True, "cut": False}
    store.close()


def test_a_store_of_the_third_version_keeps_changes_from_now_on(path):
    """It did not know who changed what. Its jobs and records stay."""
    execute(
        path,
        *(statement for script in schema.MIGRATIONS[:3] for statement in schema._statements(script)),
        f"PRAGMA application_id = {schema.APPLICATION_ID}",
        "PRAGMA user_version = 3",
        "INSERT INTO job (id, task, schedule) VALUES ('a', 't', '@daily')",
        "INSERT INTO tick (job_id, due_us, attempt, fence, outcome) VALUES ('a', 1, 1, 1, 'succeeded')",
    )
    store = opened(path)
    assert [job.id for page in store.load() for job, _ in page] == ["a"]
    assert [tick.job_id for tick in store.history()] == ["a"]
    change = StoredChange(1, 5, "pause", "job:a", "ann")
    store.commit(Batch(made=[change]))
    assert store.made_changes.read() == [change]
    store.close()


def test_a_second_store_on_the_same_file_is_refused_by_any_name(filled, tmp_path):
    """The lock is that of the file, not of a name of it."""
    store = opened(filled)
    link = tmp_path / "link.sqlite"
    link.symlink_to(filled)
    for name in (filled, link, tmp_path / "." / filled.name):
        with pytest.raises(StoreUnusable, match=f"process {os.getpid()}:"):
            opened(name)
    store.commit(Batch(jobs=dict.fromkeys(JOBS)))
    store.close()
    opened(link).close()


def test_a_lock_that_is_a_link_is_refused(path, tmp_path):
    """It would be written into."""
    precious = tmp_path / "precious"
    precious.write_text("1234")
    path.with_name("jobs.sqlite.lock").symlink_to(precious)
    assert "symbolic link" in refusal(path)
    assert precious.read_text() == "1234"


@pytest.mark.parametrize("name", ["missing/jobs.sqlite", "file/jobs.sqlite"])
def test_a_directory_that_is_none_may_come_later(tmp_path, name):
    """A disk that is mounted late."""
    (tmp_path / "file").write_text("no directory")
    path = tmp_path / name
    assert "directory must be there" in refusal(path, StoreUnavailable)
    path.parent.unlink(missing_ok=True)
    path.parent.mkdir()
    opened(path).close()


def test_a_path_that_is_a_directory_is_refused(tmp_path):
    """With its name, however SQLite calls it."""
    (tmp_path / "jobs").mkdir()
    with pytest.raises((StoreUnavailable, StoreUnusable), match="jobs"):
        opened(tmp_path / "jobs")


def test_a_removed_database_is_noticed_and_welcome_again(filled, tmp_path):
    """The open file still takes writes, which nobody would ever find."""
    store = opened(filled)
    away = tmp_path / "away.sqlite"
    filled.rename(away)
    for verb in (lambda: store.commit(Batch(jobs={"00000": None})), store.changes, store.history, store.pauses):
        with pytest.raises(StoreUnusable, match="replaced or removed"):
            verb()
    away.rename(filled)
    store.commit(Batch(jobs={"00000": None}))
    assert sum(map(len, store.load())) == len(JOBS) - 1
    store.close()
    store = opened(filled)
    assert sum(map(len, store.load())) == len(JOBS) - 1
    store.close()


def test_a_copy_in_its_place_is_not_written_into(filled, tmp_path):
    """It is another file."""
    copy, away = tmp_path / "copy.sqlite", tmp_path / "away.sqlite"
    shutil.copyfile(filled, copy)
    store = opened(filled)
    filled.rename(away)
    copy.rename(filled)
    before = filled.read_bytes()
    with pytest.raises(StoreUnusable, match="replaced or removed"):
        store.commit(Batch(jobs={"00000": None}))
    assert filled.read_bytes() == before
    filled.unlink()
    away.rename(filled)
    store.commit(Batch(jobs={"00000": None}))
    store.close()


def test_contents_of_another_store_in_the_same_file_are_noticed(filled, tmp_path):
    """By the instance: the file is the same."""
    other = tmp_path / "other.sqlite"
    opened(other).close()
    store = opened(filled)
    with closing(sqlite3.connect(other)) as source, closing(sqlite3.connect(filled)) as target:
        source.backup(target)
    with pytest.raises(StoreUnusable, match="replaced or removed"):
        store.commit(Batch(jobs={"00000": None}))
    store.close()


def test_an_older_backup_in_the_same_file_is_noticed(filled, tmp_path):
    """By the epoch: ticks that it does not know may have run."""
    backup = tmp_path / "backup.sqlite"
    shutil.copyfile(filled, backup)
    store = opened(filled)
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(filled)) as target:
        source.backup(target)
    with pytest.raises(StoreUnusable, match="replaced or removed"):
        store.commit(Batch(jobs={"00000": None}))
    store.close()
