"""What every kind of check promises, over each of them: the suite that a new check has to pass."""

import socket

import anyio
import pytest
from attrs.exceptions import FrozenInstanceError

from kit import PATIENCE
from scheduler.agent.checks.contract.result import Finding, Status
from scheduler.agent.checks.contract.trouble import CheckFailed, judge
from scheduler.agent.checks.kinds import BY_SCHEME, KINDS
from scheduler.agent.checks.net.budget import Budget
from scheduler.agent.text.url import parse_url

# By kind: its scheme, options that make it wait for an answer, and the server that gives it.
CASES = {
    "http": ("http", {"contains": "hello"}, lambda answers: answers.respond(200, b"hello")),
    "tcp": ("tcp", {"send": "hello", "expect": "hello"}, lambda answers: answers.echo),
}


@pytest.fixture(params=[kind.name for kind in KINDS])
def case(request):
    """Take each kind of check in turn."""
    return CASES[request.param]


def make(case, port, host="127.0.0.1"):
    """Make the check of a case for a port."""
    scheme, options, _ = case
    url = parse_url(f"{scheme}://{host}:{port}", {scheme: None})
    return BY_SCHEME[scheme].make(url=url, **options)


async def test_an_answer_as_expected_is_up(case, serve, answers, attempt):
    """The finding is up, without an error, and the phase "connect" has been measured."""
    server = await serve(case[2](answers))
    at = attempt()
    finding = await make(case, server.port).attempt(at)
    assert isinstance(finding, Finding)
    assert (finding.status, finding.error) == (Status.UP, None)
    assert at.watch.phases["connect"] > 0


async def test_it_dials_the_address_that_it_is_given(case, serve, answers, attempt):
    """The name is never looked up by the check itself."""
    server = await serve(case[2](answers), host="127.0.0.3")
    finding = await make(case, server.port, "name.invalid").attempt(attempt("127.0.0.3"))
    assert finding.status is Status.UP
    assert server.connections == 1


async def test_a_refused_connection_is_the_targets_trouble(case, free_port, attempt):
    """What it raises is judged as down, in words that name the address."""
    at = attempt()
    with pytest.raises((OSError, CheckFailed)) as caught:
        await make(case, free_port).attempt(at)
    trouble = judge(caught.value, f"127.0.0.1:{free_port}")
    assert (trouble.status, trouble.text) == (Status.DOWN, f"connection refused by 127.0.0.1:{free_port}")
    assert "connect" not in at.watch.phases


async def test_a_connection_that_is_closed_at_once_is_the_targets_trouble(case, serve, answers, attempt):
    """It has connected, so no other address is tried, but it is down."""
    server = await serve(answers.closing)
    at = attempt()
    with pytest.raises((OSError, CheckFailed)) as caught:
        await make(case, server.port).attempt(at)
    assert judge(caught.value, "peer").status is Status.DOWN
    assert "connect" in at.watch.phases


async def test_a_cancelled_check_leaves_nothing_open(case, serve, answers, attempt):
    """The server sees the end of the connection, although it never answered."""
    server = await serve(answers.silent)
    async with anyio.create_task_group() as group:
        group.start_soon(make(case, server.port).attempt, attempt())
        with anyio.fail_after(PATIENCE):
            await server.connected.wait()
        group.cancel_scope.cancel()
    with anyio.fail_after(PATIENCE):
        await server.all_closed.wait()


async def test_an_endless_answer_comes_to_an_end(case, serve, answers, attempt):
    """Only so much of it is read, whatever the server sends."""
    server = await serve(answers.flooding)
    with anyio.fail_after(PATIENCE), pytest.raises((OSError, CheckFailed)) as caught:
        await make(case, server.port).attempt(attempt())
    assert judge(caught.value, "peer").status is Status.DOWN
    with anyio.fail_after(PATIENCE):
        await server.all_closed.wait()


async def test_an_answer_in_tiny_pieces_is_cut_off(case, serve, monkeypatch, attempt):
    """Whatever the kind of check: each piece costs a turn of the loop. The server waits until each has been taken."""
    monkeypatch.setattr("scheduler.agent.checks.net.budget.FREE_READS", 10)
    taken = anyio.Event()
    read = Budget.read

    def seen(self, count):
        taken.set()
        read(self, count)

    monkeypatch.setattr(Budget, "read", seen)

    async def byte_by_byte(server, stream):
        nonlocal taken
        await stream.receive()
        for letter in b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100:
            taken = anyio.Event()
            await stream.send(bytes([letter]))
            await taken.wait()

    server = await serve(byte_by_byte)
    with (
        anyio.fail_after(PATIENCE),
        pytest.raises(CheckFailed, match="cut off: it sends its answer in tiny pieces, 11 for 11"),
    ):
        await make(case, server.port).attempt(attempt())


def test_a_check_is_a_value(case):
    """Many runs share it at a time."""
    check = make(case, 1)
    assert check == make(case, 1)
    with pytest.raises(FrozenInstanceError):
        check.url = None


def test_its_repr_shows_no_secrets(case):
    """A repr ends up in logs."""
    scheme, options, _ = case
    url = parse_url(f"{scheme}://user:hunter22@127.0.0.1:1", {scheme: None})
    assert "hunter22" not in repr(BY_SCHEME[scheme].make(url=url, **options))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_in_this_suite(kind):
    """A new kind needs a case here, and schemes that no other has."""
    assert kind.name in CASES
    assert all(BY_SCHEME[scheme] is kind for scheme in kind.schemes)


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (socket.gaierror(-9999, "Odd trouble"), Status.UNKNOWN, "can make nothing of the address peer: odd trouble"),
        (socket.gaierror("odd trouble"), Status.UNKNOWN, "can make nothing of the address peer: odd trouble"),
        (OSError(99999, "Odd trouble"), Status.DOWN, "odd trouble at peer"),
    ],
)
def test_an_error_with_a_number_that_nobody_knows_says_what_it_says_itself(error, status, text):
    """Rather than "unknown error -2"."""
    trouble = judge(error, "peer")
    assert trouble.status is status
    assert trouble.text.endswith(text)
