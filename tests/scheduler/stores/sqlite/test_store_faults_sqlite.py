"""A scheduler whose SQLite database is locked, gone, exchanged or corrupt says so, starts nothing, and comes back."""

import shutil
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest

from kit import PATIENCE, until
from scheduler import Scheduler, StoreDown, StoreUp
from scheduler._memory import memory
from scheduler.stores import StoreUnusable
from scheduler.stores._sqlite import connection as sqlite_connection

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite"])
def place(place):
    return place


@pytest.fixture
def path(place):
    return Path(place.spec["path"])


@contextmanager
def locked(path):
    """Another process, in effect, has a transaction open."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def gone(path):
    """Somebody has moved the file away, and puts it back."""
    away = path.rename(f"{path}.away")
    yield
    away.rename(path)


@contextmanager
def exchanged(path):
    """Somebody has put a copy in its place, and thinks better of it."""
    away = path.rename(f"{path}.away")
    shutil.copy(away, path)
    yield
    away.rename(path)


@pytest.fixture
def impatient(monkeypatch):
    """Wait less for locks."""
    settings = tuple(text.replace("3000", "200") for text in sqlite_connection._SETTINGS)
    assert settings != sqlite_connection._SETTINGS
    monkeypatch.setattr(sqlite_connection, "_SETTINGS", settings)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("trouble", "words"), [(locked, "locked"), (gone, "removed"), (exchanged, "replaced")])
async def test_while_the_database_is_in_trouble_nothing_starts_and_then_all_goes_on(
    place, path, ticking, work, events, trouble, words
):
    """What is wrong is said once, and nothing is lost."""
    async with ticking(place.store()) as s:
        await until(lambda: len(work) >= 3)
        with trouble(path):
            await until(lambda: events.of(StoreDown))
            begun = len(work)
            assert words in events.of(StoreDown)[0].error
            assert words in s.statistics().store.trouble
            s.get("ticks").update(timeout="1m")
            extra = s.add("work", "0 0 1 1 *", id="extra")
            extra.run_now()
            failures = s.statistics().store
            await until(lambda: s.statistics().store.unsaved >= 2)
            assert s.statistics().store.commits == failures.commits
            assert len(work) == begun
        await until(lambda: events.of(StoreUp))
        await until(lambda: len(work) >= begun + 3 and any(run[0] == "extra" for run in work))
        await s.flush()
        assert s.statistics().store.trouble is None
    rows, ticks = place.content()
    assert set(rows) == {"extra", "ticks"}
    assert "60" in rows["ticks"][0].options
    work.check(ticks)
    assert [type(event) for event in events.of(StoreDown, StoreUp)] == [StoreDown, StoreUp]


async def test_a_scheduler_whose_database_is_gone_can_be_stopped(place, path, ticking, events, monkeypatch, caplog):
    """What it could not save, it says in the log."""
    monkeypatch.setattr(memory, "LAST_WORDS", 0.5)
    with anyio.fail_after(PATIENCE):
        async with ticking(place.store()) as s:
            path.rename(f"{path}.away")
            await until(lambda: events.of(StoreDown) and s.statistics().store.unsaved)
    assert "not saved" in caplog.text


async def test_a_file_that_is_no_database_is_refused_at_the_start(place, path):
    """Out of `run`, as the error that it is."""
    path.write_bytes(b"no database " * 1000)
    with pytest.raises(StoreUnusable, match="corrupt or no database"):
        await Scheduler(store=place.store()).run()


async def test_a_corrupt_database_is_refused_at_the_start(place, path, ticking, work):
    """Nothing is written to it."""
    async with ticking(place.store()):
        await until(lambda: len(work) >= 2)
    corrupt = bytes(200) + path.read_bytes()[200:]
    path.write_bytes(corrupt)
    with pytest.raises(StoreUnusable, match="corrupt or no database"):
        await Scheduler(store=place.store()).run()
    assert path.read_bytes() == corrupt
