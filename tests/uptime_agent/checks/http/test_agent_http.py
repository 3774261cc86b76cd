"""HTTP checks against real servers, with and without TLS."""

import gzip
import zlib

import anyio
import pytest

from kit import PATIENCE
from uptime_agent.checks.contract.result import Status
from uptime_agent.checks.http.http_check import SCHEMES
from uptime_agent.checks.http.options import headers, status_codes
from uptime_agent.checks.kinds import BY_SCHEME
from uptime_agent.text.url import parse_url
from uptime_agent.toml.readers import Unfit

NAME = "timerqueue.test"
HOSTS = {NAME: ("127.0.0.1",), "other.test": ("127.0.0.1",)}


def check(url, **options):
    """Make an HTTP check."""
    parsed = parse_url(url, SCHEMES)
    return BY_SCHEME[parsed.scheme].make(url=parsed, **options)


@pytest.mark.parametrize(
    ("status", "options", "expected", "error"),
    [
        (200, {}, Status.UP, None),
        (204, {}, Status.UP, None),
        (301, {}, Status.UP, None),
        (400, {}, Status.DOWN, "status 400, expected 200-399"),
        (503, {}, Status.DOWN, "status 503, expected 200-399"),
        (404, {"expect_status": ((404, 404),)}, Status.UP, None),
        (200, {"expect_status": ((201, 204), (301, 301))}, Status.DOWN, "status 200, expected 201-204, 301"),
        (200, {"contains": "ell"}, Status.UP, None),
        (200, {"contains": "bye"}, Status.DOWN, '"bye" is not in the body (5 bytes)'),
        (200, {"contains": "lo", "max_body": 3}, Status.DOWN, '"lo" is not in the body (3 bytes)'),
    ],
)
async def test_status_and_body_decide(serve, answers, attempt, status, options, expected, error):
    """Up is an expected status with the text, and anything else says what was expected."""
    body = b"" if status == 204 else b"hello"
    server = await serve(answers.respond(status, body))
    finding = await check(f"http://127.0.0.1:{server.port}/", **options).attempt(attempt())
    assert (finding.status, finding.error) == (expected, error)
    assert finding.detail["http_status"] == status


@pytest.mark.parametrize("percent", ["%25", "%"])
async def test_a_zone_leads_to_its_interface_and_is_told_to_nobody(serve, answers, target_check, percent):
    """Written as RFC 6874 has it or as people do; the server is told the address alone."""
    try:
        server = await serve(answers.respond(), host="::1")
    except OSError:
        pytest.skip("needs IPv6")
    loopback = 1  # a number, for the C library knows the names of interfaces for link-local addresses only
    result = await target_check(check(f"http://[::1{percent}{loopback}]:{server.port}/")).run()
    assert (result.status, result.error) == (Status.UP, None)
    assert f"Host: [::1]:{server.port}".lower() in server.requests[0].lower()


async def test_a_zone_that_is_not_there_is_our_trouble(target_check):
    """The target is unknown, and the error says which address this machine can make nothing of."""
    result = await target_check(check("http://[fe80::1%25nowhere]:9/")).run()
    assert result.status is Status.UNKNOWN
    assert "this machine can make nothing of the address [fe80::1%nowhere]:9: " in result.error


async def test_the_request_is_what_was_asked_for(serve, answers, attempt):
    """Method, path, query and headers go over the wire; Host is the name although an address was dialled."""
    server = await serve(answers.respond())
    url = f"http://me:pass%20word@{NAME}:{server.port}/a b/ü?q=1&r=%20".replace(" ", "%20")
    await check(url, method="POST", headers={"X-Test": "1", "Accept": "text/html"}).attempt(attempt())
    first, *fields = server.requests[0].split("\r\n")
    sent = dict(field.lower().split(": ", 1) for field in fields if field)
    assert first == "POST /a%20b/%C3%BC?q=1&r=%20 HTTP/1.1"
    assert sent["host"] == f"{NAME}:{server.port}"
    assert (sent["x-test"], sent["accept"]) == ("1", "text/html")
    assert sent["accept-encoding"] == "identity"
    assert "authorization" in sent


async def test_all_phases_are_measured(serve, answers, attempt, tls, certificate):
    """Connect, TLS, sending, waiting for the first byte and receiving add up to the whole."""
    server = await serve(answers.respond(), tls=tls)
    at = attempt()
    await check(f"https://{NAME}:{server.port}", ca_file=str(certificate[0])).attempt(at)
    assert list(at.watch.phases) == ["connect", "tls", "send", "first_byte", "receive"]
    assert 0 < sum(at.watch.phases.values()) <= at.watch.elapsed


async def test_the_certificate_is_checked_against_the_name(serve, answers, attempt, target_check, tls, certificate):
    """Right for the name, wrong for another name, wrong without the authority, and all right if not looked at."""
    server = await serve(answers.respond(), tls=tls)
    ca_file = str(certificate[0])

    async def error_of(host, **options):
        result = await target_check(check(f"https://{host}:{server.port}", **options), hosts=HOSTS).run()
        return result.status, result.error

    assert await error_of(NAME, ca_file=ca_file) == (Status.UP, None)
    status, error = await error_of("other.test", ca_file=ca_file)
    assert status is Status.DOWN
    assert "certificate of 127.0.0.1" in error
    assert "other.test" in error
    status, error = await error_of(NAME)
    assert status is Status.DOWN
    assert "self-signed" in error
    assert await error_of(NAME, verify=False) == (Status.UP, None)


async def test_a_server_without_tls_is_down_over_https(serve, answers, target_check):
    """The handshake meets plain text."""
    server = await serve(answers.flooding)
    result = await target_check(check(f"https://{NAME}:{server.port}"), hosts=HOSTS).run()
    assert result.status is Status.DOWN
    assert result.error.startswith("TLS with 127.0.0.1")


async def test_a_cancelled_handshake_leaves_nothing_open(serve, answers, target_check):
    """A server that accepts and never shakes hands must not cost a descriptor per check."""
    server = await serve(answers.silent)
    result = await target_check(check(f"https://{NAME}:{server.port}"), hosts=HOSTS, timeout=0.1).run()
    assert result.status is Status.DOWN
    assert result.error == f"no answer from 127.0.0.1:{server.port} within 0.1 s (tls)"
    with anyio.fail_after(PATIENCE):
        await server.all_closed.wait()


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress, lambda data: zlib.compress(data)[2:-4]])
async def test_a_compressed_body_is_searched(serve, answers, attempt, compress):
    """Identity was asked for; gzip and both ways of deflate are understood all the same."""
    name = "gzip" if compress is gzip.compress else "deflate"
    server = await serve(answers.respond(body=compress(b"hello"), headers=[f"Content-Encoding: {name}"]))
    url = f"http://127.0.0.1:{server.port}"
    assert (await check(url, contains="ell").attempt(attempt())).status is Status.UP
    assert (await check(url, contains="bye").attempt(attempt())).error == '"bye" is not in the body (5 bytes)'


async def test_a_body_in_another_encoding_is_not_searched(serve, answers, attempt):
    """What came says nothing about the text."""
    server = await serve(answers.respond(headers=["Content-Encoding: br"]))
    finding = await check(f"http://127.0.0.1:{server.port}", contains="bye").attempt(attempt())
    assert finding.status is Status.UNKNOWN
    assert finding.error == "cannot look for text in a body encoded as br, although identity was asked for"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_body_without_end_is_read_as_far_as_allowed(serve, answers, attempt, tls, scheme):
    """The rest is not waited for, and nothing stays open."""
    body = b"x" * 1_000_000
    server = await serve(answers.respond(body=body), tls=tls if scheme == "https" else None)
    url = f"{scheme}://{NAME}:{server.port}"
    finding = await check(url, max_body=100_000, verify=False).attempt(attempt())
    assert (finding.status, finding.detail["bytes"]) == (Status.UP, 100_000)
    with anyio.fail_after(PATIENCE):
        await server.all_closed.wait()


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        (200, ((200, 200),)),
        ("200-299", ((200, 299),)),
        (["200-204", 301, "404"], ((200, 204), (301, 301), (404, 404))),
    ],
)
def test_expected_statuses_are_read(value, codes):
    """A number, a range, or a list of both."""
    assert status_codes(value) == codes


@pytest.mark.parametrize("value", [99, 600, "2xx", "299-200", [], [200, "x"], True, 200.0, {}])
def test_other_statuses_are_refused(value):
    """There are no such codes."""
    with pytest.raises(Unfit, match="expected a status such as 200"):
        status_codes(value)


def test_a_header_may_come_from_the_environment(monkeypatch):
    """A secret need not stand in the file."""
    monkeypatch.setenv("API_TOKEN", "hunter22")
    assert headers({"X-Token": {"env": "API_TOKEN"}}) == {"X-Token": "hunter22"}
    monkeypatch.delenv("API_TOKEN")
    with pytest.raises(Unfit, match="the environment variable API_TOKEN"):
        headers({"X-Token": {"env": "API_TOKEN"}})


@pytest.mark.parametrize("value", [5, {"A b": "x"}, {"A": "x\r\nB: y"}, {"A": 5}, {"A": {"env": 5}}, {"A": "é"}])
def test_other_headers_are_refused(value):
    """Above all a line break, which would smuggle in another header."""
    with pytest.raises(Unfit):
        headers(value)
