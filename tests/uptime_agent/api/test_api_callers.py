"""Who asks, and from which page: a table of what requests say, and what the agent makes of it."""

from base64 import b64encode
from ipaddress import ip_network

import pytest
from hypothesis import given, strategies as st

from uptime_agent.api.callers import Caller, Head, Known, Stranger, caller_of, why_foreign, why_misdirected
from uptime_agent.api.tokens import Token
from uptime_agent.config import Proxies
from uptime_agent.web import Ends

TOKENS = {name: Token(name, scope, name) for name, scope in (("ann", "admin"), ("bob", "read"))}
PROXIES = Proxies(
    networks=(ip_network("10.0.0.0/24"), ip_network("fd00::/64")),
    header="x-forwarded-user",
    users={"ann@example.org": "admin", "*": "read"},
)
KNOWN = Known(find=TOKENS.get, ours=1_000)
BEHIND = Known(find=TOKENS.get, ours=1_000, proxies=PROXIES)
TCP = Ends(("127.0.0.1", 50_000), ("127.0.0.1", 8_080))
HERE = Ends(uid=1_000)


def head(method="GET", **fields):
    """Return the head of a request."""
    named = tuple((name.lower().replace("_", "-"), value) for name, value in fields.items())
    return Head(method, named)


def basic(password, user="me"):
    """Write a password as browsers do."""
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("asked", "ends", "name", "scope"),
    [
        (head(authorization="Bearer ann"), TCP, "ann", "admin"),
        (head(authorization="bearer  bob "), TCP, "bob", "read"),
        (head(authorization=basic("bob")), TCP, "bob", "read"),
        (head("HEAD", authorization=basic("ann")), TCP, "ann", "admin"),
        (head("POST", authorization="Bearer ann"), TCP, "ann", "admin"),
        (head("DELETE"), HERE, "uid 1000", "admin"),
        (head("DELETE"), Ends(uid=0), "uid 0", "admin"),
        (head(authorization="Bearer bob"), HERE, "bob", "read"),
    ],
)
def test_a_caller_is_known_by_a_token_or_as_a_user_of_this_machine(asked, ends, name, scope):
    """Over the socket our own user and root need no token; with one they are what it says."""
    found = caller_of(asked, ends, KNOWN)
    assert (found.name, found.scope) == (name, scope)


@pytest.mark.parametrize(
    ("asked", "ends", "reason"),
    [
        (head(), TCP, "no-access"),
        (head(), Ends(uid=1_001), "no-access"),
        (head(), Ends(), "no-access"),
        (head(authorization="Bearer eve"), TCP, "wrong-token"),
        (head(authorization="Bearer eve"), HERE, "wrong-token"),
        (head(authorization="Bearer "), TCP, "wrong-token"),
        (head(authorization=basic("eve")), TCP, "wrong-token"),
        (head(authorization="Basic ÿ"), TCP, "wrong-token"),
        (head(authorization="Basic " + b64encode(b"ann").decode()), TCP, "wrong-token"),
        (head("POST", authorization=basic("ann")), TCP, "basic"),
        (head("PUT", authorization=basic("ann")), TCP, "basic"),
        (head(authorization="Digest ann"), TCP, "unclear"),
        (head(authorization="ann"), TCP, "unclear"),
        (Head("GET", (("authorization", "Bearer ann"), ("authorization", "Bearer ann"))), TCP, "unclear"),
        (head(cookie="token=ann", x_token="ann"), TCP, "no-access"),
    ],
)
def test_anybody_else_is_a_stranger(asked, ends, reason):
    """With the reason, which is what the answer says."""
    found = caller_of(asked, ends, KNOWN)
    assert isinstance(found, Stranger)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("address", "user", "scope"),
    [
        ("10.0.0.9", "ann@example.org", "admin"),
        ("10.0.0.9", "eve@example.org", "read"),
        ("::ffff:10.0.0.9", "ann@example.org", "admin"),
        ("fd00::1", "ann@example.org", "admin"),
        ("10.0.1.9", "ann@example.org", None),
        ("127.0.0.1", "ann@example.org", None),
        ("10.0.0.9", "", None),
        ("10.0.0.9", "*", None),
        ("10.0.0.9", "a\x00b", None),
        ("10.0.0.9", "x" * 201, None),
    ],
)
def test_a_user_is_named_by_a_trusted_proxy_alone(address, user, scope):
    """From any other peer the header is refused, and not passed over: somebody tries it."""
    ends = Ends((address, 1), ("10.0.0.1", 80))
    found = caller_of(head(x_forwarded_user=user, authorization="Bearer ann"), ends, BEHIND)
    match found:
        case Caller():
            assert (found.name, found.scope) == (user, scope)
        case Stranger():
            assert (found.reason, scope) == ("user-header", None)


def test_a_header_that_comes_twice_names_nobody():
    """A proxy that adds its own leaves the client's in."""
    asked = Head("GET", (("x-forwarded-user", "ann@example.org"), ("x-forwarded-user", "eve@example.org")))
    assert isinstance(caller_of(asked, Ends(("10.0.0.9", 1), ("10.0.0.1", 80)), BEHIND), Stranger)


def test_no_user_header_is_read_unless_it_is_configured():
    """It is a header as any other."""
    asked = head(x_forwarded_user="ann@example.org")
    assert caller_of(asked, Ends(("10.0.0.9", 1), ("10.0.0.1", 80)), KNOWN).reason == "no-access"


LISTENING = Ends(("192.0.2.7", 1), ("192.0.2.1", 8_080))


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("localhost", True),
        ("LOCALHOST:8080", True),
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("192.0.2.1:8080", True),
        ("status.example.org", True),
        ("Status.Example.org:443", True),
        ("evil.example", False),
        ("evil.example:8080", False),
        ("localhost.", False),
        ("localhost.evil.example", False),
        ("192.0.2.2", False),
        ("127.0.0.1@evil.example", False),
        ("evil.example/localhost", False),
        ("localhost:x", False),
        ("localhost:80:80", False),
        ("[::1", False),
        ("", False),
        (" localhost", False),
        ("localhost#evil.example", False),
    ],
)
def test_a_name_that_was_rebound_to_this_address_is_refused(host, is_ours):
    """CVE-2025-66416 and others: a page of evil.example asks its own name, which leads here by now."""
    assert (why_misdirected(head(host=host), LISTENING, ("status.example.org",)) is None) == is_ours


def test_a_host_that_is_missing_or_comes_twice_is_refused():
    """Nobody knows which of them a proxy has looked at."""
    assert why_misdirected(head(), LISTENING, ())
    assert why_misdirected(Head("GET", (("host", "localhost"), ("host", "localhost"))), LISTENING, ())
    assert why_misdirected(head(host="anything"), HERE, ()) is None  # no browser comes over a Unix socket


@pytest.mark.parametrize(
    ("asked", "may"),
    [
        (head(), True),
        (head("POST"), True),
        (head(sec_fetch_site="same-origin", origin="http://localhost:8080"), True),
        (head("POST", sec_fetch_site="none"), True),
        (head("POST", origin="https://status.example.org"), True),
        (head("POST", origin="http://localhost:8080"), True),
        (head("POST", origin="HTTP://LOCALHOST:8080"), True),
        (head("GET", sec_fetch_site="cross-site", sec_fetch_mode="navigate"), True),
        (head("POST", sec_fetch_site="cross-site", sec_fetch_mode="navigate"), False),
        (head(sec_fetch_site="cross-site"), False),
        (head(sec_fetch_site="same-site"), False),
        (head("POST", sec_fetch_site="cross-site"), False),
        (head(sec_fetch_site="CROSS-SITE"), False),
        (head(origin="http://evil.example"), False),
        (head("POST", origin="null"), False),
        (head("POST", origin=""), False),
        (head("POST", origin="http://localhost:8081"), False),
        (head("POST", origin="http://status.example.org"), False),
        (head("POST", origin="file://localhost:8080"), False),
        (head("POST", origin="http://localhost:8080", sec_fetch_site="cross-site"), False),
        (
            Head("POST", (("host", "localhost:8080"), ("origin", "http://localhost:8080"), ("origin", "http://e"))),
            False,
        ),
    ],
)
def test_a_page_of_another_site_learns_and_does_nothing(asked, may):
    """Reads as well: there is no CORS header, but an event stream or an image needs none."""
    fields = (
        asked.fields if any(name == "host" for name, _ in asked.fields) else (*asked.fields, ("host", "localhost:8080"))
    )
    assert (why_foreign(Head(asked.method, fields), ("status.example.org",)) is None) == may


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["host", "origin", "authorization", "x-forwarded-user", "sec-fetch-site", "cookie"]),
            st.one_of(st.text(max_size=40), st.sampled_from(["Bearer eve", "Basic !", "http://[", "[", "//@:"])),
        ),
        max_size=6,
    ),
    st.sampled_from(["GET", "POST", "BREW"]),
    st.sampled_from([TCP, LISTENING, Ends(), Ends(uid=77)]),
)
def test_no_head_opens_anything_or_is_a_defect(fields, method, ends):
    """Whatever it holds: without a token, a user of ours or a proxy there is no caller."""
    asked = Head(method, tuple(fields))
    assert isinstance(caller_of(asked, ends, BEHIND), Stranger)
    why_misdirected(asked, ends, ("status.example.org",))
    why_foreign(asked, ())
