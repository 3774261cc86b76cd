"""`timerqueue worker`: a process that runs what others have added, on a real PostgreSQL and a real beanstalkd."""

import signal
import subprocess
import sys

import pytest

from kit import until
from scheduler import Scheduler
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.stores.postgres import PostgresStore

TASKS = """
import os, time

def note(name):
    with open({log!r}, "a") as file:
        file.write(f"{{os.getpid()}} {{name}}\\n")

TASKS = {{"note": note}}
NOTHING = 7
"""


@pytest.fixture
def log(tmp_path):
    (tmp_path / "mine.py").write_text(TASKS.format(log=str(tmp_path / "log")))
    (tmp_path / "log").touch()
    return tmp_path / "log"


def worker(folder, dsn, broker, *more, tasks="mine:TASKS"):
    """Start a worker in that folder."""
    command = [sys.executable, "-m", "scheduler.agent", "worker", tasks, "--store", dsn, "--queue", broker]
    return subprocess.Popen(
        [*command, *more],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
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
