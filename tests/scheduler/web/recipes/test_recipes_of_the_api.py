"""The recipes of docs/control-from-a-program.md: what a reader copies is served by the real servers, and controlled."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from kit import PATIENCE, wait_until
from pages_of_programs import DOCS, blocks_of, write_programs
from scheduler import InvalidJob, JobSpec, Outcome, SchedulerError
from scheduler.web import ApiError, Client, Unreachable

PAGE = "control-from-a-program.md"
RUN = [sys.executable, "-m"]
LOCKS = Path("/proc/locks")


@pytest.fixture
def folder(tmp_path):
    """Hold the programs of the page."""
    write_programs(PAGE, tmp_path)
    return tmp_path


@contextmanager
def running(folder, *command, **pipes):
    """Run a program for as long as the block lasts; it ends by SIGTERM, with status 0 or as that signal ends it."""
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, **pipes)
        try:
            yield process
            process.terminate()
            assert process.wait(PATIENCE) in {0, -signal.SIGTERM}, (folder / "log").read_text()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def listened():
    """Bind a free port, for a program that takes over the socket."""
    return socket.create_server(("127.0.0.1", 0))


@contextmanager
def served(folder, program):
    """Serve an ASGI program with uvicorn; yield the address of the server."""
    with listened() as bound:
        number, port = bound.fileno(), bound.getsockname()[1]
        command = [*RUN, "uvicorn", program, "--fd", str(number)]
        with running(folder, *command, pass_fds=[number]):
            yield f"http://127.0.0.1:{port}"


def until_it_answers(client, folder):
    """Wait until the API answers."""

    def answers():
        try:
            return client.ask("GET", "/readyz").body == {"status": "ok"}
        except (ApiError, Unreachable):
            return False

    wait_until(answers)


def walk(client):
    """Do what the page shows, from an empty store."""
    job = client.add("greet", "@every 1h", id="hello", args=["world"])
    answer = job.run_now().result("30s")
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, "hello world")
    job.pause("new disks")
    assert client.get("hello").pauses[0].reason == "new disks"
    job.resume()
    job.update(schedule="@every 10m", timeout="30s")
    assert client.get("hello").spec == JobSpec(
        "hello", "greet", "@every 10m", args=["world"], timeout="30s", owner="api"
    )
    with pytest.raises(InvalidJob, match="timeout"):
        job.update(timeout="soon")
    assert [each.outcome for each in client.history("hello")] == [Outcome.SUCCEEDED]
    job.remove()
    assert client.jobs() == []


@pytest.mark.parametrize("name", ["with_fastapi", "with_starlette", "with_django"])
def test_a_program_mounts_the_api(folder, name):
    """From an empty folder: jobs are added, changed, paused, run, read and removed."""
    with served(folder, f"{name}:program") as address:
        client = Client(f"{address}/control", token="change-me")
        until_it_answers(client, folder)
        walk(client)


def test_the_program_of_fastapi_is_short():
    """Twenty lines, and no more, besides the scheduler's own module."""
    (program,) = [code for code in blocks_of((DOCS / PAGE).read_text("utf-8")) if "FastAPI(" in code]
    assert len([line for line in program.splitlines() if line and not line.startswith("#")]) <= 20


def test_a_view_of_django_calls_the_scheduler(folder):
    """The scheduler's verbs are called from the thread of a view."""
    with served(folder, "with_django:program") as address:
        client = Client(f"{address}/control", token="change-me")
        until_it_answers(client, folder)
        client.add("greet", "@every 1h", id="hello", args=["world"])
        assert Client(address).ask("GET", "/jobs").body == {"jobs": ["hello"]}


def test_the_client_of_the_page_runs_against_the_program(folder):
    """The first program of the page, as it stands there, against the one with FastAPI."""
    (code,) = [code for code in blocks_of((DOCS / PAGE).read_text("utf-8")) if 'Client("http' in code]
    with served(folder, "with_fastapi:program") as address:
        until_it_answers(Client(f"{address}/control"), folder)
        (folder / "client.py").write_text(re.sub(r"http://127\.0\.0\.1:8000", address, code), "utf-8")
        done = subprocess.run([sys.executable, "client.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@contextmanager
def four_workers(folder):
    """Serve the program with Flask by gunicorn; yield the address of the server."""
    with listened() as bound:
        number, port = bound.fileno(), bound.getsockname()[1]
        command = [*RUN, "gunicorn", "-w", "4", "--bind", f"fd://{number}", "with_flask:program"]
        with running(folder, *command, pass_fds=[number]):
            yield f"http://127.0.0.1:{port}"


def owner_of(folder):
    """Return the process id of the worker that has the scheduler: who holds the lock."""
    inode = (folder / "scheduler.lock").stat().st_ino
    with LOCKS.open() as locks:
        held = [line.split() for line in locks if "->" not in line]
    found = [int(words[4]) for words in held if words[1] == "FLOCK" and words[5].endswith(f":{inode}")]
    return found[0] if found else None


def steadily(verb):
    """Call a verb until it is answered: while no worker has the scheduler, it is not."""
    found = []

    def is_answered():
        try:
            found.append(verb())
        except (ApiError, Unreachable):
            return False
        return True

    wait_until(is_answered)
    return found[0]


@pytest.mark.skipif(not LOCKS.exists(), reason="needs /proc/locks")
def test_four_workers_have_one_scheduler(folder):
    """Each worker answers, whichever has the scheduler; 421 names its address; after a kill -9 another one has it."""
    with four_workers(folder) as address:
        client = Client(f"{address}/control", token="change-me")
        until_it_answers(client, folder)
        status, problem = answer_to_others(address)
        assert (status, problem["owner"]) == (421, f"unix:{folder}/control.sock")
        walk(client)
        for number in range(12):
            assert Client(address).ask("PUT", f"/greetings/{number}").body["id"] == str(number)
        first = owner_of(folder)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: owner_of(folder) not in {first, None})
        found = steadily(client.jobs)
        assert sorted(job.id for job in found) == sorted(map(str, range(12)))
        steadily(lambda: Client(address).ask("PUT", "/greetings/after"))
        assert steadily(lambda: client.get("after").run_now().result("30s")).result == "hello after"


def answer_to_others(address):
    """Ask as a program that follows no address."""
    with pytest.raises(HTTPError) as found, urlopen(f"{address}/control/v1/jobs"):
        pass
    with found.value as answer:
        return answer.code, json.load(answer)


def test_pytest_runs_the_test_of_the_page(folder):
    """As a reader does."""
    command = [*RUN, "pytest", "-q", "-p", "no:cacheprovider", "test_jobs.py"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_errors_of_a_client_are_errors_of_the_library():
    """One `except SchedulerError` takes them all."""
    assert issubclass(ApiError, SchedulerError)
    assert issubclass(Unreachable, (SchedulerError, ConnectionError))
