"""Secrets stay secret, and text from outside stays text."""

import logging

import pytest
from hypothesis import given, strategies as st

from uptime_agent.checks import PORTS
from uptime_agent.checks.kinds import BY_SCHEME
from uptime_agent.text import wording
from uptime_agent.text.redact import RedactingFormatter, Redactor
from uptime_agent.text.spelling import spelling
from uptime_agent.text.url import masked, parse_url, secrets_in

SECRETS = st.lists(st.text("abA", min_size=3, max_size=4), min_size=1, max_size=4)
"""Few letters: such secrets overlap, and one is often a part of another."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://h", "http://h"),
        ("http://h:80/", "http://h"),
        ("https://h:80/a", "https://h:80/a"),
        ("HTTP://EXAMPLE.org./a", "http://example.org/a"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("http://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC"),
        ("http://user:hunter22@h/a?q=1", "http://h/a?q=1"),
        ("http://h/?q=1&token=hunter22&api_key=hunter22", "http://h/?q=1&token=***&api_key=***"),
        ("tcp://user:hunter22@h:1", "tcp://h:1"),
    ],
)
def test_a_url_shows_no_secrets(text, shown):
    """Neither as text nor as repr."""
    url = parse_url(text, PORTS)
    assert (str(url), repr(url)) == (shown, shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:hunter22@h/x", "http://***@h/x"),
        ("user:hunter22@h", "***@h"),
        ("htp://h?password=hunter22&b=1", "htp://h?password=***&b=1"),
        ("nothing here", "nothing here"),
    ],
)
def test_text_that_is_no_url_is_masked_as_far_as_it_goes(text, shown):
    """A URL that cannot be read is shown in an error, but not its credentials."""
    assert masked(text) == shown


def test_every_spelling_of_a_secret_is_masked():
    """As written, decoded, and as it goes over the wire."""
    url = parse_url("http://me:pass%2Fword@h/?token=t%20oken", PORTS)
    headers = {"Authorization": "Bearer abc.def", "X-Api-Key": "k12345", "Accept": "text/html"}
    redactor = Redactor(BY_SCHEME["http"].make(url=url, headers=headers).secrets)
    text = "pass/word pass%2Fword t%20oken bWU6cGFzcy93b3Jk Bearer abc.def; abc.def k12345 text/html"
    assert redactor.clean(text) == "*** *** *** *** ***; *** *** text/html"


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        (["aba"], "ababa", "***"),
        (["aba"], "x ABAbaba y", "x *** y"),
        (["aba"], "abaaba", "******"),
        (["abcd", "cdef"], "abcdef", "***"),
        (["secret", "top secret word"], "a top secret word", "a ***"),
    ],
)
def test_secrets_that_overlap_are_masked_to_the_last_letter(secrets, text, shown):
    """A secret may overlap itself or another, or be a part of another."""
    assert Redactor(secrets).clean(text) == shown


@given(secrets=SECRETS, text=st.text("abA", min_size=10, max_size=30))
def test_each_letter_of_each_secret_is_masked_and_no_other(secrets, text):
    """Wherever the secrets stand, in small letters or not."""
    small = [each.lower() for each in secrets]
    hidden = {
        at
        for secret in small
        for start in range(len(text))
        if text.lower().startswith(secret, start)
        for at in range(start, start + len(secret))
    }
    left = "".join(letter for at, letter in enumerate(text) if at not in hidden)
    assert Redactor(secrets).clean(text).replace("*", "") == left


@given(secrets=st.lists(st.text('abA"', max_size=5), max_size=4), text=st.text('abA"', max_size=30))
def test_no_secret_is_in_a_clean_text(secrets, text):
    """Neither as it was given, nor in small letters or without its quotes."""
    shown = Redactor(secrets).clean(text)
    assert [each for each in secrets if len(each) >= 3 and each in shown] == []
    spelt = [spelling(each).text for each in secrets if len(each) >= 3]
    assert [each for each in spelt if len(each) >= 3 and each in spelling(shown).text] == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_user_without_a_password_is_a_token(scheme):
    """The log showed it where a server or a library sent it back. With a password the user's name is none."""

    def secrets(userinfo):
        text = f"{scheme}://{userinfo}@h/?q=1"
        return parse_url(text, PORTS).secrets & secrets_in(text)

    assert secrets("t0k%2Fn") == {"t0k/n", "t0k%2Fn"}
    assert secrets("t0ken:") == {"t0ken"}
    assert secrets("user:hunter22") == {"hunter22"}


def test_a_user_of_a_database_is_no_secret():
    """Its password stands elsewhere; to mask "postgres" would spoil each line about PostgreSQL."""
    text = "postgresql://postgres@h:5432/app"
    assert secrets_in(text) == parse_url(text, {"postgresql": 5432}).secrets == frozenset()


def test_logs_hold_no_secrets():
    """The formatter masks messages, arguments and tracebacks."""
    formatter = RedactingFormatter(Redactor(["hunter22"]), "%(message)s")
    try:
        int("hunter22")
    except ValueError as exc:
        record = logging.LogRecord(
            "x", logging.ERROR, "f", 1, "no %s", ("hunter22",), (type(exc), exc, exc.__traceback__)
        )
    text = formatter.format(record)
    assert "no ***" in text
    assert "ValueError: invalid literal" in text
    assert "hunter22" not in text


async def test_an_error_holds_no_secrets(serve, answers, target_check):
    """Nor does one that a server sends back."""
    server = await serve(answers.respond(200, b"x"))
    url = parse_url(f"http://me:hunter22@127.0.0.1:{server.port}", PORTS)
    result = await target_check(BY_SCHEME["http"].make(url=url, contains="hunter22")).run()
    assert result.error == '"***" is not in the body (1 bytes)'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 漢字", "plain ü 漢字"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\u202eevil", r"\u202eevil"),
        ("a\u2028b", r"a\u2028b"),
        ("x" * 1000, "x" * 297 + "..."),
    ],
)
def test_text_from_outside_cannot_move_the_cursor(text, shown):
    """Control and direction characters are shown as escapes, and length is limited."""
    assert wording.printable(text) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0s"), (59.9, "59s"), (61, "1m01s"), (3600, "1h00m"), (90_000, "1d01h"), (-5, "0s")],
)
def test_spans_have_two_units(seconds, shown):
    """More would change too often to be read."""
    assert wording.span(seconds) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(0.0004, "0.4 ms"), (0.0377, "38 ms"), (1.25, "1.25 s")])
def test_latencies_have_three_digits(seconds, shown):
    """More would be noise."""
    assert wording.latency(seconds) == shown
