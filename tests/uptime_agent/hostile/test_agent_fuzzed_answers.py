"""Whatever comes back over a wire ends its own check or message, in words, and nothing else.

Real clients read mutants of proper answers from real sockets. `HYPOTHESIS_PROFILE=thorough` tries 10,000 for each wire.
"""

import json
from contextlib import suppress

import anyio
import pytest

from fuzzed_answers import HOOK, MAIL, RDAP, RDAP_WHOLE, names_answer, time_answer
from kit import PATIENCE, examples
from mutants import mutants
from notify_kit import MESSAGE, channel
from timerqueue import SystemClock
from uptime_agent.checks import CheckResult, Resolver, Status
from uptime_agent.checks.dns import DNS
from uptime_agent.checks.domain import DOMAIN
from uptime_agent.checks.ntp import NTP
from uptime_agent.notify import ChannelDeps, ChannelRoute, Notification, Undelivered
from uptime_agent.notify.delivery import sent
from uptime_agent.testing._servers import answering
from uptime_agent.text import harmless, parse_url

pytestmark = pytest.mark.timeout(3_600)

COUNT = examples(200)
LONGEST = 2_000
"""Characters of what is said of an answer, at most."""


def told(text):
    """Check that what is said can stand on a line of a terminal."""
    assert text is None or (harmless(text) == text and len(text) <= LONGEST)


@pytest.fixture
async def wire(serve):
    """Serve what `server.says` holds, to each connection that has asked, and nothing after it."""

    async def handler(server, stream):
        if server.waits_for:
            received = b""
            while server.waits_for not in received:
                received += await stream.receive()
        await stream.send(server.says)
        with suppress(OSError):  # on trio, if the other side has reset the connection
            await stream.send_eof()
        while True:
            await stream.receive()

    server = await serve(handler)
    server.says, server.waits_for = b"", b""
    return server


async def deliver(made):
    """Send a message as the outbox does: what is said of it, and whether it was taken."""
    means = ChannelDeps(Resolver({}), SystemClock())
    try:
        return await sent(Notification((MESSAGE,)), ChannelRoute(channel=made, timeout=PATIENCE), means, str), True
    except Undelivered as exc:
        return str(exc), False


async def result_of(check):
    """Run a check to its end, at whichever hosts."""
    with anyio.fail_after(PATIENCE):
        found = await check.run()
        while isinstance(found, list):
            (subtask,) = found
            found = await subtask.func(*subtask.args)
    assert isinstance(found, CheckResult)
    told(found.error)
    json.dumps(dict(found.detail))
    return found


async def test_any_answer_of_a_mail_server_takes_a_message_or_says_why_not(wire):
    """Greeting, EHLO, envelope and message."""
    made = channel(
        "email", host="127.0.0.1", port=wire.port, tls="none", **{"from": "a@example.org", "to": "b@example.org"}
    )
    taken = 0
    for wire.says in mutants(MAIL, COUNT):
        said, is_taken = await deliver(made)
        told(said)
        taken += is_taken
    assert 0 < taken < COUNT


async def test_any_answer_of_a_receiver_takes_a_message_or_says_why_not(wire):
    """Status, header and body."""
    wire.waits_for = b"\r\n\r\n"
    made = channel("webhook", url=f"http://127.0.0.1:{wire.port}/")
    taken = 0
    for wire.says in mutants(HOOK, COUNT):
        said, is_taken = await deliver(made)
        told(said)
        taken += is_taken
    assert 0 < taken < COUNT


@pytest.mark.parametrize(
    ("kind", "url", "proper", "number"),
    [
        (DNS, "dns://127.0.0.1:{}/www.example.org", names_answer, slice(2)),
        (NTP, "ntp://127.0.0.1:{}", time_answer, slice(24, 32)),
    ],
    ids=["dns", "ntp"],
)
async def test_any_datagram_is_a_result_or_is_passed_over(target_check, kind, url, proper, number):
    """The proper answer comes after it, so that a check has an end in any case. Nine of ten bear the right number."""
    asked = 0

    def replies(data):
        nonlocal asked
        asked += 1
        answer = proper(data)
        mutant = bytearray(next(mutants([answer], 1, seed=asked)))[:60_000]
        if asked % 10:
            mutant[number] = answer[number]
        yield bytes(mutant)
        yield answer

    found = set()
    async with answering(replies) as server:
        check = target_check(kind.make(url=parse_url(url.format(server.port), kind.schemes)), timeout=PATIENCE)
        for _ in range(COUNT):
            found.add((await result_of(check)).status)
    assert Status.UP in found
    assert found <= {Status.UP, Status.DOWN, Status.UNKNOWN}


@pytest.mark.parametrize("is_body_alone", [True, False], ids=["body", "all of it"])
async def test_any_answer_of_a_registry_is_a_result(wire, target_check, is_body_alone):
    """What makes no sense is the registry's trouble, and leaves the domain unknown."""
    wire.waits_for = b"\r\n\r\n"
    check = DOMAIN.make(url=parse_url("domain://example.org", DOMAIN.schemes), server=f"http://127.0.0.1:{wire.port}/")
    asked = target_check(check, is_resolved=False)
    found = set()
    for mutant in mutants(RDAP if is_body_alone else RDAP_WHOLE, COUNT):
        length = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(mutant)
        wire.says = length + mutant if is_body_alone else mutant
        found.add((await result_of(asked)).status)
    assert {Status.UP, Status.UNKNOWN} <= found
