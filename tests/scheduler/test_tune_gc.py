"""`tune_gc` sets the collector of a process that is somebody else's too."""

import gc
import threading
import weakref
from contextlib import ExitStack

import pytest

from schedule import Every
from scheduler import Scheduler, tune_gc


class Thing:
    """An object that may hold another."""

    other = None


def circle():
    """Make two things that hold each other, and forget them. Watch one."""
    one, other = Thing(), Thing()
    one.other, other.other = other, one
    return weakref.ref(one)


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """Whatever a test does: the collector of the tests is as it was, and so is what tests/conftest.py has frozen.

    That is taken for the interpreter's own. To collect it with the rest would cost half a second in each test.
    """
    found = gc.get_threshold(), gc.isenabled()
    gc.freeze()
    monkeypatch.setattr("scheduler._tune_gc.OF_PYTHON", gc.get_freeze_count() + 1)
    gc.set_threshold(700, 10, 10)
    yield
    gc.freeze()
    gc.set_threshold(*found[0])
    (gc.enable if found[1] else gc.disable)()


def test_what_is_loaded_is_frozen_and_new_objects_are_looked_at_less_often():
    """At the end of the block all is as it was."""
    with tune_gc():
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold() == (5_000, 10, 10)
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == (700, 10, 10)


def test_it_is_restored_after_an_error_too():
    """The block may be a whole program."""
    with pytest.raises(ZeroDivisionError), tune_gc():
        raise ZeroDivisionError
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, (700, 10, 10))


def test_garbage_from_before_the_block_is_not_frozen():
    """It would stay until the end of the block."""
    gc.disable()
    thing = circle()
    with tune_gc():
        assert thing() is None


def test_what_is_frozen_is_freed_when_its_last_reference_goes():
    """Only the collector does not look at it."""
    thing = Thing()
    watched = weakref.ref(thing)
    with tune_gc():
        del thing
        assert watched() is None


def test_garbage_that_others_make_in_circles_does_not_pile_up():
    """Nobody calls `gc.collect`: of 50,000 circles no more are left than the threshold lets wait."""
    gc.enable()
    with tune_gc():
        watched = [circle() for _ in range(50_000)]
        assert sum(thing() is not None for thing in watched) <= 5_000


@pytest.mark.parametrize(
    ("found", "inside"),
    [
        ((50_000, 20, 5), (50_000, 20, 10)),
        ((2_000, 10, 0), (5_000, 10, 0)),
        ((0, 10, 10), (0, 10, 10)),
    ],
)
def test_thresholds_that_others_have_set_are_not_lowered(found, inside):
    """0 means never: it stays."""
    gc.set_threshold(*found)
    with tune_gc():
        assert gc.get_threshold() == inside
    assert gc.get_threshold() == found


def test_thresholds_that_others_set_inside_the_block_stay():
    """They know about the block, and it does not know about them."""
    with tune_gc():
        gc.set_threshold(9_000, 9, 9)
    assert gc.get_threshold() == (9_000, 9, 9)


def test_objects_that_others_have_frozen_stay_frozen(monkeypatch):
    """They do that before a fork, for example: nobody can tell them from ours any more."""
    monkeypatch.setattr("scheduler._tune_gc.OF_PYTHON", 1_000)
    gc.freeze()
    frozen = gc.get_freeze_count()
    with tune_gc():
        assert gc.get_freeze_count() <= frozen
    assert gc.get_freeze_count() == pytest.approx(frozen, rel=0.01)


def test_collections_that_are_off_stay_off():
    """Nor are they switched off."""
    gc.disable()
    with tune_gc():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_the_last_to_leave_restores():
    """Schedulers of several threads may overlap. Each that enters has frozen what is loaded by then."""
    first, second = ExitStack(), ExitStack()
    first.enter_context(tune_gc())
    things = [Thing() for _ in range(1_000)]
    seen = []
    thread = threading.Thread(target=lambda: seen.append(second.enter_context(tune_gc())))
    thread.start()
    thread.join()
    assert seen
    assert not any(each is things for each in gc.get_objects())  # it is frozen too
    first.close()
    assert gc.get_threshold() == (5_000, 10, 10)
    assert gc.get_freeze_count() > 10_000
    second.close()
    assert gc.get_threshold() == (700, 10, 10)
    assert gc.get_freeze_count() == 0


async def test_jobs_that_are_replaced_all_the_time_bring_no_collection(clock):
    """As many objects go as come, so that the collector's count of new ones hardly grows: a collection of all would
    stop the loop. Runs, their timeouts and removed jobs once stayed until one came.
    """
    gc.enable()
    full = []

    def note(phase, info):
        if phase == "stop" and info["generation"] == 2:
            full.append(info)

    async with Scheduler(clock=clock) as s:
        for number in range(200):
            s.add(clock.sleep, Every(f"{5 + number % 7}s"), id=str(number), args=(0.1,), timeout="10m")
        with tune_gc():
            gc.callbacks.append(note)
            try:
                for number in range(2_000):
                    s.get(str(number)).remove()
                    s.add(clock.sleep, Every("5s"), id=str(number + 200), args=(0.1,), timeout="10m")
                    if not number % 20:
                        await clock.travel(0.5)
            finally:
                gc.callbacks.remove(note)
    assert s.statistics().runs > 1_000
    assert full == []
