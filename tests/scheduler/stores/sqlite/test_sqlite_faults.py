"""A SQLite store in trouble: locked, read-only, full, killed. What was acknowledged is there afterwards."""

import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import scheduler
from kit import PATIENCE, no_hint
from scheduler.stores import (
    RUNNING,
    Batch,
    Retention,
    StoredJob,
    StoredState,
    StoredTick,
    StoreUnavailable,
    StoreUnusable,
)
from scheduler.stores.sqlite import SQLiteStore

pytestmark = pytest.mark.slow

NOW_US = 1_800_000_000_000_000
A_JOB = Batch(jobs={"a": StoredJob("a", "task", "every 1m")})
PRELUDE = """
import os, resource, sys
import urllib.parse  # pathlib wants it later, when the user who runs this may not be allowed to read Python's library
from pathlib import Path
from scheduler.stores import StoreUnavailable, StoreUnusable
from scheduler.stores import RUNNING, Batch, StoredJob, StoredTick
from scheduler.stores.sqlite import SQLiteStore

def say(*words):
    print(*words, flush=True)

def marks(number):
    return Batch(marks=[StoredTick(job_id, number, 1, number, RUNNING, number, trace="x" * 500) for job_id in "ab"])

path, *arguments = sys.argv[1:]
store = SQLiteStore(path, **dict(argument.split("=") for argument in arguments))
"""


@contextmanager
def process(program, *arguments):
    """Another process, with a store that is not yet open. Killed at the end."""
    environment = os.environ | {"PYTHONPATH": str(Path(scheduler.__file__).parents[1])}
    command = [sys.executable, "-c", PRELUDE + program, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as child:
        try:
            yield child
        finally:
            child.kill()


def said(program, *arguments):
    """The lines that another process says, which ends well."""
    with process(program, *arguments) as child:
        lines = child.communicate(timeout=PATIENCE)[0].splitlines()
        assert child.returncode == 0, lines
        return lines


def opened(path, **options):
    store = SQLiteStore(path, **options)
    store.open(NOW_US, no_hint)
    return store


def mark(number):
    return StoredTick("a", NOW_US + number, 1, number, RUNNING, NOW_US)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "jobs.sqlite"


@pytest.fixture
def store(path):
    store = opened(path)
    store.commit(A_JOB)
    yield store
    store.close()


@pytest.fixture
def other(store, path):
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection:
        yield connection


def test_a_second_process_is_refused_until_the_first_is_killed(path):
    """The kernel lets go of the lock."""
    with process("store.open(0, print); say('open'); sys.stdin.read()", path) as child:
        assert child.stdout.readline() == "open\n"
        with pytest.raises(StoreUnusable, match=f"in use by process {child.pid}:"):
            opened(path)
        child.kill()
        child.wait()
        opened(path).close()


def test_changes_of_another_process_are_seen(store, path):
    """Jobs and pauses."""
    assert not store.changes()
    program = """
import sqlite3
with sqlite3.connect(path) as connection:
    connection.execute("INSERT INTO job (id, task, schedule) VALUES ('b', 'task', 'every 1m')")
    connection.execute("UPDATE job SET paused = 'by hand' WHERE id = 'a'")
    connection.execute("INSERT INTO pause (scope) VALUES ('*')")
connection.close()
"""
    assert said(program, path) == []
    changes = store.changes()
    assert (changes.jobs["a"].paused, changes.jobs["b"].task) == ("by hand", "task")
    assert list(changes.pauses) == ["*"]
    assert not store.changes()


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_what_was_acknowledged_outlives_kill_9(path, durability):
    """Whole batches, and at most one that was not acknowledged any more."""
    program = """
store.open(0, print)
number = 0
while True:
    number += 1
    store.commit(marks(number))
    say(number)
"""
    acknowledged = 0
    for _ in range(3):
        with process(program, path, f"durability={durability}") as child:
            for line in itertools.islice(child.stdout, 200):
                acknowledged = int(line)
            child.kill()
            rest = child.stdout.read().splitlines(keepends=True)
        acknowledged = max([acknowledged, *(int(line) for line in rest if line.endswith("\n"))])
        store = opened(path, durability=durability)
        found = {(tick.job_id, tick.due_us) for tick in store.running()}
        last = max(due_us for _, due_us in found)
        assert last >= acknowledged >= 200
        assert found == {(job_id, number) for job_id in "ab" for number in range(1, last + 1)}
        store.close()


def test_a_locked_database_is_unavailable_for_as_long_as_it_is_locked(store, other):
    """Readers are not concerned."""
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=r"jobs\.sqlite: database is locked .*end it"):
        store.commit(Batch(marks=[mark(1)]))
    assert store.history() == []
    other.execute("ROLLBACK")
    store.commit(Batch(marks=[mark(1)]))
    assert store.running() == [mark(1)]


def test_a_short_lock_is_waited_for(store, other):
    """A human's statement is no trouble."""
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, other.execute, ["ROLLBACK"])
    timer.start()
    store.commit(Batch(marks=[mark(1)]))
    timer.join()
    assert store.running() == [mark(1)]


def test_others_may_read_for_as_long_as_they_like(store, other):
    """They see what was there when they began."""
    other.execute("BEGIN")
    assert other.execute("SELECT count(*) FROM tick").fetchone() == (0,)
    for number in range(1, 50):
        store.commit(Batch(marks=[mark(number)]))
    assert other.execute("SELECT count(*) FROM tick").fetchone() == (0,)
    assert len(store.history()) == 49


def test_after_a_write_that_the_database_refuses_the_next_call_connects_anew(store):
    """What was wrong with the connection is gone with it."""
    store._session.writer().execute("PRAGMA query_only = ON")
    with pytest.raises(StoreUnavailable, match="read-only"):
        store.commit(Batch(marks=[mark(1)]))
    store.commit(Batch(marks=[mark(2)]))
    assert store.running() == [mark(2)]


def test_after_a_connection_that_was_lost_nothing_is_reported_twice_or_not_at_all(store, other):
    """The new one begins where the old one was."""
    list(store.load())
    other.execute("INSERT INTO job (id, task, schedule) VALUES ('b', 'task', 'every 1m')")
    store._session.writer().execute("PRAGMA query_only = ON")
    with pytest.raises(StoreUnavailable):
        store.changes()
    assert list(store.changes().jobs) == ["b"]
    assert not store.changes()


def test_a_read_only_file_or_directory_is_unavailable_until_it_is_not():
    """By a user for whom permissions bind, wherever root runs this."""
    directory = Path(tempfile.mkdtemp())
    try:
        path = directory / "jobs.sqlite"
        opened(path).close()
        if os.geteuid() == 0:
            for file in (directory, *directory.iterdir()):
                os.chown(file, 65_534, 65_534)
        program = """
if os.geteuid() == 0:
    os.setegid(65_534)
    os.seteuid(65_534)
for victim, mode in ((Path(path), 0o400), (Path(path), 0o000), (Path(path).parent, 0o500), (Path(path).parent, 0o000)):
    before = victim.stat().st_mode
    for name in (".lock", "-wal", "-shm"):
        Path(path + name).unlink(missing_ok=True)
    victim.chmod(mode)
    try:
        store.open(0, print)
    except StoreUnavailable as exc:
        say(exc)
    victim.chmod(before)
    store.open(0, print)
    store.commit(marks(1))
    store.close()
"""
        lines = said(program, path)
        assert len(lines) == 4
        assert all(str(path) in line and "writable" in line for line in lines), lines
    finally:
        shutil.rmtree(directory)


def test_a_file_that_may_not_grow_loses_nothing_that_was_acknowledged(path):
    """A quota. It goes on by itself when there is room."""
    program = """
store.open(0, print)
number, refusals = 0, 0
for limit in (200_000, 400_000, 2_000_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        while number < 5_000:
            store.commit(marks(number + 1))
            number += 1
    except StoreUnavailable as exc:
        refusals += "make room" in str(exc) or "quota" in str(exc)
    for _ in range(2):
        try:
            store.commit(marks(number + 1))
            number += 1
        except StoreUnavailable:
            refusals += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.commit(marks(number + 1))
    number += 1
assert {tick.due_us for tick in store.running()} == set(range(1, number + 1))
say(number, refusals)
os._exit(0)
"""
    ((number, refusals),) = [map(int, line.split()) for line in said(program, path)]
    assert refusals >= 3
    store = opened(path)
    assert {(tick.job_id, tick.due_us) for tick in store.running()} == set(
        itertools.product("ab", range(1, number + 1))
    )
    store.close()


def test_a_full_database_is_unavailable_and_prune_makes_room(store):
    """Nothing of the batch that was too large is there."""
    old = [mark(number)._replace(outcome="failed", ended_us=NOW_US, trace="x" * 3_000) for number in range(200)]
    store.commit(Batch(ended=old))
    pages = store._session.writer().execute("PRAGMA page_count").fetchone()[0]
    store._session.writer().execute(f"PRAGMA max_page_count = {pages}")
    more = Batch(
        jobs={"b": StoredJob("b", "task", "every 1m")},
        marks=[mark(number)._replace(trace="y" * 3_000) for number in range(1_000, 1_100)],
    )
    with pytest.raises(StoreUnavailable, match="make room"):
        store.commit(more)
    assert store.running() == []
    assert [row.id for rows in store.load() for row, _ in rows] == ["a"]
    assert store.prune(Retention(per_job=10), NOW_US) == 190
    assert store.commit(more).refused == ()
    assert len(store.running()) == 100


def test_the_ballast_is_given_up_for_pruning_and_comes_back(store, other, path, caplog):
    """Not for commits, which would only fill the disk again."""
    ballast = path.with_name("jobs.sqlite.ballast")
    assert ballast.stat().st_size == 8 * 1024 * 1024
    store.commit(Batch(ended=[mark(1)._replace(outcome="succeeded", ended_us=NOW_US)]))
    other.execute("CREATE TABLE filler (bytes BLOB)")
    other.execute("CREATE TRIGGER fill BEFORE DELETE ON tick BEGIN INSERT INTO filler VALUES (zeroblob(9999999)); END")
    store._session.writer().execute("PRAGMA max_page_count = 1")
    with pytest.raises(StoreUnavailable, match="make room"):
        store.commit(Batch(jobs={f"{number}" * 1_000: StoredJob(f"{number}" * 1_000, "", "") for number in range(99)}))
    assert ballast.exists()
    with pytest.raises(StoreUnavailable, match="make room"):
        store.prune(Retention(age=1.0), NOW_US + 2_000_000)
    assert not ballast.exists()
    assert "is given up to make room" in caplog.text
    assert len(store.history()) == 1
    other.execute("DROP TRIGGER fill")
    assert store.prune(Retention(age=1.0), NOW_US + 2_000_000) == 1
    assert store.prune(Retention(age=1.0), NOW_US + 2_000_000) == 0
    assert ballast.exists()


def test_a_batch_is_whole_or_not_at_all(store, other):
    """Whatever it fails on."""
    other.execute(
        "CREATE TRIGGER no BEFORE INSERT ON tick WHEN new.due_us = 7 BEGIN SELECT RAISE(ABORT, 'not this'); END"
    )
    batch = Batch(
        jobs={"b": StoredJob("b", "task", "every 1m")},
        states={"a": StoredState("a", runs=1)},
        marks=[mark(1), mark(2)._replace(due_us=7), mark(3)],
    )
    with pytest.raises(StoreUnusable, match="not this"):
        store.commit(batch)
    assert list(store.load()) == [[(A_JOB.jobs["a"], None)]]
    assert store.running() == []
    other.execute("DROP TRIGGER no")
    store.commit(batch)
    assert len(store.running()) == 3


def test_a_fork_does_not_touch_the_database_of_its_parent(path):
    """SQLite's locks are not inherited; ours stays with the parent."""
    program = """
store.open(0, print)
if (child := os.fork()) == 0:
    try:
        store.commit(marks(1))
    except StoreUnusable as exc:
        say(exc)
    store.close()
    os._exit(0)
os.waitpid(child, 0)
store.commit(marks(2))
try:
    SQLiteStore(path).open(0, print)
except StoreUnusable as exc:
    say(exc)
store.close()
"""
    first, second = said(program, path)
    assert "a fork of it" in first
    assert "is in use by process" in second
    store = opened(path)
    assert {tick.due_us for tick in store.running()} == {2}
    store.close()


def test_close_does_not_raise_and_lets_go_whatever_happens(store, other, path, caplog):
    """The next agent may try."""
    path.rename(path.with_name("away"))
    store.close()
    assert "could not be closed properly" in caplog.text
    path.with_name("away").rename(path)
    opened(path).close()
