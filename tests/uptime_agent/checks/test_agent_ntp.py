"""ntp:// checks against a server of our own, whose clock and words about itself are as a test says."""

import socket
import struct
from math import inf

import anyio
import pytest
from anyio.abc import SocketAttribute
from attrs import evolve
from hypothesis import given, strategies as st

from kit import PATIENCE
from timerqueue.testing import START
from uptime_agent.checks import Clash, Status
from uptime_agent.checks.ntp import NTP, NtpAnswer, instant, question, read
from uptime_agent.testing import DatagramConformance
from uptime_agent.testing._servers import answering
from uptime_agent.text import parse_url

NOW = START.timestamp()


def check_of(port=123, **options):
    """Make a check as a file would."""
    found = {key: NTP.options[key](value) for key, value in options.items()}
    return NTP.make(url=parse_url(f"ntp://127.0.0.1:{port}", NTP.schemes), **found)


def reply_to(data, *, ahead=0.0, leap=0, stratum=2, reference=b"\x7f\0\0\1", dispersion=0.01, mode=4):
    """Answer a question, in no time, by a clock that is so many seconds ahead of the one that asks."""
    (sent,) = struct.unpack_from("!Q", data, 40)
    now = (sent + round(ahead * 2**32)) % 2**64
    head = leap << 6 | 4 << 3 | mode
    root = round(dispersion * 2**16)
    return struct.pack("!BBbbII4s4Q", head, stratum, 6, -20, 655, root, reference, now, sent, now, now)


class TestNtp(DatagramConformance):
    """ntp:// with every bound."""

    @pytest.fixture
    def kind(self):
        return NTP

    @pytest.fixture
    def examples(self):
        return [{"max_offset": "1m", "degraded_offset": 50, "max_stratum": 3, "max_root_dispersion": "1s"}]

    @pytest.fixture
    def replies(self):
        return lambda data: [reply_to(data)]


@pytest.fixture
def asked(target_check):
    """Ask a server that answers as it is told."""

    async def ask(replies, **options):
        async with answering(replies) as server:
            with anyio.fail_after(PATIENCE):
                return await target_check(check_of(server.port, **options)).run()

    return ask


@pytest.mark.parametrize(
    ("server", "options", "status", "error"),
    [
        ({}, {}, Status.UP, None),
        ({"ahead": 3600}, {}, Status.UP, None),
        ({"ahead": 3600}, {"max_offset": "1m"}, Status.DOWN, "its clock is 3600 s ahead of ours"),
        ({"ahead": -3600}, {"max_offset": "1m"}, Status.DOWN, "its clock is 3600 s behind ours"),
        ({"ahead": 3600}, {"degraded_offset": "1m"}, Status.DEGRADED, "its clock is 3600 s ahead of ours"),
        (
            {"ahead": 90},
            {"degraded_offset": 60, "max_offset": 120},
            Status.DEGRADED,
            "its clock is 90.0 s ahead of ours",
        ),
        ({"ahead": 300}, {"degraded_offset": 60, "max_offset": 120}, Status.DOWN, "its clock is 300 s ahead of ours"),
        ({"leap": 1}, {}, Status.UP, None),
        ({"leap": 3}, {}, Status.DOWN, "its clock is not synchronised"),
        ({"stratum": 16}, {}, Status.DOWN, "its clock is not synchronised"),
        ({"stratum": 4}, {"max_stratum": 3}, Status.DOWN, "its stratum is 4, more than 3"),
        ({"stratum": 3}, {"max_stratum": 3}, Status.UP, None),
        (
            {"dispersion": 2},
            {"max_root_dispersion": "1s"},
            Status.DOWN,
            "its clock may be off by 2.00 s (root dispersion)",
        ),
        ({"stratum": 0, "reference": b"DENY"}, {}, Status.DOWN, 'it refuses to tell the time: "DENY"'),
        ({"stratum": 0, "reference": b"RATE"}, {}, Status.UNKNOWN, "it asks us to ask it less often (RATE)"),
        ({"stratum": 0, "reference": b"\x1b[2J"}, {}, Status.DOWN, 'it refuses to tell the time: "\\x1b[2J"'),
    ],
)
async def test_a_server_is_judged_by_its_clock_and_by_what_it_says_of_it(asked, server, options, status, error):
    """Whichever way it is off, and whatever it vouches for."""
    result = await asked(lambda data: [reply_to(data, **server)], **options)
    if error is not None and "ours" in error:  # by some microseconds more or less than that
        assert result.error.split()[0:3] == error.split()[0:3]
        assert result.error.split()[-2:] == error.split()[-2:]
    else:
        assert result.error == error
    assert result.status is status


async def test_what_was_measured_is_told(asked):
    """In seconds, as plain numbers."""
    result = await asked(lambda data: [reply_to(data, ahead=2.5, dispersion=0.25)])
    assert result.detail["ntp_offset"] == pytest.approx(2.5, abs=result.detail["ntp_delay"] + 1e-5)
    assert (result.detail["stratum"], result.detail["leap"], result.detail["root_dispersion"]) == (2, 0, 0.25)
    assert result.detail["root_delay"] == pytest.approx(0.009995, abs=1e-6)


async def test_an_answer_that_repeats_nothing_of_ours_is_passed_over(asked):
    """Whoever cannot see our question cannot answer it."""

    def replies(data):
        guess = struct.pack("!Q", struct.unpack_from("!Q", data, 40)[0] ^ 1)
        yield reply_to(data[:40] + guess, ahead=9999)
        yield reply_to(data, ahead=9999, mode=3)
        yield reply_to(data)[:47]
        yield reply_to(data)

    result = await asked(replies, max_offset="1h")
    assert (result.status, result.error) == (Status.UP, None)


async def test_a_lost_question_is_asked_again(asked, monkeypatch):
    """And an answer to any of them counts by the time at which that one was sent."""
    monkeypatch.setattr("uptime_agent.checks.net.datagram.ASKED_AGAIN_AFTER", 0.01)
    came = []

    def replies(data):
        came.append(data)
        return [reply_to(data)] if len(came) > 2 else []

    result = await asked(replies, max_offset="1s")
    assert (result.status, result.error) == (Status.UP, None)
    assert len(set(came)) == len(came) >= 3


async def test_it_asks_over_ipv6_as_well(target_check):
    """An address in brackets, and no name to look up."""
    async with (
        await anyio.create_udp_socket(family=socket.AF_INET6, local_host="::1") as udp,
        anyio.create_task_group() as group,
    ):

        async def serve():
            async for data, peer in udp:
                await udp.sendto(reply_to(data), *peer[:2])

        group.start_soon(serve)
        url = parse_url(f"ntp://[::1]:{udp.extra(SocketAttribute.local_port)}", NTP.schemes)
        with anyio.fail_after(PATIENCE):
            result = await target_check(NTP.make(url=url)).run()
        group.cancel_scope.cancel()
    assert (result.status, result.address) == (Status.UP, "::1")


def test_half_of_the_way_does_not_count_against_a_server():
    """An answer that took two seconds may be off by one, if all of them went into one direction."""
    sent, received = instant(NOW), instant(NOW + 2)
    answer = read(reply_to(question(sent)), {sent}, received)
    assert (answer.offset, answer.delay, answer.least_offset) == (-1.0, 2.0, 0.0)
    assert check_of(max_offset="500ms")._judged(answer).status is Status.UP
    assert check_of(max_offset="500ms")._judged(evolve(answer, offset=-1.6)).status is Status.DOWN


@given(st.floats(0, 2**33), st.floats(-1e6, 1e6), st.floats(0, 100), st.floats(0, 100))
def test_an_offset_is_right_to_half_of_the_way(now, ahead, there, back):
    """In any year: also where the seconds of NTP begin again, in 2036."""
    sent = instant(now)
    came = (instant(now + there) + round(ahead * 2**32)) % 2**64
    data = struct.pack("!BBbbII4s4Q", 0x24, 1, 0, 0, 0, 0, b"GPS\0", 0, sent, came, came)
    answer = read(data, {sent}, instant(now + there + back))
    assert abs(answer.offset - ahead) <= (there + back) / 2 + 1e-3
    assert answer.delay == pytest.approx(there + back, abs=1e-3)
    assert answer.least_offset <= abs(ahead) + 1e-3


@given(st.binary(max_size=100), st.integers(0, 2**64 - 1))
def test_any_bytes_are_an_answer_or_none(data, sent):
    """Nothing is raised, and what is found can be told."""
    data = bytearray(data)
    if len(data) >= 48:
        data[24:32] = sent.to_bytes(8, "big")
        data[0] = data[0] & ~7 | 4
    found = read(bytes(data), {sent}, sent)
    assert found is None or isinstance(found, NtpAnswer)
    if found is not None:
        assert -(2**32) < found.offset < 2**32
        assert found.delay < inf
        finding = check_of(max_offset=1, max_root_dispersion=1)._judged(found)
        assert all(isinstance(value, (int, float)) for value in finding.detail.values())


@pytest.mark.parametrize(
    ("url", "options", "key"),
    [
        ("ntp://h/pool", {}, "url"),
        ("ntp://h", {"max_offset": 1.0, "degraded_offset": 1.0}, "degraded_offset"),
    ],
)
def test_what_does_not_fit_together_clashes(url, options, key):
    """With the key that has to change."""
    with pytest.raises(Clash) as caught:
        NTP.make(url=parse_url(url, NTP.schemes), **options)
    assert caught.value.key == key
