"""`timerqueue worker`: a process that runs what others have added, on a real PostgreSQL and a real beanstalkd."""

import os
import signal
import subprocess
import sys

import pytest
from anyio.to_thread import run_sync

from kit import until
from older_code import code_of
from scheduler import Scheduler
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.stores.postgres import PostgresStore

TASKS = """
import os, time

def note(name):
    with open({log!r}, "a") as file:
        file.write(f"{{os.getpid()}} {{name}}\\n")

def hold(name):
    note(name)
    time.sleep(600)

TASKS = {{"note": note, "hold": hold}}
NOTHING = 7
"""


@pytest.fixture
def log(tmp_path):
    (tmp_path / "mine.py").write_text(TASKS.format(log=str(tmp_path / "log")))
    (tmp_path / "log").touch()
    return tmp_path / "log"


BEFORE_LABELS = "d94fc4ef1903def2944ab06335a24ccfa5c62323"
"""The last commit before jobs in a queue could be for agents with some labels."""


def worker(folder, dsn, broker, *more, tasks="mine:TASKS", code=None):
    """Start a worker in that folder, of older code perhaps."""
    package = "uptime_agent" if code is None else "scheduler.agent"  # where it lay then
    command = [sys.executable, "-m", package, "worker", tasks, "--store", dsn, "--queue", broker]
    return subprocess.Popen(
        [*command, *more],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | ({} if code is None else {"PYTHONPATH": str(code)}),
    )


def pids(log):
    """Return who has run something, in that order."""
    return [int(line.split()[0]) for line in log.read_text().splitlines()]


async def test_workers_run_what_another_program_has_added(postgres_server, postgres_schema, broker, log, url):
    """The one that adds ends first. One worker is killed, the other goes on, and a signal ends it cleanly."""
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True)
    s = Scheduler(store=store, queue=BeanstalkdQueue(broker.address))
    s.register("note", lambda name: None)
    async with s:
        for number in range(20):
            s.add("note", "@every 1s", id=f"job-{number}", args=[f"job-{number}"])
        await s.flush()
        s.stop(grace=0)
    rest = ["--crash-floor", "1s"]  # of jobs whose runs are cut off: all of them, if the kill meets the second's begin
    workers = [worker(log.parent, url, broker.address, "--name", f"worker-{number}", *rest) for number in range(2)]
    try:
        await until(lambda: {each.pid for each in workers} <= set(pids(log)))
        workers[0].kill()
        workers[0].wait()
        before = pids(log).count(workers[1].pid)
        await until(lambda: pids(log).count(workers[1].pid) >= before + 60)
        workers[1].send_signal(signal.SIGTERM)
        assert workers[1].wait(60) == 0
        assert "takes what is due" in workers[1].stdout.read()
    finally:
        for each in workers:
            each.kill()
            each.communicate()


def pids_of(log, prefix):
    """Return who has run jobs whose names begin so."""
    return {int(pid) for pid, name in map(str.split, log.read_text().splitlines()) if name.startswith(prefix)}


async def test_workers_take_what_fits_their_labels(postgres_server, postgres_schema, broker, log, url):
    """One of those that fit is killed with a run: the other one makes up for it, and nobody else."""
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True)
    s = Scheduler(store=store, queue=BeanstalkdQueue(broker.address, reservers=0))
    s.register("note", lambda name: None)
    s.register("hold", lambda name: None)
    async with s:
        for number in range(10):
            s.add("note", "@every 1s", id=f"eu-{number}", args=[f"eu-{number}"], where="region=eu")
            s.add("note", "@every 1s", id=f"any-{number}", args=[f"any-{number}"])
        s.add("hold", "@every 1h", id="long", args=["long"], where="region=eu", delivery="at_least_once").run_now()
        await s.flush()
        s.stop(grace=0)
    labels = ["region=eu", "region=eu,zone=a", "region=us"]
    names = ["one", "two", "us"]
    workers = [
        worker(log.parent, url, broker.address, "--name", name, "--labels", text, "--crash-floor", "1s")
        for name, text in zip(names, labels, strict=True)
    ]
    fit, us = {workers[0].pid, workers[1].pid}, workers[2].pid
    try:
        await until(lambda: pids_of(log, "eu-") == fit and us in pids_of(log, "any-"))
        await until(lambda: pids_of(log, "long"))
        (first,) = pids_of(log, "long")
        (killed,) = (each for each in workers if each.pid == first)
        killed.kill()
        killed.wait()
        await until(lambda: pids_of(log, "long") == fit)
        before = len(pids(log))
        await until(lambda: len(pids(log)) >= before + 60)
        assert us not in pids_of(log, "eu-")
    finally:
        for each in workers:
            each.kill()
            each.communicate()


@pytest.mark.slow
async def test_an_older_worker_leaves_jobs_for_labels_alone(
    postgres_server, postgres_schema, broker, log, url, tmp_path_factory
):
    """It audits when it has buried a newer one, and puts what that left to where anybody takes it. Nobody else runs it.

    It has been there from before the tables were brought up to date: who comes later has to be as new as they are.
    """
    at, rest, workers = (log.parent, url, broker.address), ["--crash-floor", "1s"], []

    def start(*more, **options):
        workers.append(worker(*at, *more, *rest, **options))
        return workers[-1]

    try:
        older = start(code=code_of(BEFORE_LABELS, tmp_path_factory.mktemp("older")))
        assert "takes what is due" in await run_sync(older.stdout.readline)
        store = PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True)
        s = Scheduler(store=store, queue=BeanstalkdQueue(broker.address, reservers=0))
        s.register("note", lambda name: None)
        async with s:
            for name, where in (("eu", "region=eu"), ("any", None)):
                for number in range(10):
                    s.add("note", "@every 1s", id=f"{name}-{number}", args=[f"{name}-{number}"], where=where)
            await s.flush()
            s.stop(grace=0)
        newer = start("--labels", "region=eu")
        await until(lambda: pids_of(log, "eu-") == {newer.pid})
        newer.kill()
        newer.wait()
        by_older = pids(log).count(older.pid)
        await until(lambda: pids(log).count(older.pid) > by_older + 80)
        assert pids_of(log, "eu-") == {newer.pid}
        before, again = len(log.read_text().splitlines()), start("--labels", "region=eu")
        await until(
            lambda: {
                name for pid, name in map(str.split, log.read_text().splitlines()[before:]) if int(pid) == again.pid
            } >= {f"eu-{number}" for number in range(10)}
        )  # fmt: skip
        assert older.pid not in pids_of(log, "eu-")
    finally:
        for each in workers:
            each.kill()
            each.communicate()


@pytest.mark.parametrize("labels", ["eu", "region=eu,region=us", ""])
def test_what_are_no_labels_is_told(log, labels):
    """Whoever has none that anybody could ask for would wait in vain."""
    made = worker(log.parent, "postgresql:///nowhere", "broker", "--labels", labels)
    _, errors = made.communicate(timeout=60)
    assert made.returncode == 2
    assert "--labels: " in errors


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        ("mine", "MODULE:NAME"),
        ("nobody_has_this:TASKS", "cannot be imported"),
        ("mine:ABSENT", "make it a dict"),
        ("mine:NOTHING", "make it a dict"),
    ],
)
def test_what_are_no_tasks_is_told(log, tasks, says):
    """Nothing is connected to before the operator's words make sense."""
    made = worker(log.parent, "postgresql:///nowhere", "broker", tasks=tasks)
    _, errors = made.communicate(timeout=60)
    assert made.returncode == 2
    assert says in errors


def test_a_worker_needs_a_store_that_can_be_shared(log, tmp_path):
    """A file is for one process."""
    made = worker(log.parent, f"sqlite:///{tmp_path / 'jobs.sqlite'}", "broker")
    _, errors = made.communicate(timeout=60)
    assert made.returncode == 2
    assert "PostgreSQL" in errors
