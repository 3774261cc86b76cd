from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TypeAlias

import anyio
import pytest
from anyio.abc import ByteStream

from ..checks import Attempt, Budget, Check, CheckFailed, Finding, Kind, Status, Trouble, judge
from ._rules_of_kinds import PATIENCE, Examples, KindConformance, UrlOf, made
from ._servers import Well, closing, flooding, refusing, serving, silent

MakeAttempt: TypeAlias = Callable[..., Attempt]
Make: TypeAlias = Callable[..., Check]

GARBAGE = [
    b"\x00" * 100,
    b"\xff\xfe\x1b[2J\x1b]0;owned\x07\r\n",
    b"\r\n" * 50,
    b"220\r\n" * 20,
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "\u202eevil\u2028\n".encode(),
    b"+OK\r\n* OK\r\n-ERR\r\n",
]


def troubles(error: BaseException) -> Trouble:
    trouble = judge(error, "peer")
    assert trouble is not None, f"a defect of the check: {error!r}"
    return trouble


async def found(check: Check, at: Attempt) -> Finding:
    """Judge an attempt's error as the agent does."""
    try:
        finding = await check.attempt(at)
    except Exception as exc:  # noqa: BLE001 - judged on the next line
        trouble = troubles(exc)
        return Finding(status=trouble.status, error=trouble.text)
    assert isinstance(finding, Finding)
    return finding


class StreamConformance(KindConformance):
    """The suite for checks over TCP. Needs fixtures `kind`, `examples` and `well`."""

    @pytest.fixture
    def well(self) -> Well:
        """A handler of connections that answers the first example as expected."""
        msg = "a subclass says what a server that is well says: see the docstring of uptime_agent.testing"
        raise NotImplementedError(msg)

    @pytest.fixture
    def make(self, kind: Kind, examples: Examples, url_of: UrlOf) -> Make:
        return lambda port, host="127.0.0.1": made(kind, url_of(host, port), examples[0])

    async def test_an_answer_as_expected_is_up(self, make: Make, well: Well, attempt: MakeAttempt) -> None:
        async with serving(well) as server:
            at = attempt()
            finding = await make(server.port).attempt(at)
        assert isinstance(finding, Finding)
        assert (finding.status, finding.error) == (Status.UP, None)
        assert at.watch.phases["connect"] > 0
        assert all(isinstance(each, (str, int, float)) for each in finding.detail.values())

    async def test_it_dials_the_address_that_it_is_given(self, make: Make, well: Well, attempt: MakeAttempt) -> None:
        async with serving(well, "127.0.0.3") as server:
            finding = await make(server.port, "name.invalid").attempt(attempt("127.0.0.3"))
            assert isinstance(finding, Finding)
            assert finding.status is Status.UP
            assert server.connections >= 1

    async def test_a_refused_connection_is_the_targets_trouble(self, make: Make, attempt: MakeAttempt) -> None:
        """Nothing has connected, so another address may be tried."""
        at = attempt()
        with refusing(socket.SOCK_STREAM) as port, pytest.raises((OSError, CheckFailed)) as caught:
            await make(port).attempt(at)
        trouble = troubles(caught.value)
        assert (trouble.status, trouble.text) == (Status.DOWN, "connection refused by peer")
        assert "connect" not in at.watch.phases

    async def test_a_connection_that_is_closed_at_once_is_down(self, make: Make, attempt: MakeAttempt) -> None:
        """It has connected, so no other address is tried."""
        async with serving(closing) as server:
            at = attempt()
            assert (await found(make(server.port), at)).status is Status.DOWN
        assert "connect" in at.watch.phases

    async def test_a_cancelled_check_leaves_nothing_open(self, make: Make, attempt: MakeAttempt) -> None:
        with anyio.fail_after(PATIENCE):
            async with serving(silent) as server, anyio.create_task_group() as group:
                group.start_soon(make(server.port).attempt, attempt())
                await server.connected.wait()
                group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await server.all_closed.wait()

    async def test_an_endless_answer_comes_to_an_end(self, make: Make, attempt: MakeAttempt) -> None:
        with anyio.fail_after(PATIENCE):
            async with serving(flooding) as server:
                assert (await found(make(server.port), attempt())).status is Status.DOWN
                await server.all_closed.wait()

    async def test_an_answer_in_tiny_pieces_is_cut_off(
        self, make: Make, attempt: MakeAttempt, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each piece costs a turn of the loop."""
        monkeypatch.setattr("uptime_agent.checks.net.budget.FREE_READS", 10)
        taken, read = anyio.Event(), Budget.read

        def seen(budget: Budget, count: int) -> None:
            taken.set()
            read(budget, count)

        async def byte_by_byte(stream: ByteStream) -> None:
            nonlocal taken
            while True:
                taken = anyio.Event()
                await stream.send(b" ")
                await taken.wait()

        monkeypatch.setattr(Budget, "read", seen)
        with anyio.fail_after(PATIENCE):
            async with serving(byte_by_byte) as server:
                finding = await found(make(server.port), attempt())
        assert finding.status is Status.DOWN
        assert finding.error

    @pytest.mark.parametrize("garbage", GARBAGE)
    async def test_garbage_is_down(self, make: Make, attempt: MakeAttempt, garbage: bytes) -> None:

        async def talk(stream: ByteStream) -> None:
            await stream.send(garbage)
            await stream.send_eof()
            await silent(stream)

        with anyio.fail_after(PATIENCE):
            async with serving(talk) as server:
                finding = await found(make(server.port), attempt())
        assert finding.status is Status.DOWN
        assert finding.error
