"""The channels command and email: what arrives, what is said of a failure, and what nobody can slip in."""

import json
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from attrs import evolve

from kit import until
from notify_kit import MESSAGE, channel
from timerqueue import SystemClock
from uptime_agent.checks import Resolver
from uptime_agent.notify import ChannelDeps, Notification, Undelivered
from uptime_agent.toml import Unfit

NASTY = ["; rm -rf /", "$(reboot)", "`id`", "a\nBcc: evil@example.org", "'\"", "{x.__class__}", "\x1b[31m", "%0a"]


async def send(made, message=MESSAGE):
    return await made.send(Notification((message,)), ChannelDeps(Resolver({}), SystemClock()))


# -- command -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path):
    """Write a program in shell that a channel runs."""

    def write(text):
        file = tmp_path / "page"
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return str(file)

    return write


async def test_a_command_gets_the_message_on_its_standard_input(program, tmp_path):
    """And its key in the environment, which holds nothing else of ours."""
    os.environ["OF_THE_AGENT"] = "1"
    file = program(f'cat > {tmp_path}/got; env > {tmp_path}/env; echo "$2" > {tmp_path}/args')
    made = channel("command", command=[file, "--team", "x y"], env={"TOKEN": {"env": "T"}}, environment={"T": "x y z"})
    await send(made)
    assert json.loads((tmp_path / "got").read_text())["key"] == "shop-1:ops:trigger"
    environment = (tmp_path / "env").read_text()
    assert "TIMERQUEUE_KEY=shop-1:ops:trigger" in environment
    assert "TOKEN=x y z" in environment
    assert "OF_THE_AGENT" not in environment
    assert (tmp_path / "args").read_text() == "x y\n"
    assert made.secrets == {"x y z"}


@pytest.mark.parametrize("said", NASTY)
async def test_nothing_that_a_target_says_reaches_a_shell(program, tmp_path, said):
    """It stands in JSON on standard input, and nowhere else."""
    await send(channel("command", command=[program(f"cat > {tmp_path}/got")]), evolve(MESSAGE, target=said, error=said))
    assert json.loads((tmp_path / "got").read_text())["target"] == said


async def test_a_command_that_fails_is_told_with_what_it_said(program):
    """Cut to a length, on one line."""
    with pytest.raises(Undelivered, match=r"page ended with 3: no \\x1b\[31m pager"):
        await send(channel("command", command=[program("printf 'no \\033[31m pager' >&2; exit 3")]))
    with pytest.raises(Undelivered) as caught:
        await send(channel("command", command=[program("yes | head -c 5000000; exit 1")]))
    assert len(str(caught.value)) < 400


async def test_what_a_command_leaves_running_is_killed(program, tmp_path):
    """When its time is over, and when it has ended; its children too."""
    forks = f"(echo $$ > {tmp_path}/started; exec sleep 1000) & echo $! > {tmp_path}/child; "
    made = channel("command", command=[program(forks + "wait")])
    async with anyio.create_task_group() as group:
        group.start_soon(send, made)
        await until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().strip())
        group.cancel_scope.cancel()
    await until(lambda: not is_alive(int((tmp_path / "child").read_text())))
    await send(channel("command", command=[program(forks + "exit 0")]))
    await until(lambda: not is_alive(int((tmp_path / "child").read_text())))


async def test_a_command_that_has_ended_well_has_delivered_though_it_leaves_a_daemon(program, tmp_path):
    """A daemon keeps the program's output open: "no answer" was said of each such command, and it was run again."""
    daemon = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 1000' & "
    there = f"until [ -s {tmp_path}/pid ]; do :; done; "
    await send(channel("command", command=[program(daemon + there + "echo done; exit 0")]))
    await until(lambda: not is_alive(int((tmp_path / "pid").read_text())))


async def test_a_daemon_is_killed_with_its_command_when_the_time_is_over(program, tmp_path):
    """In a session of its own no signal to a group finds it; below `launch.py` it is found."""
    file = tmp_path / "pid"
    made = channel("command", command=[program(f"setsid sh -c 'echo $$ > {file}; exec sleep 1000' & wait")])
    async with anyio.create_task_group() as group:
        group.start_soon(send, made)
        await until(lambda: file.exists() and file.read_text().strip())
        group.cancel_scope.cancel()
    await until(lambda: not is_alive(int(file.read_text())))


async def test_a_command_is_fed_and_judged_though_a_message_is_larger_than_a_pipe(program):
    """One that reads nothing ends as it likes."""
    large = evolve(MESSAGE, error="x" * 300_000)
    await send(channel("command", command=[program("exit 0")]), large)
    with pytest.raises(Undelivered, match="page was killed by signal 11"):
        await send(channel("command", command=[program("kill -SEGV $$")]), large)
    with pytest.raises(Undelivered, match="page was killed by signal 15"):
        await send(channel("command", command=[program("kill $PPID; sleep 1000")]), large)


async def test_a_command_that_is_called_off_while_it_starts_leaves_nothing_running(program, tmp_path, monkeypatch):
    """It runs before who starts it has it: its children were left over."""
    start, file = anyio.open_process, tmp_path / "child"

    async def slow(*args, **options):
        process = await start(*args, **options)
        await until(lambda: file.exists() and file.read_text().strip())
        group.cancel_scope.cancel()
        await anyio.lowlevel.checkpoint()
        return process

    monkeypatch.setattr(anyio, "open_process", slow)
    async with anyio.create_task_group() as group:
        group.start_soon(send, channel("command", command=[program(f"sleep 1000 & echo $! > {file}; wait")]))
    await until(lambda: not is_alive(int(file.read_text())))


def is_alive(pid):
    """Whether a process runs; a zombie that nobody has fetched does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_command_has_limits(program):
    """Which it hands on to what it starts."""
    with pytest.raises(Undelivered, match="256 0"):
        await send(channel("command", command=[program('echo "$(ulimit -n) $(ulimit -c)" >&2; exit 1')]))


async def test_a_program_that_is_gone_is_told(program):
    """Though it was there when the configuration was read."""
    file = program("exit 0")
    made = channel("command", command=[file])
    os.unlink(file)  # noqa: PTH108 - pathlib may not block here, os may
    with pytest.raises(Undelivered, match=r"cannot start .*page: No such file or directory"):
        await send(made)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("mail", "a program and its arguments"),
        ([], "a program and its arguments"),
        (["mail"], "the whole path of a program first"),
        (["/etc/passwd"], "a program that can be run"),
        (["/tmp"], "a program that can be run"),
        (["/bin/true", 7], "expected text"),
        (["/bin/true", "a\0b"], "arguments without NUL"),
        (["/bin/true", {"env": "TOKEN"}], "everybody on this machine can read the arguments of a program"),
        (["/bin/true", {"file": "token"}], "hand a secret over as a variable, with env = { TOKEN ="),
    ],
)
def test_a_command_that_could_not_run_is_refused_when_it_is_read(command, words):
    """And not when something is down."""
    with pytest.raises(Unfit) as caught:
        channel("command", command=command)
    assert words in str(caught.value)


# -- email -------------------------------------------------------------------------------------------------------------


FLOOD = 64_000_000
"""Bytes of a reply that is as good as endless."""


class Smtp(threading.Thread):
    """A server that takes mail, one connection after another. `refuses`: answers by the beginning of a command."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.refuses = {}
        self.taken = []
        self.is_silent = False
        self.was_silent = threading.Event()
        self.floods = {}
        """Lines that go on and on before the answer to a command; to "greeting", and to "." after a message."""
        self.flooded = 0
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with suppress(OSError), connection, connection.makefile("rwb") as stream:  # which its end may raise, too
                self.talk(stream)

    def talk(self, stream):
        if self.is_silent:
            self.was_silent.set()
            stream.read()
            return
        envelope = []
        self.flood(stream, "greeting")
        say(stream, "220 here")
        while line := stream.readline().decode().strip():
            self.flood(stream, line.partition(" ")[0].upper())
            answer = next((self.refuses[each] for each in self.refuses if line.upper().startswith(each)), "250 ok")
            if line.upper() == "QUIT":
                say(stream, "221 bye")
                return
            if line.upper() == "DATA" and answer.startswith("250"):
                say(stream, "354 go on")
                content = b""
                while not content.endswith(b"\r\n.\r\n"):
                    content += stream.readline()
                self.flood(stream, ".")
                self.taken.append((envelope, content.decode()))
            envelope.append(line)
            say(stream, answer)

    def flood(self, stream, at):
        line = self.floods.get(at, b"")
        block = line * (65_536 // max(len(line), 1))
        for self.flooded in range(0, FLOOD if line else 0, 65_536):
            stream.write(block)
            stream.flush()


def say(stream, text):
    stream.write(text.encode() + b"\r\n")
    stream.flush()


@pytest.fixture
def smtp():
    server = Smtp()
    yield server
    server.socket.close()


def email(smtp, **options):
    given = {
        "host": "127.0.0.1",
        "port": smtp.port,
        "tls": "none",
        "from": "agent@example.org",
        "to": "ops@example.org",
    }
    return channel("email", **given | options)


async def test_a_message_is_mailed(smtp):
    """With a subject that says what it is about, and its key."""
    await send(email(smtp, to=["ops@example.org", "boss@example.org"]))
    ((envelope, content),) = smtp.taken
    assert [line.lower() for line in envelope if line.startswith("rcpt")] == [
        "rcpt to:<ops@example.org>",
        "rcpt to:<boss@example.org>",
    ]
    assert "Subject: [timerqueue] down: shop\r\n" in content
    assert "X-Idempotency-Key: shop-1:ops:trigger\r\n" in content
    assert "\r\n\r\nshop is down: connection refused\r\n" in content


@pytest.mark.parametrize("said", NASTY)
async def test_nothing_that_a_target_says_becomes_a_header(smtp, said):
    """Nor a recipient."""
    await send(email(smtp), evolve(MESSAGE, target=said, error=said))
    ((envelope, content),) = smtp.taken
    header = content.partition("\r\n\r\n")[0]
    assert not [line for line in header.split("\r\n") if line.lower().startswith("bcc")]
    assert len([line for line in envelope if line.startswith("rcpt")]) == 1


async def test_a_server_that_refuses_is_told_in_its_words(smtp):
    """Each recipient may be refused by itself."""
    smtp.refuses = {"RCPT TO:<BOSS": "550 no such boss"}
    remark = await send(email(smtp, to=["ops@example.org", "boss@example.org"]))
    assert remark == "not accepted: boss@example.org"
    smtp.refuses = {"RCPT": "550 nobody here"}
    with pytest.raises(Undelivered, match="accepted no recipient: nobody here"):
        await send(email(smtp))
    smtp.refuses = {"MAIL": "451 later"}
    with pytest.raises(Undelivered, match="answered 451: later"):
        await send(email(smtp))


async def test_a_server_that_is_not_there_or_has_no_tls_is_told(smtp, free_port):
    """And no message goes out in the open instead."""
    with pytest.raises(Undelivered, match=r"connection refused by 127\.0\.0\.1"):
        await send(email(smtp, port=free_port))
    smtp.refuses = {"STARTTLS": "502 what"}
    with pytest.raises(Undelivered):
        await send(email(smtp, tls="starttls"))
    assert smtp.taken == []


@pytest.mark.parametrize("line", [b"250-" + b"x" * 8_000, b"250-"], ids=["long lines", "short lines"])
@pytest.mark.parametrize("at", ["greeting", "EHLO", "DATA", "."])
async def test_a_reply_without_end_is_cut_off(smtp, at, line):
    """A server, or anybody on the way to it, filled our memory: each reply has a bound."""
    smtp.floods = {at: line + b"\r\n"}
    with pytest.raises(Undelivered, match="cut off: its reply has more than 64 KiB"):
        await send(email(smtp))
    assert smtp.taken == []
    assert smtp.flooded < FLOOD / 2


async def test_a_server_that_hangs_is_left_when_the_time_is_over(smtp):
    """The thread ends, and the next message has its chance."""
    smtp.is_silent = True
    made = email(smtp)
    async with anyio.create_task_group() as group:
        group.start_soon(send, made)
        await until(smtp.was_silent.is_set)
        group.cancel_scope.cancel()
    smtp.is_silent = False

    async def is_free():
        try:
            await send(made)
        except Undelivered:
            return False
        return True

    with anyio.fail_after(60):
        while not await is_free():  # noqa: ASYNC110 - nobody there would set an event
            await anyio.sleep(0.05)
    assert len(smtp.taken) == 1


async def test_two_channels_with_the_same_settings_do_not_wait_for_each_other(serve):
    """As when each has a rate of its own: neither is told that the message of the other still hangs."""
    said = []

    async def close_both(server, _stream):
        await until(lambda: server.connections == 2 or said)

    server = await serve(close_both)

    async def send_as(name):
        with pytest.raises(Undelivered) as caught:
            await send(email(server), evolve(MESSAGE, channel=name))
        said.append(str(caught.value))

    async with anyio.create_task_group() as group:
        for name in ("ops", "dev"):
            group.start_soon(send_as, name)
    assert said == [f"127.0.0.1:{server.port}: Connection unexpectedly closed"] * 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"to": []}, "up to 50 addresses"),
        ({"to": "ops"}, "an address such as"),
        ({"to": "ops@example.org\nBcc: x@example.org"}, "an address such as"),
        ({"from": "Ops <ops@example.org>"}, "an address such as"),
        ({"host": "a b"}, "a host"),
        ({"tls": "ssl"}, 'one of "starttls", "tls" or "none"'),
        ({"port": 0}, "a whole number from 1"),
    ],
)
def test_bad_options_of_email_are_refused(smtp, options, words):
    """At the edge."""
    with pytest.raises(Unfit) as caught:
        email(smtp, **options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"username": "me"}, "username and password belong together"),
        ({"username": "me", "password": "c4n4ry"}, "a password needs tls"),
    ],
)
def test_options_of_email_that_do_not_fit_together_are_refused(smtp, options, words):
    """A password does not go over the network as it is."""
    with pytest.raises(ValueError, match=words) as caught:
        email(smtp, **options)
    assert "c4n4ry" not in str(caught.value)
