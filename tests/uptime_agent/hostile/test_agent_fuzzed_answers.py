"""Whatever comes back over a wire ends its own check or message, in words, and nothing else.

Real clients read mutants of proper answers from real sockets. `HYPOTHESIS_PROFILE=thorough` tries 10,000 for each wire.
"""

import json
import struct
from contextlib import suppress

import anyio
import dns.message
import dns.rrset
import pytest

from kit import PATIENCE, examples
from mutants import mutants
from notify_kit import MESSAGE, channel
from timerqueue import SystemClock
from uptime_agent.checks import CheckResult, Resolver, Status
from uptime_agent.checks.dns import DNS
from uptime_agent.checks.domain import DOMAIN
from uptime_agent.checks.ntp import NTP
from uptime_agent.notify import Means, Notification, Undelivered, Way
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
    means = Means(Resolver({}), SystemClock())
    try:
        return await sent(Notification((MESSAGE,)), Way(channel=made, timeout=PATIENCE), means, str), True
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


MAIL = [
    b"220 mail ESMTP\r\n250-mail\r\n250-SIZE 100000\r\n250 8BITMIME\r\n250 a\r\n250 b\r\n354 c\r\n250 d\r\n221 e\r\n",
    b"220-first\r\n220 second\r\n500 what\r\n250 mail\r\n250 ok\r\n550 nobody\r\n221 bye\r\n",
    b"554 no\r\n",
]


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


HOOK = [
    b"HTTP/1.1 204 No Content\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n",
    b"HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 5\r\n\r\nlater",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 429 Slow\r\nRetry-After: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b",
]


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


def names_answer(data):
    """Answer a question for an address, with an alias before it."""
    query = dns.message.from_wire(data)
    response = dns.message.make_response(query)
    name = query.question[0].name.to_text()
    response.answer += [
        dns.rrset.from_text(name, 60, "IN", "CNAME", "other.example."),
        dns.rrset.from_text("other.example.", 60, "IN", "A", "192.0.2.1", "192.0.2.2"),
    ]
    return response.to_wire()


def time_answer(data):
    """Answer a question for the time."""
    (asked,) = struct.unpack_from("!Q", data, 40)
    return struct.pack("!BBbbIII4Q", 0x24, 2, 6, -20, 655, 655, 0x7F000001, asked, asked, asked, asked)


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


RDAP = [
    json.dumps({"ldhName": "example.org", "status": [state], "events": events}).encode()
    for state, events in [
        ("active", [{"eventAction": "expiration", "eventDate": "2100-01-01T00:00:00Z"}]),
        ("redemption period", [{"eventAction": "registration"}]),
        ("active", [{"eventAction": "expiration", "eventDate": "0001-01-01T00:00:00+14:00"}]),
        ("active", [{"eventAction": "expiration", "eventDate": "9999-12-31T23:59:59-14:00"}]),
    ]
]


@pytest.mark.parametrize("is_body_alone", [True, False], ids=["body", "all of it"])
async def test_any_answer_of_a_registry_is_a_result(wire, target_check, is_body_alone):
    """What makes no sense is the registry's trouble, and leaves the domain unknown."""
    wire.waits_for = b"\r\n\r\n"
    check = DOMAIN.make(url=parse_url("domain://example.org", DOMAIN.schemes), server=f"http://127.0.0.1:{wire.port}/")
    asked = target_check(check, is_resolved=False)
    whole = [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(each) + each for each in RDAP]
    found = set()
    for mutant in mutants(RDAP if is_body_alone else whole, COUNT):
        length = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(mutant)
        wire.says = length + mutant if is_body_alone else mutant
        found.add((await result_of(asked)).status)
    assert {Status.UP, Status.UNKNOWN} <= found
