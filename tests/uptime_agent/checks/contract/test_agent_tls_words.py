"""Trouble with TLS, from the handshake to the certificate, in words of ours."""

import ssl

import anyio
import pytest

from uptime_agent.checks.contract.result import Status
from uptime_agent.checks.contract.tls_words import handshake, refused
from uptime_agent.checks.http.http_check import SCHEMES
from uptime_agent.checks.kinds import BY_SCHEME
from uptime_agent.checks.net.budget import Budget
from uptime_agent.text.url import parse_url

NAME = "timerqueue.test"
HOSTS = {NAME: ("127.0.0.1",)}


def check(port, **options):
    """Make an HTTPS check of a port."""
    return BY_SCHEME["https"].make(url=parse_url(f"https://{NAME}:{port}/", SCHEMES), **options)


def failed(reason):
    """Make an error as OpenSSL makes it."""
    error = ssl.SSLError(1, f"[SSL: {reason}] {reason.lower()} (_ssl.c:1006)")
    error.reason = reason
    return error


def not_verified(code, message):
    """Make the error of a certificate."""
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, message
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (failed("WRONG_VERSION_NUMBER"), "it does not speak TLS there"),
        (failed("TLSV1_ALERT_PROTOCOL_VERSION"), "it speaks none of our versions of TLS"),
        (failed("SSLV3_ALERT_BAD_CERTIFICATE"), 'it ended the handshake with "bad certificate"'),
        (failed("SOMETHING_NEW"), "something new"),
        (
            ssl.SSLEOFError(8, "EOF occurred in violation of protocol"),
            "it closed the connection in the middle of the handshake",
        ),
        (ssl.SSLError(), "it broke the rules of TLS"),
    ],
)
def test_a_handshake_that_fails_says_why(error, words):
    """No name of a constant, no line of a source file."""
    assert handshake(error) == words


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (not_verified(10, "certificate has expired"), "has expired"),
        (not_verified(62, "Hostname mismatch, certificate is not valid for 'h.test'."), "is not valid for 'h.test'"),
        (
            not_verified(64, "IP address mismatch, certificate is not valid for '10.0.0.1'."),
            "is not valid for '10.0.0.1'",
        ),
        (not_verified(99, "Something new."), "refused: something new"),
    ],
)
def test_a_certificate_that_is_refused_says_why(error, words):
    """As what goes on after "certificate of X"."""
    assert refused(error) == words


async def test_a_server_that_speaks_another_protocol_says_so(serve, answers, target_check):
    """Over https."""
    server = await serve(answers.flooding)
    result = await target_check(check(server.port), hosts=HOSTS).run()
    assert result.error == f"TLS with 127.0.0.1:{server.port} failed: it does not speak TLS there"


async def test_a_server_that_closes_in_the_handshake_is_told_so(serve, answers, target_check):
    """It has accepted the connection and then thought better of it."""

    async def hello_and_goodbye(server, stream):
        await stream.receive()

    server = await serve(hello_and_goodbye)
    result = await target_check(check(server.port), hosts=HOSTS).run()
    words = f"TLS with 127.0.0.1:{server.port} failed: it closed the connection in the middle of the handshake"
    assert (result.status, result.error) == (Status.DOWN, words)


async def test_a_handshake_in_tiny_pieces_is_cut_off(serve, target_check, monkeypatch):
    """It is counted below TLS. The server waits until each byte has been taken."""
    monkeypatch.setattr("uptime_agent.checks.net.budget.FREE_READS", 10)
    taken = anyio.Event()
    read = Budget.read

    def seen(self, count):
        taken.set()
        read(self, count)

    monkeypatch.setattr(Budget, "read", seen)

    async def byte_by_byte(server, stream):
        nonlocal taken
        await stream.receive()
        for letter in b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03" + b"x" * 100:
            taken = anyio.Event()
            await stream.send(bytes([letter]))
            await taken.wait()

    server = await serve(byte_by_byte)
    result = await target_check(check(server.port), hosts=HOSTS).run()
    assert (result.status, result.error) == (
        Status.DOWN,
        "cut off: it sends its answer in tiny pieces, 11 for 11 bytes",
    )
