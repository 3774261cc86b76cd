"""The command `timerqueue` as its users call it: a process with arguments, signals, output and an exit code."""

import json
import os
import pty
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime

import anyio
import pytest
from click.testing import CliRunner

from kit import PATIENCE
from uptime_agent import checks
from uptime_agent.checks import KINDS, Kind
from uptime_agent.checks.http.http_check import HTTP
from uptime_agent.checks.kinds import Kinds
from uptime_agent.cli import cli
from uptime_agent.config.config import parse_config
from uptime_agent.config.preview import config_lines

COMMAND = [sys.executable, "-m", "uptime_agent"]


@pytest.fixture(scope="module")
def anyio_backend():
    """The process under test has a loop of its own; which one the test uses makes no difference."""
    return "asyncio"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_run_checks_until_a_signal_and_stops_cleanly(started, config, number):
    """Both targets are checked again and again; the end is summed up and the exit code is 0."""
    async with started("run", config()) as command:
        await command.line_with("-> UP", "site", "status 200 in", "connect", "late")
        await command.line_with(" UP  ", "site")
        while not any("-> DOWN" in line for line in command.lines):
            await command.line_with(" UP  ", "site")
        command.process.send_signal(number)
        assert await command.end() == 0
    text = "".join(command.lines)
    assert "-> DOWN           db  connection refused by 127.0.0.1" in text
    assert "stopped after" in command.lines[-1]
    assert "1 up, 1 down" in command.lines[-1]


async def test_a_signal_lets_a_running_check_end(started, serve, answers):
    """Its result still counts."""
    is_asked, may_answer = anyio.Event(), anyio.Event()

    async def slow(server, stream):
        is_asked.set()
        await may_answer.wait()
        await answers.respond()(server, stream)

    server = await serve(slow)
    async with started("watch", f"http://127.0.0.1:{server.port}", "--every", "1h") as command:
        await is_asked.wait()
        command.process.send_signal(signal.SIGINT)
        await command.line_with("NOTICE", "stopping")
        may_answer.set()
        await command.line_with("-> UP")
        assert await command.end() == 0


async def test_a_second_signal_stops_at_once(started, serve, answers):
    """What runs is cut off, and the exit code says that the end was not clean."""
    server = await serve(answers.silent)
    async with started("watch", f"http://127.0.0.1:{server.port}", "--every", "1h", "--timeout", "1h") as command:
        await server.connected.wait()
        command.process.send_signal(signal.SIGINT)
        await command.line_with("stopping")
        command.process.send_signal(signal.SIGINT)
        assert await command.end() == 1


async def test_for_ends_by_itself(ran, config):
    """With exit code 0, whatever is down."""
    code, out, _ = await ran("run", config(), "--for", "300ms")
    assert code == 0
    assert "stopped after" in out


async def test_once_checks_everything_one_time(ran, config, up):
    """The exit code is 1 because one target is down."""
    code, out, _ = await ran("run", config(), "--once", "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [event["event"] for event in events] == ["started", "check", "check", "stopped"]
    assert {event["name"]: event["status"] for event in events[1:3]} == {"site": "up", "db": "down"}
    assert up.connections == 1


async def test_once_with_everything_up_is_a_success(ran, up):
    """Exit code 0."""
    code, out, _ = await ran("watch", f"http://127.0.0.1:{up.port}", f"tcp://127.0.0.1:{up.port}", "--once")
    assert (code, out.count("-> UP")) == (0, 2)


async def test_once_ends_on_a_signal_too(started, serve, answers):
    """It was told to stop before it knew, so not everything is well."""
    server = await serve(answers.silent)
    url = f"http://127.0.0.1:{server.port}"
    async with started("watch", url, "--once", "--timeout", "1h") as command:
        await server.connected.wait()
        command.process.send_signal(signal.SIGTERM)
        await command.line_with("stopping")
        command.process.send_signal(signal.SIGTERM)
        assert await command.end() == 1


async def test_all_addresses_of_a_name_are_checked(ran, serve, answers, config):
    """Through the whole program: [hosts], a lookup, subtasks, a verdict, JSON."""
    first = await serve(answers.respond())
    await serve(answers.respond(), host="127.0.0.2", port=first.port)
    extra = f"""
        [[check]]
        name = "many"
        url = "http://many.test:{first.port}"
        mode = "all"
        [hosts]
        "many.test" = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    """
    _, out, _ = await ran("run", config(extra), "--once", "--json")
    (many,) = (event for event in map(json.loads, out.splitlines()) if event.get("name") == "many")
    assert many["status"] == "degraded"
    assert {each["address"]: each["status"] for each in many["results"]} == {
        "127.0.0.1": "up",
        "127.0.0.2": "up",
        "127.0.0.3": "down",
    }


@pytest.mark.parametrize("command", [["run"], ["run", "--once"], ["check"]])
async def test_a_bad_configuration_starts_nothing(ran, config, up, command):
    """Not even the targets that are right. Exit code 2, and the mistake with its line on standard error."""
    file = config('[[check]]\nurl = "http://127.0.0.1"\nintervall = "5s"')
    code, out, err = await ran(*command, file)
    assert (code, out, up.connections) == (2, "", 0)
    assert err == f"{file}:12: unknown key 'intervall' in [[check]] number 3, did you mean 'interval'?\n"


async def test_a_schedule_that_is_over_starts_nothing(ran, config, up):
    """Only the clock can tell, so it is told when it is run, and not with a traceback."""
    file = config('[[check]]\nname = "b"\nurl = "http://127.0.0.1"\nschedule = "0 0 0 1 1 * 2020"')
    code, out, err = await ran("run", file)
    assert (code, out, up.connections) == (2, "", 0)
    assert err.startswith("check 'b': 0 0 0 1 1 * 2020 has no start after now")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["watch"], "Missing argument 'URL...'"),
        (["watch", "localhost"], "did you mean http://localhost?"),
        (["watch", "http://a", "http://a"], "http://a is given twice"),
        (["watch", "http://me:hunter22\u2100@a"], "a host without characters that stand for one of / ? # @ :"),
        (["watch", "http://[::1"], "expected an IPv6 address in brackets, as in http://[::1]:8080/"),
        (["watch", "http://::1:18080/"], 'brackets, as in http://[::1]:8080/, found "http://::1:18080/"'),
        (["watch", "tcp://me:hunter22@::1"], "watch: expected an IPv6 address in brackets, as in http://[::1]:8080/"),
        (["watch", "http://a", "http://a:99999"], 'watch: expected a port from 1 to 65535, found "http://a:99999"'),
        (["watch", "http://a", "--every", "soon"], "expected a duration"),
        (["watch", "http://a", "--mode", "both"], "'both' is not one of 'any', 'all'"),
        (["watch", "http://a", "--once", "--for", "1s"], "--once ends by itself"),
        (["run", "nowhere.toml"], "nowhere.toml: cannot read it: no such file or directory"),
        (["next", "0", "9", "*", "*", "mon"], 'it is one argument: timerqueue next "0 9 * * mon"'),
        (["next", "-n", "3", "@every", "10s"], 'it is one argument: timerqueue next "@every 10s"'),
        (["next", "0", "9", "a.txt", "b.txt", "b.txt"], 'expression, it is one argument, as in timerqueue next "0 9'),
        (["next"], "Missing argument 'EXPRESSION'"),
        (["next", "every 5s"], 'did you mean "@every 5s"?'),
        (["next", "* * * * *", "--tz", "Europe/Atlantis"], "Atlantis"),
        (["next", "@every 10s", "--tz", "America"], "there is no zone 'America': use an IANA name"),
        (["next", "@at 9999-12-31T23:59:59Z", "--tz", "Asia/Tokyo"], "a start has no date in Asia/Tokyo"),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_a_wrong_call_says_what_is_right(args, message):
    """Exit code 2, nothing on standard output."""
    result = CliRunner().invoke(cli, args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert "hunter22" not in result.stderr


def test_the_help_has_the_schemes_of_all_kinds(monkeypatch):
    """Those of other distributions too."""
    theirs = Kind("greeting", {"greeting": 25}, HTTP.make)
    monkeypatch.setattr(checks, "known_kinds", lambda: Kinds((*KINDS, theirs)))
    told = " ".join(CliRunner().invoke(cli, ["watch", "--help"]).stdout.split())
    assert told.endswith("push://, greeting://")
    assert "Schemes: http://, https://, tcp://, tls://, dns://, " in told


async def test_check_says_what_would_run(ran, config, up):
    """Targets, next starts and load, without a single connection."""
    code, out, _ = await ran("check", config('[[check]]\nurl = "http://h"\nschedule = "0 0 30 * *"'))
    assert (code, up.connections) == (0, 0)
    assert f"site: http http://127.0.0.1:{up.port}, @every 100ms, timeout 10 s" in out
    assert out.count("next: ") == 3
    assert "note: day-of-month 30 is not in every month" in out
    assert "load: 3 targets, 20 checks per second" in out
    assert "total: 3 at a time, limit 500: fits" in out or "total: 2 at a time, limit 500: fits" in out


async def test_check_refuses_what_run_would_refuse(ran, config):
    """A schedule that is over, unless it begins at once: told after everything else, with run's exit code."""
    over = '[[check]]\nname = "b"\nurl = "http://h"\nschedule = "@at 2020-01-01T00:00:00Z"\n'
    ended = '[[check]]\nname = "c"\nurl = "http://h"\nschedule = "@every 1h until 2020-01-01T00:00:00Z"\n'
    code, out, err = await ran("check", config(over + ended))
    assert code == 2
    assert out.count("next: never again") == 2
    first, second = err.splitlines()
    assert first == "check 'b': @at 2020-01-01T00:00:00+00:00 has no start after now"
    assert second.startswith("check 'c': @every ")
    for harmless in ('start = "now"', "enabled = false"):
        code, _, err = await ran("check", config(over + harmless))
        assert (code, err) == (0, "")


async def test_check_warns_of_limits_that_are_too_small(ran, config):
    """Checks that take their timeout would wait for one another."""
    code, out, _ = await ran("check", config("[limits]\ntotal = 1"))
    assert code == 0
    assert "total: 2 at a time, limit 1: DOES NOT FIT" in out


PREVIEW = datetime(2026, 11, 22, tzinfo=UTC)


def previewed(text):
    """What `timerqueue check` says of a file with that text."""
    return list(config_lines(parse_config(text, "uptime.toml", {}), PREVIEW))


def test_check_says_once_that_timeouts_are_longer_than_intervals():
    """However many checks it is true of; what waits for the end of a check has no such trouble."""
    checks = "".join(f'[[check]]\nname = "c{n}"\nurl = "http://h"\n' for n in range(300))
    defaults = '[defaults]\ntimeout = "30s"\n'
    notes = [line for line in previewed(f'{defaults}interval = "1s"\n{checks}') if line.startswith("note: ")]
    (note,) = notes
    assert note.startswith("note: c0 (and 299 other checks): timeout 30 s is longer than its interval 1 s: ")
    patient = f'{defaults}[[check]]\nurl = "http://h"\nschedule = "@after 1s"\n'
    assert not any(line.startswith("note: ") for line in previewed(patient + checks))


def test_check_warns_of_hosts_that_no_check_has():
    """Of a limit or an address that has no effect, with the host that is likely meant."""
    lines = previewed("""
        [limits]
        "host:db.exmaple" = 2
        "host:DB.example" = 3
        [hosts]
        "elsewhere" = "127.0.0.1"
        [[check]]
        url = "tcp://db.example:5432"
    """)
    assert [line for line in lines if line.startswith("warning: ")] == [
        "warning: [limits]: no check has the host 'db.exmaple', did you mean 'db.example'?",
        "warning: [hosts]: no check has the host 'elsewhere'",
    ]
    assert any(line.startswith("    host:db.example: ") and "limit 3: fits" in line for line in lines)


def test_an_address_for_a_redirect_is_no_mistake():
    """Only the server knows where its redirects lead."""
    text = '[hosts]\n"elsewhere" = "127.0.0.1"\n[[check]]\nurl = "http://h"\nredirects = 1\n'
    assert not any(line.startswith("warning: ") for line in previewed(text))


async def test_a_bad_variable_is_a_warning(ran, config):
    """The default holds, and the user is told."""
    code, out, _ = await ran("run", config(), "--for", "50ms", TIMERQUEUE_LIMIT_HTTP="many")
    assert code == 0
    assert 'TIMERQUEUE_LIMIT_HTTP: expected a whole number from 1, found "many"; using the default 200' in out


async def test_next_shows_the_starts_of_a_schedule(ran):
    """As many as asked for, with what may surprise."""
    code, out, _ = await ran("next", "30 2 31 * *", "--tz", "Europe/Berlin", "-n", "3")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) == 4
    assert all("02:30:00+0" in line for line in lines[:3])
    assert lines[3].startswith("note: day-of-month 31 is not in every month")


@pytest.mark.parametrize(
    ("expression", "last"),
    [
        ("@at 2020-01-01T00:00:00Z", "it never starts again"),
        ("@at 9999-01-01T00:00:00Z", "then it never starts again"),
    ],
)
def test_next_says_when_nothing_comes(expression, last):
    """After what does come, if anything does."""
    result = CliRunner().invoke(cli, ["next", expression])
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, last)


async def test_history_says_why_there_is_none(ran, config):
    """A target may not have been checked yet, or be none of the configuration, and then there may be one like it."""
    file = config('[[check]]\nname = "later"\nurl = "http://h"\ninterval = "99d"')
    await ran("run", file, "--for", "300ms")
    for name, reason in (
        ("later", ": it has not been checked yet\n"),
        ("laetr", ": the configuration has no check of that name, did you mean 'later'?\n"),
        ("unlike", ": the configuration has no check of that name\n"),
    ):
        code, _, err = await ran("history", name, "--config", file)
        assert code == 1
        assert err.endswith(reason)


async def test_no_secret_is_printed(ran, serve, answers):
    """Neither in lines, nor in JSON, nor in logs, whatever the server answers."""
    server = await serve(answers.respond(500, b"hunter22"))
    url = f"http://me:hunter22@127.0.0.1:{server.port}/?token=hunter22"
    for options in ([], ["--json"]):
        code, out, err = await ran("-vv", "watch", url, "--once", *options)
        assert code == 1
        assert "status 500" in out
        assert "hunter22" not in out + err
    assert "hunter22" in server.requests[0]


@pytest.mark.parametrize(("variables", "is_coloured"), [({"TERM": "xterm"}, True), ({"NO_COLOR": "1"}, False)])
async def test_a_terminal_shows_a_table(environment, up, variables, is_coloured):
    """With colours unless NO_COLOR says no; what stays on the screen is the last state."""
    ours, theirs = pty.openpty()
    received = bytearray()

    def read():
        with suppress(OSError):  # Linux says EIO at the end
            while part := os.read(ours, 65536):
                received.extend(part)

    url = f"http://127.0.0.1:{up.port}"
    command = [*COMMAND, "watch", url, "--every", "100ms", "--for", "600ms"]
    with anyio.fail_after(PATIENCE):
        process = await anyio.open_process(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(TERM="xterm", COLUMNS="100") | variables,
        )
        os.close(theirs)
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, read)
            assert await process.wait() == 0
    os.close(ours)
    text = received.decode()
    assert ("\x1b[32mUP" in text) == is_coloured
    assert "latency" in text
    assert "stopped after" in text.splitlines()[-1]


async def test_a_reader_who_leaves_ends_it(environment, config):
    """As with `| head -1`: no traceback, no endless run for nobody."""
    file = config()
    program = f"{' '.join(COMMAND)} run {file} | head -1"
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process(program, check=False, env=environment())
    assert b"checks 2 targets" in done.stdout
    assert done.stderr == b""


async def test_help_and_version_are_there(ran):
    """And say something about every command."""
    code, out, _ = await ran("--help")
    assert code == 0
    assert all(f"  {name} " in out for name in ("run", "watch", "check", "next"))
    code, out, _ = await ran("--version")
    assert (code, out.split(",")[0]) == (0, "timerqueue")
