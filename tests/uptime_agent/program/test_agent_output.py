"""The agent whose output is full, closed, or has no letters for what is to be shown."""

import errno
import json
import logging
import sys

import anyio
import pytest

from kit import PATIENCE, until
from timerqueue import SystemClock
from uptime_agent.app import RunPlan, run
from uptime_agent.config.config import parse_config
from uptime_agent.logs import StderrHandler
from uptime_agent.show.display import NotShown

AGENT = f"{sys.executable} -m uptime_agent"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full and a POSIX shell")


@pytest.fixture(scope="module")
def anyio_backend():
    """Most processes under test have a loop of their own; which one the test uses makes no difference."""
    return "asyncio"


@pytest.fixture
def shell(environment):
    """Run a line of a shell in which $AGENT is the command: (exit code, standard output, standard error)."""

    async def run_line(line, **variables):
        with anyio.fail_after(PATIENCE):
            done = await anyio.run_process(line, check=False, env=environment(AGENT=AGENT, **variables))
        return done.returncode, done.stdout, done.stderr.decode()

    return run_line


@pytest.mark.parametrize("options", ["--for 1h", "--once", "--json --for 1h"])
async def test_a_full_disk_ends_the_agent_and_is_told_once(shell, up, options):
    """On standard error, without a traceback, and with the exit code of a failure."""
    code, _, err = await shell(f"$AGENT watch http://127.0.0.1:{up.port} {options} > /dev/full")
    assert (code, err) == (1, "cannot write the output: no space left on device\n")


@pytest.mark.parametrize("command", ["check {}", "next @hourly", "run {} --for 1h"])
async def test_every_command_says_that_its_output_cannot_be_written(shell, config, command):
    """And none shows a traceback, though nothing is left to be told anything if standard error is full as well."""
    file = config()
    code, _, err = await shell(f"$AGENT {command.format(file)} > /dev/full")
    assert (code, err) == (1, "cannot write the output: no space left on device\n")
    code, _, _ = await shell(f"$AGENT {command.format(file)} > /dev/full 2>&1")
    assert code == 1


class FullAfterTheStart:
    """A display on a disk that is full once something has been checked."""

    refresh_every = None

    def __init__(self, *, is_broken=False):
        self.is_broken = is_broken
        self.checks = []

    def started(self, view):
        if self.is_broken:
            raise ValueError("a defect")

    def checked(self, target, *, is_change):
        self.checks.append(target.name)
        raise OSError(errno.ENOSPC, "No space left on device")

    def stopped(self, summary):
        assert self.is_broken


async def run_agent(text, display, plan):
    """Run the agent with a configuration of that text, in memory."""
    config = parse_config('store = "memory"\n' + text, "uptime.toml", {})
    with anyio.fail_after(PATIENCE):
        return await run(config, display, plan, SystemClock())


async def test_a_disk_that_fills_up_lets_running_checks_end(serve, answers):
    """As the first Ctrl-C does; nothing more is written, and the error is told when all is over."""
    is_asked, has_answered, display = anyio.Event(), [], FullAfterTheStart()

    async def slow(server, stream):
        is_asked.set()
        await until(lambda: display.checks)
        await answers.respond()(server, stream)
        has_answered.append(True)

    async def after_the_slow_one(server, stream):
        await is_asked.wait()
        await answers.respond()(server, stream)

    late, soon = await serve(slow), await serve(after_the_slow_one)
    checks = [("late", late.port), ("soon", soon.port)]
    text = "".join(f'[[check]]\nname = "{n}"\nurl = "http://127.0.0.1:{p}"\nstart = "now"\n' for n, p in checks)
    with pytest.raises(NotShown, match="no space left on device"):
        await run_agent(text, display, RunPlan())
    assert display.checks == ["soon"]
    assert has_answered == [True]


async def test_a_display_with_a_defect_does_not_keep_the_agent_from_its_end(up):
    """The time that it is to run for passes, whatever became of the first line."""
    display = FullAfterTheStart(is_broken=True)
    text = f'[[check]]\nurl = "http://127.0.0.1:{up.port}"\ninterval = "1h"'
    assert await run_agent(text, display, RunPlan(seconds=0.1)) == 0


async def test_what_an_output_has_no_letters_for_is_escaped(shell, free_port, tmp_path):
    """As in a Latin-1 locale: the check's line appears, and so does the first one, which names the store."""
    folder = tmp_path / "Bern→"
    folder.mkdir()
    name = '[[check]]\nname = "Zürich → Bern"\n'
    (folder / "a.toml").write_text(f'{name}url = "tcp://127.0.0.1:{free_port}"\nstart = "now"\n', "utf-8")
    written = tmp_path / "out"
    line = f"$AGENT run {folder}/a.toml --for {PATIENCE:g}s > {written} &"
    wait = f"until grep -qs refused {written}; do sleep 0.05; done; kill $!; wait $!"
    code, _, err = await shell(f"{line} {wait}", PYTHONIOENCODING="latin-1")
    first, check, *_ = written.read_text("latin-1").splitlines()
    assert (code, err) == (0, "")
    assert r"Bern\u2192/a.db" in first
    assert r"Zürich \u2192 Bern  connection refused" in check


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
async def test_a_closed_output_is_as_one_that_leads_nowhere(shell, up, closed):
    """The checks are made, and the exit code says what they found."""
    code, _, err = await shell(f"$AGENT watch http://127.0.0.1:{up.port} --once {closed}")
    assert (code, err) == (0, "")
    assert up.connections == 1


async def test_a_log_that_nobody_reads_stops_nothing(shell, up):
    """Nor is the last line of the output missing."""
    line = f"$AGENT -vv watch http://127.0.0.1:{up.port} --every 50ms --for 300ms"
    code, out, _ = await shell(f"bash -c '{line} 2> >(exec true)'")
    assert code == 0
    assert b"stopped after" in out


def test_a_record_that_cannot_be_written_raises_nothing(monkeypatch):
    """Logging must not end what is logged."""

    class Full:
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    StderrHandler().emit(logging.LogRecord("scheduler", logging.ERROR, "f", 1, "text", (), None))


def test_a_record_is_written_with_its_end_of_line(monkeypatch):
    """Without a buffer, as with PYTHONUNBUFFERED, the output of a task came between a record and its end of line."""

    class Unbuffered:
        parts = ()

        def write(self, text):
            self.parts += (text,)

    monkeypatch.setattr(sys, "stderr", Unbuffered())
    StderrHandler().emit(logging.LogRecord("scheduler", logging.ERROR, "f", 1, "text", (), None))
    assert [part for part in sys.stderr.parts if part] == ["text\n"]


async def test_the_log_is_json_if_that_is_asked_for(ran, config):
    """One object a line, with the job of each run that failed. What is shown stays as it is."""
    file = config()
    code, out, err = await ran("-v", "--log-format", "json", "run", file, "--once")
    assert (code, "db" in out) == (1, True)
    lines = [json.loads(line) for line in err.splitlines()]
    assert {"at", "level", "logger", "message"} <= set.intersection(*map(set, lines))
    assert {each["level"] for each in lines} == {"INFO"}
