"""Every kind of check of ours passes the public suite, each with a server of its own on this machine."""

import socket

import pytest
from anyio.streams.tls import TLSStream

from kit import needs_re2
from programs import path_of
from uptime_agent.checks import BY_SCHEME, KINDS, Resolver, reach
from uptime_agent.checks.contract.result import Status
from uptime_agent.checks.contract.trouble import judge
from uptime_agent.checks.http import HTTP
from uptime_agent.checks.tcp import TCP
from uptime_agent.checks.tls import TLS
from uptime_agent.testing import StreamConformance
from uptime_agent.text import parse_url


@needs_re2
class TestHttp(StreamConformance):
    """http://, which looks for a text in the body."""

    @pytest.fixture
    def kind(self):
        return HTTP

    @pytest.fixture
    def examples(self, certificate):
        return [
            {"contains": "hello"},
            {
                "method": "POST",
                "headers": {"Accept": "text/html"},
                "expect_status": [200, "300-399"],
                "redirects": 2,
                "redirect_targets": "any",
                "verify": False,
                "ca_file": str(certificate[0]),
                "max_body": 100,
            },
            {
                "body": "hello",
                "expect_headers": {"Content-Type": False},
                "not_contains": "error",
                "regex": "h.*o",
                "min_tls": "1.3",
                "cert_expires_within": "14d",
            },
            {"json": '$.status == "ok"'},
        ]

    @pytest.fixture
    def well(self):
        async def respond(stream):
            received = b""
            while b"\r\n\r\n" not in received:
                received += await stream.receive()
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

        return respond


class TestTcp(StreamConformance):
    """tcp://, which sends a text and expects it back."""

    @pytest.fixture
    def kind(self):
        return TCP

    @pytest.fixture
    def examples(self, certificate):
        return [
            {"send": "hello", "expect": "hello"},
            {"dialogue": [{"expect": "220 *"}, {"send": "STARTTLS\r\n"}, {"starttls": True}], "verify": False},
            {"tls": True, "ca_file": str(certificate[0]), "cert_expires_within": "7d"},
        ]

    @pytest.fixture
    def well(self):
        async def echo(stream):
            while True:
                await stream.send(await stream.receive())

        return echo


class TestTls(StreamConformance):
    """tls://, with a server whose certificate nobody has signed."""

    @pytest.fixture
    def kind(self):
        return TLS

    @pytest.fixture
    def examples(self, certificate):
        return [
            {"verify": False},
            {
                "ca_file": str(certificate[0]),
                "server_name": "timerqueue.test",
                "min_tls": "1.3",
                "cert_expires_within": "14d",
            },
        ]

    @pytest.fixture
    def well(self, tls):
        async def shake(stream):
            await TLSStream.wrap(stream, server_side=True, ssl_context=tls, standard_compatible=False)
            await stream.receive()

        return shake


TESTED = {"http": TestHttp, "tcp": TestTcp, "tls": TestTls}
"""Kinds with servers of a file of their own have their classes there."""
ELSEWHERE = {
    "dns": "test_agent_dns",
    "domain": "test_agent_domain",
    "icmp": "test_agent_icmp",
    "ntp": "test_agent_ntp",
    "postgres": "test_agent_postgres",
    "push": "test_agent_push_kind",
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_in_this_suite(kind):
    """A new kind needs a class here, and schemes that no other has."""
    if kind.name in ELSEWHERE:
        assert "Conformance" in path_of(ELSEWHERE[kind.name]).read_text()
    else:
        assert kind.name in TESTED
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


AT_HOME = {
    "http": "http://127.0.0.1:{port}/",
    "tcp": "tcp://127.0.0.1:{port}",
    "tls": "tls://127.0.0.1:{port}",
    "dns": "dns://127.0.0.1:{port}/www.example.org",
    "ntp": "ntp://127.0.0.1:{port}",
    "postgres": "postgresql://127.0.0.1:{port}/",
    "icmp": "icmp://127.0.0.1",
}


@pytest.mark.parametrize("kind", [each for each in KINDS if each.is_resolved], ids=lambda kind: kind.name)
async def test_every_kind_asks_no_address_that_targets_does_not_allow(kind, up, target_check):
    """An address in the URL, and one to which a name leads: of neither is anything asked."""
    for host in ("127.0.0.1", "inside.test"):
        url = AT_HOME[kind.name].format(port=up.port).replace("127.0.0.1", host)
        resolver = Resolver({"inside.test": ["127.0.0.1"]}, reach=reach("public"))
        check = kind.make(url=parse_url(url, kind.schemes))
        result = await target_check(check, resolver=resolver).run()
        assert result.status is Status.DOWN
        assert '"targets" in the configuration does not allow it' in result.error
    assert up.connections == 0
