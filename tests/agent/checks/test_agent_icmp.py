"""icmp:// checks in a network of their own, with a host that loses and damages packets, and with any rights."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from scheduler.agent.checks import Clash
from scheduler.agent.checks.icmp import ICMP
from scheduler.agent.checks.net.echo import answered, checksum, request
from scheduler.agent.text import parse_url
from scheduler.testing.checks import KindConformance

PROGRAM = Path(__file__).parents[2] / "echo_net.py"
FAMILIES = [socket.AF_INET, socket.AF_INET6]


class TestIcmp(KindConformance):
    """icmp://, whose servers need a network of their own: see below."""

    @pytest.fixture
    def kind(self):
        return ICMP

    @pytest.fixture
    def examples(self):
        return [{"packets": 5, "max_lost": 2}, {}]


def found_with(rights):
    """Run the program with some rights: what it found, by backend, and which sockets it could open."""
    if sys.platform != "linux" or os.geteuid() or shutil.which("unshare") is None or not Path("/dev/net/tun").exists():
        pytest.skip("needs Linux, root, unshare and /dev/net/tun, for a network of its own")
    command = ["unshare", "-n", sys.executable, str(PROGRAM), rights]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def well(packets):
    """Expect so many packets, and each answered."""
    return ["up", None, packets, 0]


@pytest.mark.parametrize("rights", ["datagram", "raw", "both"])
def test_a_host_is_judged_by_the_packets_that_it_answers(rights):
    """Over both versions of IP, on both backends, with the one kind of socket and with the other."""
    found = found_with(rights)
    assert found["may"] == {"datagram": rights != "raw", "raw": rights != "datagram"}
    for backend in ("asyncio", "trio"):
        of = found[backend]
        assert of["loopback"] == well(1)
        assert of["loopback6"] == well(5)
        for ip in ("", "6"):
            assert of[f"well{ip}"] == well(1)
            assert of[f"three{ip}"] == well(3)
            assert of[f"twice{ip}"] == well(3)  # an answer that comes twice counts once
            assert of[f"late{ip}"] == well(3)  # and one that comes during the next packet counts
            assert of[f"others{ip}"] == well(1)  # what is not ours is passed over
            assert of[f"one_lost{ip}"] == ["degraded", "1 of 3 packets lost", 3, 1]
            assert of[f"two_lost{ip}"] == ["degraded", "2 of 3 packets lost", 3, 2]
            assert of[f"all_lost{ip}"] == ["down", "no answer to 3 packets", None, None]
            assert of[f"damaged{ip}"] == ["down", "no answer to its packet", None, None]
        assert of["none_may_be_lost"] == ["down", "1 of 3 packets lost", 3, 1]
        assert of["unreachable"] == ["down", "no way to host 10.99.0.2", None, None]
        assert of["no_route"] == ["unknown", "this machine has no route to 192.0.2.1", None, None]


def test_without_either_right_the_result_is_unknown_and_says_what_is_missing():
    """Also for root, who may be in no group that the sysctl names."""
    found = found_with("neither")
    assert found["may"] == {"datagram": False, "raw": False}
    for backend in ("asyncio", "trio"):
        for status, error, *_ in found[backend].values():
            assert status == "unknown"
            assert error.startswith("unsupported: ")
            assert "net.ipv4.ping_group_range" in error
            assert "CAP_NET_RAW" in error


@given(st.binary(min_size=1, max_size=60), st.integers(0, 2**16 - 1), st.sampled_from(FAMILIES))
def test_a_request_sums_up_and_its_echo_is_known(mark, number, family):
    """RFC 1071: with its checksum in place, the sum is nothing."""
    asked = request(family, number, mark)
    assert checksum(asked) == 0
    echoed = (b"\x00" if family == socket.AF_INET else b"\x81") + asked[1:]
    assert answered(family, echoed, mark) == number
    assert answered(family, asked, mark) is None
    if family == socket.AF_INET:
        assert answered(family, bytes([0x45]) + bytes(19) + echoed, mark) == number


@given(st.binary(max_size=80), st.binary(min_size=24, max_size=24), st.sampled_from(FAMILIES))
def test_any_bytes_are_an_answer_or_none(data, mark, family):
    """Nothing is raised, whatever a network delivers."""
    assert answered(family, data, mark) is None


@pytest.mark.parametrize(
    ("url", "options", "key"),
    [
        ("icmp://h/x", {}, "url"),
        ("icmp://h", {"packets": 2, "max_lost": 2}, "max_lost"),
        ("icmp://h", {"max_lost": 1}, "max_lost"),
    ],
)
def test_what_does_not_fit_together_clashes(url, options, key):
    """With the key that has to change."""
    with pytest.raises(Clash) as caught:
        ICMP.make(url=parse_url(url, ICMP.schemes), **options)
    assert caught.value.key == key


def test_there_is_no_port_to_ask():
    """A URL that names one is a mistake, and none is shown."""
    with pytest.raises(ValueError, match="icmp://host, without a port"):
        parse_url("icmp://h:7", ICMP.schemes)
    assert str(parse_url("icmp://[fe80::1%25lo]", ICMP.schemes)) == "icmp://[fe80::1%lo]"
