"""Certificates of servers: whether they are trusted, which versions of TLS they go with, and when they expire."""

import shutil
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given, strategies as st

from kit import PATIENCE
from uptime_agent.checks import BY_SCHEME
from uptime_agent.checks.contract.result import Finding, Status
from uptime_agent.checks.net.expiry import Expiry, not_after, with_expiry
from uptime_agent.text.url import parse_url

NAME = "timerqueue.test"
DAY = 86_400
AUTHORITY = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign")
"""What Python 3.13 wants of one."""


class Certificates:
    """An authority that makes certificates, with openssl."""

    def __init__(self, folder):
        self.folder = folder
        self.openssl = shutil.which("openssl")
        told = subprocess.run([self.openssl, "version"], check=True, capture_output=True, text=True).stdout
        self.version = tuple(map(int, told.split()[1].split(".")[:2]))

    def run(self, *args):
        subprocess.run([self.openssl, *args], check=True, capture_output=True, cwd=self.folder)

    def make(self, name, days, *, signer=None, subject=None, extensions=AUTHORITY):
        """Make a key and a certificate of so many days; one of an authority unless told otherwise."""
        lines = [*extensions, "subjectKeyIdentifier=hash", *(["authorityKeyIdentifier=keyid"] if signer else [])]
        (self.folder / f"{name}.ext").write_text("\n".join(lines) + "\n")
        self.run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
        self.run(
            "req", "-new", "-key", f"{name}.key", "-out", f"{name}.csr", "-utf8", "-subj", subject or f"/CN={name}"
        )
        by = ["-signkey", f"{name}.key"]
        if signer is not None:
            by = ["-CA", f"{signer}.pem", "-CAkey", f"{signer}.key", "-CAcreateserial"]
        files = ["-in", f"{name}.csr", "-extfile", f"{name}.ext", "-out", f"{name}.pem"]
        self.run("x509", "-req", *files, *by, *self.until(days))

    def until(self, days):
        """Return the options for an end in so many days. From 3.4 on, openssl takes no negative one, but instants."""
        if days >= 0 or self.version < (3, 4):
            return ["-days", str(days)]
        start, end = (f"{datetime.now(UTC) + timedelta(days=each):%Y%m%d%H%M%SZ}" for each in (days - 1, days))
        return ["-not_before", start, "-not_after", end]

    def context(self, name, *chain):
        """Make the context of a server with that certificate and its chain."""
        file = self.folder / f"{name}.chain.pem"
        file.write_text("".join((self.folder / f"{each}.pem").read_text() for each in (name, *chain)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file, self.folder / f"{name}.key")
        return context


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make an authority for 400 days, one below it for 5, and certificates for 90, some of them odd."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl: apt-get install openssl")
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    leaf = [f"subjectAltName=DNS:{NAME},DNS:other.test"]
    certificates.make("root", 400)
    certificates.make("middle", 5, signer="root")
    certificates.make("long", 300, signer="root")
    certificates.make("leaf", 90, signer="middle", extensions=leaf)
    certificates.make("short", 2, signer="long", extensions=leaf)
    certificates.make("expired", -1, signer="root", extensions=leaf)
    certificates.make(
        "odd", 90, signer="root", subject="/CN=\x1b[2Jevil\u202e", extensions=["subjectAltName=DNS:x.test"]
    )
    return SimpleNamespace(
        ca=str(certificates.folder / "root.pem"),
        leaf=certificates.context("leaf", "middle"),
        short=certificates.context("short", "long"),
        expired=certificates.context("expired"),
        odd=certificates.context("odd"),
        folder=certificates.folder,
    )


def check(scheme, port, host=NAME, **options):
    """Make a check of options as the configuration has them."""
    kind = BY_SCHEME[scheme]
    read = {key: kind.options[key](value) for key, value in options.items()}
    return kind.make(url=parse_url(f"{scheme}://{host}:{port}", kind.schemes), **read)


@pytest.fixture
def found(serve, answers, target_check, made):
    """Check a server that has such certificates: the result."""

    async def find(scheme, server_tls, host=NAME, **options):
        handler = answers.respond() if scheme == "https" else answers.silent
        server = await serve(handler, tls=server_tls)
        made = check(scheme, server.port, host, **options)
        hosts = dict.fromkeys((NAME, "other.test", "third.test"), ("127.0.0.1",))
        return await target_check(made, hosts=hosts).run()

    return find


BOTH = pytest.mark.parametrize("scheme", ["https", "tls"])


@BOTH
async def test_the_result_says_when_leaf_and_chain_expire(scheme, found, made):
    """The chain by its first: that of the authority in between, which expires in five days."""
    result = await found(scheme, made.leaf, ca_file=made.ca)
    assert (result.status, result.error) == (Status.UP, None)
    assert 89 * DAY < result.detail["cert_expires_in"] <= 90 * DAY
    assert 4 * DAY < result.detail["chain_expires_in"] <= 5 * DAY


@BOTH
@pytest.mark.parametrize(
    ("which", "within", "status", "error"),
    [
        ("leaf", "4d", Status.UP, None),
        (
            "leaf",
            "14d",
            Status.DEGRADED,
            "a certificate in the chain of timerqueue.test expires in 4d23h, expected more than 14d00h",
        ),
        (
            "short",
            "14d",
            Status.DEGRADED,
            "the certificate of timerqueue.test expires in 1d23h, expected more than 14d00h",
        ),
        ("short", "12h", Status.UP, None),
    ],
)
async def test_what_expires_soon_is_degraded(scheme, found, made, which, within, status, error):
    """Whichever of the chain it is, for one of them is enough to end it."""
    result = await found(scheme, getattr(made, which), ca_file=made.ca, cert_expires_within=within)
    assert (result.status, result.error) == (status, error)


@BOTH
async def test_a_certificate_that_expired_is_down_or_told_where_nobody_looks(scheme, found, made):
    """Without `verify` it is degraded, if somebody asks for it."""
    result = await found(scheme, made.expired, ca_file=made.ca)
    assert result.status is Status.DOWN
    assert result.error.endswith("has expired")
    assert (await found(scheme, made.expired, verify=False)).status is Status.UP
    result = await found(scheme, made.expired, verify=False, cert_expires_within="1d")
    assert result.status is Status.DEGRADED
    assert result.error.startswith("the certificate of timerqueue.test expired ")
    assert result.detail["cert_expires_in"] < 0


@BOTH
async def test_tls_is_1_2_at_least_or_what_is_asked_for(scheme, found, made):
    """Also if the machine allows older versions; and 1.3 if the check says so."""
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    old.load_cert_chain(made.folder / "leaf.chain.pem", made.folder / "leaf.key")
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    result = await found(scheme, old, ca_file=made.ca)
    assert result.status is Status.UP
    result = await found(scheme, old, ca_file=made.ca, min_tls="1.3")
    assert result.status is Status.DOWN
    assert "TLS with 127.0.0.1" in result.error


async def test_a_tls_check_says_which_version(found, made):
    """For people and for JSON."""
    result = await found("tls", made.leaf, ca_file=made.ca)
    assert result.detail["tls_version"] == "TLSv1.3"
    assert list(result.phases) == ["dns", "connect", "tls"]


async def test_the_name_may_be_another_than_the_host(found, made):
    """SNI and the certificate go by `server_name`, the connection by the host."""
    result = await found("tls", made.leaf, "third.test", ca_file=made.ca)
    assert result.status is Status.DOWN
    assert "is not valid for 'third.test'" in result.error
    result = await found("tls", made.leaf, "third.test", ca_file=made.ca, server_name="Other.Test.")
    assert (result.status, result.error) == (Status.UP, None)
    result = await found("tls", made.leaf, "127.0.0.1", ca_file=made.ca, server_name=NAME)
    assert (result.status, result.error) == (Status.UP, None)


@BOTH
async def test_escapes_in_a_certificate_move_no_cursor(scheme, found, made):
    """Whatever somebody has had signed, an error is one line of letters."""
    result = await found(scheme, made.odd, ca_file=made.ca)
    assert result.status is Status.DOWN
    assert result.error.isprintable()
    assert len(result.error) <= 300


async def test_certificates_of_every_hop_count(serve, answers, target_check, made):
    """The one that redirects has a certificate that expires too."""
    last = await serve(answers.respond(), tls=made.leaf)
    first = await serve(answers.respond(302, headers=[f"Location: https://other.test:{last.port}/"]), tls=made.short)
    options = {"redirects": 1, "redirect_targets": "any", "ca_file": made.ca, "cert_expires_within": "3d"}
    hosts = dict.fromkeys((NAME, "other.test"), ("127.0.0.1",))
    result = await target_check(check("https", first.port, **options), hosts=hosts).run()
    while isinstance(result, list):
        result = await result[0].func(*result[0].args)
    assert (result.status, result.error) == (
        Status.DEGRADED,
        f"redirected to other.test:{last.port}: the certificate of {NAME} expires in 1d23h, expected more than 3d00h",
    )


async def test_a_half_open_handshake_ends_with_its_time(serve, answers, target_check, made):
    """A server that reads our hello and says nothing more costs no descriptor afterwards."""
    server = await serve(answers.silent)
    result = await target_check(
        check("tls", server.port, ca_file=made.ca), hosts={NAME: ("127.0.0.1",)}, timeout=0.2
    ).run()
    assert result.error == f"no answer from 127.0.0.1:{server.port} within 0.2 s (tls)"
    with anyio.fail_after(PATIENCE):
        await server.all_closed.wait()


GARBAGE = [
    b"SSH-2.0-x\r\n",
    b"\x15\x03\x01\x00\x02\x02\x28",
    b"\x16\x03\x03\xff\xff" + b"\0" * 65_535,
    b"\x1b[2J" * 999,
]


@pytest.mark.parametrize("garbage", GARBAGE)
async def test_garbage_in_place_of_a_handshake_is_down(serve, target_check, made, garbage):
    """In words of ours."""

    async def handler(server, stream):
        await stream.receive()
        await stream.send(garbage)

    server = await serve(handler)
    result = await target_check(check("tls", server.port, ca_file=made.ca), hosts={NAME: ("127.0.0.1",)}).run()
    assert result.status is Status.DOWN
    assert f"127.0.0.1:{server.port}" in result.error
    assert result.error.isprintable()


@given(st.binary(max_size=300))
def test_bytes_that_are_no_certificate_have_no_expiry(data):
    """Nothing is believed of their lengths."""
    assert not_after(data) is None or isinstance(not_after(data), float)


def test_a_certificate_that_is_cut_or_changed_is_no_defect(made):
    """At whatever byte."""
    der = ssl.PEM_cert_to_DER_cert((made.folder / "leaf.pem").read_text())
    assert not_after(der) is not None
    for at in range(len(der)):
        not_after(der[:at])
        not_after(der[:at] + b"\xff" + der[at + 1 :])


def test_a_time_is_read_in_both_forms():
    """UTCTime has two digits of a year, GeneralizedTime four."""

    def certificate(tag, text):
        def wrap(tag, *parts):
            content = b"".join(parts)
            return bytes([tag, len(content)]) + content

        validity = wrap(0x30, wrap(0x17, b"200101000000Z"), wrap(tag, text))
        empty = wrap(0x30)
        return wrap(0x30, wrap(0x30, wrap(0xA0, b"\2\1\2"), b"\2\1\1", empty, empty, validity))

    assert not_after(certificate(0x17, b"491231235959Z")) == 2_524_607_999.0
    assert not_after(certificate(0x17, b"991231235959Z")) == 946_684_799.0
    assert not_after(certificate(0x18, b"20500101000000Z")) == 2_524_608_000.0
    assert not_after(certificate(0x18, b"20501301000000Z")) is None
    assert not_after(certificate(0x0C, b"20500101000000Z")) is None


def test_what_is_down_stays_down():
    """A certificate that expires soon is the lesser trouble."""
    found = with_expiry(Finding(status=Status.DOWN, error="x"), Expiry(100.0, 50.0, "h"), 40.0, 3600.0)
    assert (found.status, found.error, found.detail) == (
        Status.DOWN,
        "x",
        {"cert_expires_in": 60, "chain_expires_in": 10},
    )
