"""What a MemoryStore can do beyond the protocol: play restarts, crashes and other hands."""

import subprocess
import sys

import pytest

from kit import PATIENCE
from scheduler.stores import EVERYTHING, RUNNING, Batch, StoredJob, StoredPause, StoredState, StoredTick, StoreUnusable
from scheduler.stores.memory import MemoryStore

JOB = StoredJob("a", "task", "@every 1m")
PAUSE = StoredPause(EVERYTHING, "holidays", 0)
MARK = StoredTick("a", 0, 1, 1, RUNNING)


@pytest.fixture
def store():
    """A store that is open, with one job."""
    store = MemoryStore()
    store.open(0, lambda: None)
    store.commit(Batch(jobs={"a": JOB}))
    return store


def test_it_may_be_called_on_the_loop():
    """There is nothing to wait for."""
    assert MemoryStore().is_immediate


def test_two_stores_share_nothing():
    """Each has its own data, unless it is another on the same."""
    first, second = MemoryStore(), MemoryStore()
    opened = [store.open(0, lambda: None) for store in (first, second, first.another())]
    assert [each.epoch for each in opened] == [1, 1, 2]
    assert opened[0].instance == opened[2].instance != opened[1].instance


def test_a_restart_finds_what_was_left(store):
    """The same object is opened again."""
    store.close()
    assert store.open(0, lambda: None).epoch == 2
    assert list(store.load()) == [[(JOB, None)]]


def test_a_crash_leaves_its_marks_and_its_late_commit_is_refused(store):
    """The one that died never closed; should it live on after all, it can do no harm."""
    store.commit(Batch(marks=[MARK]))
    successor = store.another()
    successor.open(0, lambda: None)
    assert successor.running() == [MARK]
    with pytest.raises(StoreUnusable, match="another has opened it"):
        store.commit(Batch(jobs={"a": None}))
    store.close()  # of the old one: the new one has it still
    successor.commit(Batch(states={"a": StoredState("a")}))
    assert list(successor.load()) == [[(JOB, StoredState("a"))]]


def test_after_a_close_a_commit_is_refused(store):
    """Who commits then has not noticed that it stopped."""
    store.close()
    with pytest.raises(StoreUnusable, match="closed"):
        store.commit(Batch())


def test_an_edit_gives_a_hint():
    """To whoever has it open, by whichever object it is made."""
    hints = []
    store = MemoryStore()
    store.open(0, lambda: hints.append(store.changes()))
    store.edit(JOB)
    store.another().edit_pause(PAUSE)
    store.delete("a")
    store.delete_pause(EVERYTHING)
    assert [(each.jobs, each.pauses) for each in hints] == [
        ({"a": JOB}, {}),
        ({}, {EVERYTHING: PAUSE}),
        ({"a": None}, {}),
        ({}, {EVERYTHING: None}),
    ]


def test_an_edit_while_it_is_closed_is_found_by_the_next(store):
    """Nobody is there to be told, and it is no change for whoever loads it."""
    store.close()
    store.edit(JOB._replace(name="edited"))
    store.open(0, lambda: pytest.fail("nothing was edited since"))
    assert list(store.load()) == [[(JOB._replace(name="edited"), None)]]
    assert not store.changes()


def test_importing_the_stores_or_the_tests_tools_brings_no_driver_and_no_test_runner():
    """Who has not installed them can use the rest."""
    modules = "psycopg psycopg_pool sqlite3 pytest hypothesis"
    code = f"""
import sys, scheduler.stores, scheduler.stores.memory, scheduler.testing
print([name for name in {modules.split()} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.strip() == "[]"
