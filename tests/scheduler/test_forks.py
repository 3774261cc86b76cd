"""A scheduler in a process that was forked off its own: it does not run there, and says so whatever it is asked for."""

import multiprocessing
import os
import threading
import warnings
from datetime import timedelta
from threading import Thread

import anyio
import pytest

from forks import error_of, in_fork, refusal
from kit import PATIENCE, wait_until
from scheduler import Job, LifecycleError, RunEnded, Scheduler, SchedulerState
from scheduler.queues.local import LocalQueue
from scheduler.stores import Retention, StoreForked, StoreUnusable
from scheduler.stores.memory import MemoryStore
from scheduler.stores.sqlite import SQLiteStore
from timerqueue.testing import START

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")


def work():
    """Do nothing."""


@pytest.fixture(params=[None, "sqlite"])
def running(request, tmp_path):
    """A scheduler that runs in a thread, as beside Flask."""
    s = Scheduler(store=None if request.param is None else f"sqlite:///{tmp_path / 'jobs.db'}")
    s.register("work", work)
    thread = Thread(target=anyio.run, args=(s.run,))
    thread.start()
    wait_until(lambda: s.state is SchedulerState.RUNNING)
    yield s
    s.stop()
    thread.join(PATIENCE)


VERBS = {
    "add": lambda s: s.add("work" if s._memory else work, "@every 1s", id="new"),
    "add_many": lambda s: s.add_many("work" if s._memory else work, [("new", "@every 1s")]),
    "audit": lambda s: s.audit(),
    "changes": lambda s: s.changes(),
    "events": lambda s: s.events(),
    "fleet": lambda s: s.fleet(),
    "flush": lambda s: s.flush(),
    "get": lambda s: s.get("old"),
    "history": lambda s: s.history(),
    "jobs": lambda s: s.jobs(),
    "listen": lambda s: s.listen(print, RunEnded),
    "pause": lambda s: s.pause(),
    "pauses": lambda s: s.pauses(),
    "reconcile": lambda s: s.reconcile(),
    "register": lambda s: s.register("more", work),
    "remove": lambda s: s.remove("old"),
    "resize": lambda s: s.resize(5),
    "resume": lambda s: s.resume(),
    "run": lambda s: s.run(),
    "run_once": lambda s: s.run_once(),
    "runs": lambda s: s.runs(),
    "statistics": lambda s: s.statistics(),
    "sync": lambda s: s.sync([], owner="red"),
    "task": lambda s: s.task("more")(work),
    "turn": lambda s: s.turn(),
    "why": lambda s: s.why("old"),
}
OF_JOBS = {
    "disable": lambda job: job.disable(),
    "enable": lambda job: job.enable(),
    "info": lambda job: job.info(),
    "next_start": lambda job: job.next_start,
    "next_starts": lambda job: job.next_starts(2),
    "pause": lambda job: job.pause(),
    "remove": lambda job: job.remove(),
    "resume": lambda job: job.resume(),
    "run_now": lambda job: job.run_now(),
    "set_next_start": lambda job: job.set_next_start(START + timedelta(days=365)),
    "skip": lambda job: job.skip(),
    "supersede": lambda job: job.supersede(),
    "update": lambda job: job.update(schedule="@every 2s"),
}


def public(thing):
    """Return the names that users see."""
    return {name for name in dir(thing) if not name.startswith("_")}


def test_each_verb_is_looked_at(running):
    """A new verb has to be in one of the tables, or it is an attribute that only tells what was copied."""
    job = running.add("work" if running._memory else work, "@every 1s", id="old")
    assert public(Scheduler) - VERBS.keys() == {"state", "stop"}
    attributes = {name for name in public(job) if isinstance(getattr(Job, name), property)}
    assert public(job) - OF_JOBS.keys() == attributes - OF_JOBS.keys() | {"statistics"}


def test_in_a_fork_every_verb_says_that_it_is_one(running):
    """It said RUNNING there; `add` answered with a job that never ran, and `result` waited for ever."""
    job = running.add("work" if running._memory else work, "@every 1h", id="old")

    def ask():
        said = {name: refusal(verb, running) for name, verb in VERBS.items()}
        said |= {f"job.{name}": refusal(verb, job) for name, verb in OF_JOBS.items()}
        return [said, running.state.name, repr(job)]

    said, state, text = in_fork(ask)
    assert state == "STOPPED"
    assert "'old'" in text
    wrong = {verb: answer for verb, answer in said.items() if "LifecycleError" not in answer[0]}
    assert not wrong
    names = f"belongs to process {os.getpid()}, and this is process "
    assert [verb for verb, (_, text) in said.items() if names not in text or "a fork of it" not in text] == []
    assert [verb for verb, (_, text) in said.items() if "post_fork" not in text] == []


def test_the_parent_goes_on(running):
    """A fork, and all that is refused in it, changes nothing for the parent."""
    job = running.add("work" if running._memory else work, "@every 1h", id="old")
    in_fork(lambda: refusal(job.remove))
    assert job.run_now().result(PATIENCE).error is None


def test_a_stop_in_a_fork_changes_nothing(running):
    """What was registered with `atexit` is called in children, too."""
    assert in_fork(running.stop) is None
    assert running.state is SchedulerState.RUNNING


def test_a_run_that_was_asked_for_before_the_fork_ends_in_the_parent():
    """Its `result` waited for ever in the child."""
    s = Scheduler()
    asked = s.add(work, "@every 1h").run_now()
    (names, text) = in_fork(lambda: refusal(asked.result))
    assert "LifecycleError" in names
    assert "a fork of it" in text


def test_a_scheduler_that_has_not_run_is_its_makers_too():
    """Under `gunicorn --preload` the fork may come before the thread has begun: then nobody ever ran it."""
    s = Scheduler()
    (names, text) = in_fork(lambda: refusal(s.add, work, "@every 1s"))
    assert "LifecycleError" in names
    assert "a fork of it" in text


def test_a_fork_while_another_thread_holds_the_locks_does_not_hang():
    """The thread that would let go of them does not exist in the child."""
    s = Scheduler()
    queue = s._core.queue
    held, done = threading.Event(), threading.Event()

    def hold():
        with s._jobs.lock, queue._lock, s._lifecycle._lock:
            held.set()
            done.wait(PATIENCE)

    thread = Thread(target=hold)
    thread.start()
    held.wait(PATIENCE)
    try:
        said = in_fork(lambda: [refusal(s.add, work, "@every 1s"), refusal(queue.push, 0, work), refusal(s.run)])
    finally:
        done.set()
        thread.join()
    assert ["LifecycleError" in names for names, _ in said] == [True] * 3


def test_a_scheduler_made_after_the_fork_works(running):
    """This is the recipe."""

    def run_one():
        async def main():
            async with Scheduler() as s:
                return (await s.add(work, "@every 1h").run_now()).outcome.name

        return anyio.run(main)

    assert in_fork(run_one) == "SUCCEEDED"


def answer(use, answers):
    """In a child of multiprocessing: say how it refuses."""
    answers.put(refusal(use))


def use_own(answers):
    """In a child of multiprocessing: run one of its own."""

    async def main():
        async with Scheduler() as s:
            return (await s.add(work, "@every 1h").run_now()).outcome.name

    answers.put(anyio.run(main))


def child_of(method, target, *args):
    """Return what a child of multiprocessing puts into the queue that `target` gets last."""
    context = multiprocessing.get_context(method)
    answers = context.SimpleQueue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = context.Process(target=target, args=(*args, answers))
        child.start()
    said = answers.get()
    child.join(PATIENCE)
    return said


def test_a_child_of_multiprocessing_that_is_forked_refuses():
    """It has a copy, whichever way it came by it."""
    s = Scheduler()
    names, text = child_of("fork", answer, s.jobs)
    assert "LifecycleError" in names
    assert "multiprocessing" in text


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("what", ["scheduler", "job", "store", "queue"])
def test_nothing_is_sent_to_a_child_that_starts_anew(method, what):
    """It said that a lock cannot be pickled."""
    s = Scheduler()
    things = {"scheduler": s, "job": s.add(work, "@every 1h"), "store": MemoryStore(), "queue": LocalQueue()}
    context = multiprocessing.get_context(method)
    with pytest.raises(LifecycleError, match="cannot be copied, nor sent to another process: make one there"):
        context.Process(target=print, args=(things[what],)).start()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_scheduler_of_a_childs_own_works(method):
    """However the child was made."""
    assert child_of(method, use_own) == "SUCCEEDED"


# -- stores and queues -------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "jobs.db")
    yield store
    store.close()


def test_an_open_store_refuses_in_a_fork(store):
    """Its connections, or its dicts, are the parent's."""
    store.open(0, work)
    asked = {
        "load": lambda: list(store.load()),
        "pauses": store.pauses,
        "running": store.running,
        "owed": store.owed,
        "changes": store.changes,
        "history": store.history,
        "prune": lambda: store.prune(Retention(), 0),
    }
    said = in_fork(lambda: {name: refusal(verb) for name, verb in asked.items()} | {"close": store.close()})
    assert said.pop("close") is None
    assert {verb for verb, answer in said.items() if "LifecycleError" not in answer[0]} == set()
    assert {verb for verb, answer in said.items() if "StoreUnusable" not in answer[0]} == set()
    assert {verb for verb, (_, text) in said.items() if "fork of it" not in text} == set()
    assert store.running() == []


def test_a_store_that_was_not_open_is_opened_after_the_fork(store):
    """Before that it is nothing but its address."""
    assert in_fork(lambda: store.open(0, work).epoch) == 1


def test_a_child_that_lives_on_does_not_keep_the_database_locked(tmp_path):
    """The kernel's lock belongs to all copies of the descriptor: the parent's next start said "in use by process"."""
    store = SQLiteStore(tmp_path / "jobs.db")
    store.open(0, work)
    (reads, writes), (waits, ends) = os.pipe(), os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.write(writes, b"!")
        os.read(waits, 1)  # until the parent closes its end
        os._exit(0)
    os.read(reads, 1)
    try:
        store._session._lock._file, file = None, store._session._lock._file
        os.close(file)  # as the parent's death does
        again = SQLiteStore(tmp_path / "jobs.db")
        again.open(0, work)
        again.close()
    finally:
        store.close()
        os.write(ends, b"!")
        os.waitpid(child, 0)
        for each in (reads, writes, waits, ends):
            os.close(each)


def test_a_queue_refuses_in_a_fork():
    """What stands in it stands in the parent."""
    queue = LocalQueue()
    queue.open(None, None, None)
    names, _ = in_fork(lambda: refusal(queue.put, [None]))
    assert "LifecycleError" in names


def test_the_error_of_a_store_is_both():
    """Who catches errors of stores goes on doing so."""
    assert issubclass(StoreForked, StoreUnusable)
    assert issubclass(StoreForked, LifecycleError)
    assert "StoreForked" in error_of(StoreForked("x"))[0]
