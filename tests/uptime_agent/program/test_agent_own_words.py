"""What the agent says of itself is true: who is checked, what is left out and why, how late it was, why it ends."""

import io
import os
import pty
import re
import signal
import sqlite3
import sys
from contextlib import closing, suppress
from urllib.parse import quote

import anyio
import psycopg
import pytest

from kit import PATIENCE, when
from scheduler import JobChanged, JobState, Outcome, RunEnded, SchedulerStarted, SchedulerStopped, ScopePaused
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.checks.tcp.tcp_check import TcpCheck
from uptime_agent.show.lines import PlainLines, summary_text
from uptime_agent.show.monitor import Monitor
from uptime_agent.standing.board import Board
from uptime_agent.standing.report import report_of
from uptime_agent.standing.status import TargetStatus
from uptime_agent.text.url import Url

UP = CheckResult(status=Status.UP, latency=0.1)
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")


@pytest.fixture(scope="module")
def anyio_backend():
    """The process under test has a loop of its own; which one the test uses makes no difference."""
    return "asyncio"


def told(*events):
    """Let a board of one target hear events; return the notices that are shown, and the board."""
    stream = io.StringIO()
    board = Board([TargetStatus("a", "http://h", "http")])
    board.subscribe(Monitor(PlainLines(stream, lambda: 1000.0), lambda: None).hear)
    for event in events:
        board.listen(event)
    return [line.partition("NOTICE")[2].strip() for line in stream.getvalue().splitlines() if "NOTICE" in line], board


PAUSED = JobChanged("a", JobState.DISABLED, "repair")
UPDATED = JobChanged("a", JobState.DISABLED, "updated")
RESUMED = JobChanged("a", JobState.SCHEDULED, "resumed")


@pytest.mark.parametrize(
    ("events", "notices"),
    [
        ([PAUSED, RESUMED], ["a is not checked: repair", "a is checked again"]),
        ([PAUSED, UPDATED, RESUMED], ["a is not checked: repair", "a is checked again"]),
        ([UPDATED, RESUMED], []),
        ([PAUSED, PAUSED], ["a is not checked: repair"] * 2),
        ([JobChanged("a", JobState.DISABLED, "next start set")], []),
        ([ScopePaused("*", "holidays"), UPDATED], ["paused: everything: holidays"]),
        ([RESUMED, JobChanged("a", JobState.RUNNING, "updated")], []),
    ],
)
def test_it_says_who_is_not_checked_and_who_is_again(events, notices):
    """An update of what is paused is no news of its pause."""
    assert told(*events)[0] == notices


def ended(due, started, lateness):
    """Make the end of a run that found its target up."""
    return RunEnded(
        "a",
        when(due),
        when(started),
        when(started + 0.1),
        1,
        lateness,
        0.1,
        Outcome.SUCCEEDED,
        results=(report_of([UP], TargetStatus("a", "http://h", "http")),),
    )


def test_a_run_is_not_later_than_the_agent_has_run():
    """What was due before the start is late through the agent from then on."""
    _, board = told(
        SchedulerStarted(when(1000.0)),
        ended(953.5, 1000.1, 46.6),
        ended(1005.0, 1005.3, 0.3),
        SchedulerStopped(when(1012.0), ()),
    )
    assert "started at most 300 ms late" in summary_text(board.summary())


SECONDS = re.compile(r"  started ([0-9.]+) s late$")
LONG_AGO = 5.0
AT_MOST = re.compile(r"started at most ([0-9.]+) (ms|s) late")


async def test_a_check_that_was_due_before_the_start_makes_no_start_late(started, ran, up, tmp_path):
    """The whole program: of two hundred checks some were due within the last twenty seconds, and begin now."""
    file, store = tmp_path / "uptime.toml", tmp_path / "uptime.db"
    checks = "".join(f'[[check]]\nname = "{n}"\nurl = "http://127.0.0.1:{up.port}"\n' for n in range(200))
    file.write_text(f'[defaults]\ninterval = "200s"\n{checks}')
    await ran("run", str(file), "--for", "100ms")
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE job_state SET next_us = next_us - 200000000")
    async with started("run", str(file)) as command:
        told = 0.0
        while told < LONG_AGO:
            told = float(SECONDS.search(await command.line_with("  started ", " s late")).group(1))
        command.process.send_signal(signal.SIGTERM)
        assert await command.end() == 0
    late, unit = AT_MOST.search(command.lines[-1]).groups()
    assert float(late) * (1e-3 if unit == "ms" else 1) < told - 1


async def test_somebody_changes_and_resumes_a_target_in_one_statement(started, config, tmp_path):
    """It is said that it is checked again, and nothing else."""
    file, store = config(), tmp_path / "uptime.db"

    def execute(sql):
        with closing(sqlite3.connect(store)) as database, database:
            database.execute(sql)

    async with started("run", file) as command:
        await command.line_with("-> UP", "site")
        execute("UPDATE job SET paused = 'maintenance' WHERE id = 'site'")
        await command.line_with("NOTICE", "site is not checked: maintenance")
        execute("UPDATE job SET paused = NULL, schedule = '@every 200ms' WHERE id = 'site'")
        await command.line_with("NOTICE", "site is checked again")
        command.process.send_signal(signal.SIGTERM)
        assert await command.end() == 0
    assert not any("is not checked: updated" in line for line in command.lines)


async def test_a_store_that_is_locked_is_not_called_a_lack_of_room(started, config, tmp_path):
    """What its checks wait for is named."""
    file, store = config(), tmp_path / "uptime.db"
    async with started("run", file) as command:
        await command.line_with("-> UP", "site")
        with closing(sqlite3.connect(store, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            await anyio.sleep(3)
            other.execute("ROLLBACK")
        await command.line_with("MISSED", "left out: the store did not record their starts in time")
        await command.line_with(" UP ", "site")
        command.process.send_signal(signal.SIGTERM)
        assert await command.end() == 0
    assert not any("no room" in line for line in command.lines)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_server_that_says_something_else_has_answered(serve, target_check):
    """Not what was expected, and how much, is told when the time is over."""

    async def greeting(server, stream):
        await stream.send(b"500 go away")
        while True:
            await stream.receive()

    server = await serve(greeting)
    check = TcpCheck(url=Url("tcp", "127.0.0.1", server.port), expect="220")
    result = await target_check(check, timeout=2).run()
    peer = f"127.0.0.1:{server.port}"
    assert (result.status, result.error) == (
        Status.DOWN,
        f'11 bytes without "220" from {peer} within 2 s (receive)',
    )


@pytest.fixture
def hangups():
    """Have programs that are started here hear of hangups, although the tests themselves may run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@posix
@pytest.mark.usefixtures("hangups")
async def test_without_a_terminal_a_hangup_has_the_file_read_again(started, config):
    """As others do it; nothing has changed in it here."""
    async with started("run", config()) as command:
        await command.line_with("-> UP", "site")
        command.process.send_signal(signal.SIGHUP)
        await command.line_with("NOTICE", "configuration read again: nothing has changed")
        await command.line_with(" UP ", "site")
        command.process.send_signal(signal.SIGTERM)
        assert await command.end() == 0


@posix
@pytest.mark.usefixtures("hangups")
async def test_an_agent_whose_terminal_goes_away_stops_orderly(environment, config, tmp_path):
    """No check is recorded as crashed; and the output may lead elsewhere, as long as it was started there."""
    ours, theirs = pty.openpty()
    file = config()
    command = [sys.executable, "-m", "uptime_agent", "run", file]
    with anyio.fail_after(PATIENCE):
        process = await anyio.open_process(command, stdin=theirs, env=environment(), start_new_session=True)
        os.close(theirs)
        received = b""
        while b"-> UP" not in received:
            received += await process.stdout.receive()
        process.send_signal(signal.SIGHUP)
        with suppress(anyio.EndOfStream):
            while True:
                received += await process.stdout.receive()
        assert await process.wait() == 0
    os.close(ours)
    assert b"stopped after" in received.splitlines()[-1]
    with closing(sqlite3.connect(tmp_path / "uptime.db")) as database:
        outcomes = {row[0] for row in database.execute("SELECT DISTINCT outcome FROM tick")}
    assert not {"running", "crashed"} & outcomes


@posix
async def test_nohup_is_respected(environment, config):
    """What is ignored from the start stays so, with a terminal too."""
    ours, theirs = pty.openpty()
    shell = f'trap "" HUP; exec {sys.executable} -m uptime_agent run {config()}'
    with anyio.fail_after(PATIENCE):
        process = await anyio.open_process(["sh", "-c", shell], stdin=theirs, env=environment())
        received = b""
        while b"-> UP" not in received:
            received += await process.stdout.receive()
        process.send_signal(signal.SIGHUP)
        seen = len(received)
        while b" UP " not in received[seen:]:
            received += await process.stdout.receive()
        process.send_signal(signal.SIGTERM)
        with suppress(anyio.EndOfStream):
            while True:
                received += await process.stdout.receive()
        assert await process.wait() == 0
    os.close(ours)
    os.close(theirs)
    assert b"SIGHUP" not in received


@pytest.fixture
def database(postgres_server, numbers=iter(range(100))):  # noqa: B008 - one count for the session
    """Make an empty database: its URL."""
    name = f"agent_words_{next(numbers)}"
    with closing(psycopg.connect(postgres_server.dsn, autocommit=True)) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    return f"postgresql:///{name}?host={quote(str(postgres_server.folder))}&user=postgres"


async def test_an_agent_whose_store_is_taken_over_says_so_and_ends(started, config, database, tmp_path):
    """With exit code 1, on standard error too; the other one goes on."""
    file = config()
    with (tmp_path / "errors").open("wb") as errors:
        async with started("run", file, "--store", database, stderr=errors) as first:
            await first.line_with("-> UP", "site")
            async with started("run", file, "--store", database) as second:
                await first.line_with("NOTICE", "stopping, because the store is another agent's now", "process")
                assert await first.end() == 1
                await second.line_with(" UP ", "site")
                second.process.send_signal(signal.SIGTERM)
                assert await second.end() == 0
    assert "stopped after" in first.lines[-1]
    told = (tmp_path / "errors").read_text().splitlines()[-1]
    assert told.startswith("stopped, because the store is another agent's now: PostgreSQL at ")


async def test_agents_with_schemas_of_their_own_share_a_database(started, ran, config, database):
    """Neither takes over the other, nor what a program keeps in the default schema of stores."""
    file = config()
    async with started("run", file, "--store", database) as first:
        await first.line_with("-> UP", "site")
        async with started("run", file, "--store", f"{database}&schema=up+two") as second:
            line = await second.line_with("keeps history in")
            assert "schema=up+two" in line
            await second.line_with(" UP ", "site")
            await first.line_with(" UP ", "site")
            second.process.send_signal(signal.SIGTERM)
            assert await second.end() == 0
        first.process.send_signal(signal.SIGTERM)
        assert await first.end() == 0
    with closing(psycopg.connect(database)) as look:
        found = {row[0] for row in look.execute("SELECT table_schema FROM information_schema.tables")}
    assert {"timerqueue_agent", "up+two"} <= found
    assert not {"timerqueue", "public"} & found
    code, out, _ = await ran("history", "--store", f"{database}&schema=up%2Btwo", "--limit", "1")
    assert (code, out.count("\n")) == (0, 1)


@posix
async def test_history_is_in_the_order_of_its_times(ran, config, tmp_path):
    """Which are those of the starts, though the store keeps records by when they were due."""
    file, store = config(), tmp_path / "uptime.db"
    await ran("run", file, "--for", "600ms")
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE tick SET started_us = started_us + 50000 WHERE job_id = 'site'")
    code, out, _ = await ran("history", "--config", file)
    assert code == 0
    assert "site" in out
    assert out.splitlines() == sorted(out.splitlines())
