from __future__ import annotations

import socket
from collections.abc import Iterator

import anyio
import pytest

from ..checks import Finding, Kind, Status
from ._rules_of_kinds import PATIENCE, Examples, KindConformance, UrlOf, made
from ._rules_of_streams import GARBAGE, Make, MakeAttempt, found, troubles
from ._servers import Replies, answering, next_descriptor, port_of, refusing

FLOOD = 20_000


class DatagramConformance(KindConformance):
    """The suite for checks over UDP. Needs fixtures `kind`, `examples` and `replies`."""

    @pytest.fixture
    def replies(self) -> Replies:
        """The answers of a good server to a datagram of the first example."""
        msg = "a subclass says what a server that is well answers: see the docstring of uptime_agent.testing"
        raise NotImplementedError(msg)

    @pytest.fixture
    def make(self, kind: Kind, examples: Examples, url_of: UrlOf) -> Make:
        return lambda port, host="127.0.0.1": made(kind, url_of(host, port), examples[0])

    async def test_an_answer_as_expected_is_up(self, make: Make, replies: Replies, attempt: MakeAttempt) -> None:
        async with answering(replies) as server:
            at = attempt()
            with anyio.fail_after(PATIENCE):
                finding = await make(server.port).attempt(at)
        assert isinstance(finding, Finding)
        assert (finding.status, finding.error) == (Status.UP, None)
        assert at.watch.phases["connect"] > 0
        assert all(isinstance(each, (str, int, float)) for each in finding.detail.values())

    async def test_it_asks_the_address_that_it_is_given(
        self, make: Make, replies: Replies, attempt: MakeAttempt
    ) -> None:
        async with answering(replies, "127.0.0.3") as server:
            with anyio.fail_after(PATIENCE):
                finding = await make(server.port, "name.invalid").attempt(attempt("127.0.0.3"))
            assert isinstance(finding, Finding)
            assert finding.status is Status.UP
            assert server.datagrams >= 1

    async def test_a_port_on_which_nobody_listens_is_the_targets_trouble(
        self, make: Make, attempt: MakeAttempt
    ) -> None:
        at = attempt()
        with (
            anyio.fail_after(PATIENCE),
            refusing(socket.SOCK_DGRAM) as port,
            pytest.raises(OSError) as caught,  # noqa: PT011 - judged below
        ):
            await make(port).attempt(at)
        trouble = troubles(caught.value)
        assert (trouble.status, trouble.text) == (Status.DOWN, "connection refused by peer")
        assert "connect" not in at.watch.phases

    async def test_a_cancelled_check_leaves_nothing_open(self, make: Make, attempt: MakeAttempt) -> None:
        async with answering(lambda _: ()) as server:
            before = next_descriptor()
            async with anyio.create_task_group() as group:
                group.start_soon(make(server.port).attempt, attempt())
                with anyio.fail_after(PATIENCE):
                    await server.asked.wait()
                group.cancel_scope.cancel()
            assert next_descriptor() == before

    async def test_garbage_is_no_defect(self, make: Make, replies: Replies, attempt: MakeAttempt) -> None:
        for garbage in (b"", *GARBAGE):

            def first_garbage(data: bytes, garbage: bytes = garbage) -> Iterator[bytes]:
                yield garbage
                yield from replies(data)

            async with answering(first_garbage) as server:
                with anyio.fail_after(PATIENCE):
                    finding = await found(make(server.port), attempt())
            assert finding.status in {Status.UP, Status.DOWN}
            assert (finding.status is Status.UP) == (finding.error is None)

    async def test_a_flood_of_garbage_makes_no_target_down(
        self, make: Make, replies: Replies, attempt: MakeAttempt
    ) -> None:
        """Senders can forge the target's address, so the answer after garbage counts."""
        questions: list[bytes] = []

        def a_flood_first(data: bytes) -> Iterator[bytes]:
            questions.append(data)
            yield from (b"x" * 50 for _ in range(FLOOD)) if len(questions) == 1 else replies(data)

        async with answering(a_flood_first) as server:
            with anyio.fail_after(PATIENCE):
                finding = await found(make(server.port), attempt())
        assert finding.status is Status.UP

    async def test_an_answer_from_elsewhere_is_not_taken(
        self, make: Make, replies: Replies, attempt: MakeAttempt
    ) -> None:
        """Only the address and port that were asked count."""
        async with (
            await anyio.create_udp_socket(family=socket.AF_INET, local_host="127.0.0.1") as stranger,
            await anyio.create_udp_socket(family=socket.AF_INET, local_host="127.0.0.1") as server,
        ):
            at = attempt()
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as group:
                    group.start_soon(make(port_of(server)).attempt, at)
                    data, peer = await server.receive()
                    for reply in replies(data):
                        await stranger.sendto(reply, peer[0], peer[1])
                    await anyio.wait_all_tasks_blocked()
                    assert "connect" not in at.watch.phases
                    group.cancel_scope.cancel()
