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

from programs import path_of
from uptime_agent.checks import Clash
from uptime_agent.checks.icmp import ICMP
from uptime_agent.checks.net.echo import answered, checksum, request
from uptime_agent.testing import KindConformance
from uptime_agent.text import parse_url

pytestmark = pytest.mark.slow

PROGRAM = path_of("echo_net")
FAMILIES = [socket.AF_INET, socket.AF_INET6]


class TestIcmp(KindConformance):
    """icmp://, whose servers need a network of their own: see below."""

    @pytest.fixture
    def kind(self):
        return ICMP

    @pytest.fixture
    def examples(self):
        return [{"packets": 5, "max_lost": 2}, {}]


def found_with(rights, backend):
    """Run the program with some rights: what it found, and which sockets it could open."""
    if sys.platform != "linux" or os.geteuid() or shutil.which("unshare") is None or not Path("/dev/net/tun").exists():
        pytest.skip("needs Linux, root, unshare and /dev/net/tun, for a network of its own")
    command = ["unshare", "-n", sys.executable, str(PROGRAM), rights, backend]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["found"], found["may"]


def well(packets):
    """Expect so many packets, and each answered."""
    return ["up", None, packets, 0]


@pytest.mark.parametrize(("rights", "backend"), [("datagram", "asyncio"), ("raw", "trio"), ("both", "asyncio")])
def test_a_host_is_judged_by_the_packets_that_it_answers(rights, backend):
    """Over both versions of IP, with the one kind of socket and with the other."""
    found, may = found_with(rights, backend)
    assert may == {"datagram": rights != "raw", "raw": rights != "datagram"}
    assert found["loopback"] == well(1)
    assert found["loopback6"] == well(5)
    for ip in ("", "6"):
        assert found[f"well{ip}"] == well(1)
        assert found[f"three{ip}"] == well(3)
        assert found[f"twice{ip}"] == well(3)  # an answer that comes twice counts once
        assert found[f"late{ip}"] == well(3)  # and one that comes during the next packet counts
        assert found[f"others{ip}"] == well(1)  # what is not ours is passed over
        assert found[f"one_lost{ip}"] == ["degraded", "1 of 3 packets lost", 3, 1]
        assert found[f"two_lost{ip}"] == ["degraded", "2 of 3 packets lost", 3, 2]
        assert found[f"all_lost{ip}"] == ["down", "no answer to 3 packets", None, None]
        assert found[f"damaged{ip}"] == ["down", "no answer to its packet", None, None]
    assert found["none_may_be_lost"] == ["down", "1 of 3 packets lost", 3, 1]
    assert found["unreachable"] == ["down", "no way to host 10.99.0.2", None, None]
    assert found["no_route"] == ["unknown", "this machine has no route to 192.0.2.1", None, None]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_without_either_right_the_result_is_unknown_and_says_what_is_missing(backend):
    """Also for root, who may be in no group that the sysctl names."""
    found, may = found_with("neither", backend)
    assert may == {"datagram": False, "raw": False}
    for status, error, *_ in found.values():
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
