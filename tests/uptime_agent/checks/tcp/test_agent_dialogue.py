"""Dialogues of tcp:// checks: with servers that speak real protocols, and with servers that misbehave."""

import ssl
import tomllib
from pathlib import Path

import anyio
import pytest
from anyio.streams.tls import TLSStream
from hypothesis import given, strategies as st

from kit import PATIENCE, needs_re2
from uptime_agent.checks import Status
from uptime_agent.checks.contract.check import Clash
from uptime_agent.checks.tcp import TCP
from uptime_agent.checks.tcp.dialogue import MOST_READ, Expect, dialogue
from uptime_agent.config.config import parse_config
from uptime_agent.text import parse_url
from uptime_agent.toml import ConfigError, Unfit

NAME = "timerqueue.test"
EXAMPLES = tomllib.loads((Path(__file__).parents[4] / "examples" / "dialogues.toml").read_text())["check"]


def tcp(port, host="127.0.0.1", **options):
    """Make a check as a file would."""
    read = {key: TCP.options[key](value) for key, value in options.items()}
    return TCP.make(url=parse_url(f"tcp://{host}:{port}", {"tcp": None}), **read)


async def line(stream):
    """Read up to the end of a line."""
    received = b""
    while not received.endswith(b"\n"):
        received += await stream.receive(1)
    return received


async def secured(stream, context):
    """Begin TLS as a server does."""
    return await TLSStream.wrap(stream, server_side=True, ssl_context=context, standard_compatible=False)


class Servers:
    """Servers that speak protocols as those that people run do, with a fault if they are given one."""

    def __init__(self, context):
        self._context = context
        self.heard = []

    async def smtp(self, server, stream):
        """Speak SMTP as of RFC 5321 and 3207."""
        await stream.send(b"220-mail.example\r\n220 ESMTP ready\r\n")
        while True:
            said = (await line(stream)).strip().upper()
            self.heard.append(said)
            match said.partition(b" ")[0]:
                case b"EHLO":
                    await stream.send(b"250-mail.example\r\n250-PIPELINING\r\n250 STARTTLS\r\n")
                case b"STARTTLS":
                    await stream.send(b"220 go ahead\r\n")
                    stream = await secured(stream, self._context)
                    self.heard.append("TLS")
                case b"QUIT":
                    await stream.send(b"221 bye\r\n")
                    return
                case _:
                    await stream.send(b"500 what?\r\n")

    async def imap(self, server, stream):
        """Speak IMAP as of RFC 9051, over TLS from the start."""
        stream = await secured(stream, self._context)
        await stream.send(b"* OK [CAPABILITY IMAP4rev2] ready\r\n")
        tag = (await line(stream)).split()[0]
        await stream.send(b"* BYE logging out\r\n" + tag + b" OK LOGOUT completed\r\n")

    async def ssh(self, server, stream):
        """Greet as of RFC 4253, which lets other lines come first."""
        await stream.send(b"Authorized use only\r\nSSH-2.0-OpenSSH_9.9\r\n")
        await stream.receive()

    async def redis(self, server, stream):
        """Speak RESP."""
        while True:
            match (await line(stream)).strip():
                case b"PING":
                    await stream.send(b"+PONG\r\n")
                case b"QUIT":
                    await stream.send(b"+OK\r\n")
                    return
                case _:
                    await stream.send(b"-ERR unknown command\r\n")


@pytest.fixture
def servers(tls):
    """Speak protocols."""
    return Servers(tls)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each["name"])
async def test_each_example_is_up_at_a_server_of_its_protocol(example, servers, serve, certificate, target_check):
    """The whole dialogue is spoken; over TLS, with a certificate that is checked."""
    server = await serve(getattr(servers, example["name"]))
    options = {key: value for key, value in example.items() if key in TCP.options}
    if "tls" in options or {"starttls": True} in options["dialogue"]:
        options["ca_file"] = str(certificate[0])
    check = tcp(server.port, NAME, **options)
    result = await target_check(check, hosts={NAME: ["127.0.0.1"]}).run()
    assert (result.status, result.error) == (Status.UP, None)
    with anyio.fail_after(PATIENCE):
        await server.all_closed.wait()
    if example["name"] == "smtp":
        ehlo = b"EHLO MONITOR.EXAMPLE"
        assert servers.heard == [ehlo, b"STARTTLS", "TLS", ehlo, b"QUIT"]
        assert {"send", "receive", "tls"} <= set(result.phases)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each["name"])
async def test_each_example_is_down_at_a_server_that_turns_it_away(example, serve, tls, target_check):
    """With what the server said in its stead."""

    async def busy(server, stream):
        if example["name"] == "redis":
            await line(stream)  # which speaks only when it is spoken to
        stream = await secured(stream, tls) if example.get("tls") else stream
        await stream.send(b"421 too busy, go away\r\n")

    server = await serve(busy)
    options = {key: value for key, value in example.items() if key in TCP.options}
    if "tls" in options or {"starttls": True} in options["dialogue"]:
        options["verify"] = False
    result = await target_check(tcp(server.port, **options)).run()
    assert result.status is Status.DOWN
    if example["name"] == "redis":  # which waits for a text, and not for a line
        assert result.error == 'step 2, expect: closed after 23 bytes without "+PONG"'
    else:
        wanted = options["dialogue"][0]["expect"]
        assert result.error == f'step 1, expect: closed after "421 too busy, go away", expected "{wanted}"'


async def test_a_certificate_is_checked_after_starttls(servers, serve, target_check):
    """It is down, as for a connection that begins with TLS."""
    server = await serve(servers.smtp)
    result = await target_check(tcp(server.port, dialogue=EXAMPLES[0]["dialogue"])).run()
    assert result.status is Status.DOWN
    assert result.error == f"certificate of 127.0.0.1:{server.port} is self-signed"


async def test_what_is_said_in_the_open_does_not_count_as_said_over_tls(serve, target_check):
    """Somebody in between may have added it to the answer to STARTTLS."""

    async def injected(server, stream):
        await stream.send(b"220 go ahead\r\n250 trust me\r\n")
        await stream.receive()

    server = await serve(injected)
    steps = [{"expect": "220 *"}, {"starttls": True}, {"expect": "250 *"}]
    result = await target_check(tcp(server.port, dialogue=steps, verify=False)).run()
    assert (result.status, result.error) == (
        Status.DOWN,
        'step 2, starttls: said more before TLS began: "250 trust me"',
    )


async def test_what_came_too_early_is_there_for_the_next_step(serve, target_check):
    """A server may say in one piece what two steps wait for, and a text may end in the middle of a line."""

    async def talkative(server, stream):
        await stream.send(b"220 one\r\nlogin: password: ")
        await stream.receive()

    server = await serve(talkative)
    steps = [{"expect": "220 *"}, {"expect": "login: "}, {"expect": "pass"}, {"expect": "word: "}, {"send": "x"}]
    result = await target_check(tcp(server.port, dialogue=steps)).run()
    assert (result.status, result.error) == (Status.UP, None)


@needs_re2
async def test_a_regular_expression_is_found_in_a_line(serve, target_check):
    """In one after another, as a pattern is held against them."""

    async def greeting(server, stream):
        await stream.send(b"220-one\r\n220 mail ESMTP Postfix\r\n250 ok\r\n")
        await stream.receive()

    server = await serve(greeting)
    steps = [{"regex": "^220 .* ESMTP"}, {"regex": "^2[0-9]+ ok$"}]
    assert (await target_check(tcp(server.port, dialogue=steps)).run()).status is Status.UP
    result = await target_check(tcp(server.port, dialogue=[{"regex": "^5"}]), timeout=0.2).run()
    assert (result.status, result.error.partition(" from ")[0]) == (
        Status.DOWN,
        'step 1, regex: "250 ok" instead of "^5"',
    )


async def test_a_certificate_that_ends_soon_is_degraded_after_starttls_too(servers, serve, certificate, target_check):
    """And how long it lasts stands in the detail."""
    server = await serve(servers.smtp)
    options = {"dialogue": EXAMPLES[0]["dialogue"], "ca_file": str(certificate[0]), "cert_expires_within": "30d"}
    result = await target_check(tcp(server.port, NAME, **options), hosts={NAME: ["127.0.0.1"]}).run()
    assert result.status is Status.DEGRADED
    assert result.error.startswith(f"the certificate of {NAME} expires in ")
    assert 0 < result.detail["cert_expires_in"] < 3 * 86_400


async def test_the_last_line_needs_no_end(serve, target_check):
    """If the server closes after it."""

    async def brief(server, stream):
        await stream.send(b"220 bye")

    server = await serve(brief)
    result = await target_check(tcp(server.port, dialogue=[{"expect": "220 b*"}])).run()
    assert result.status is Status.UP


async def test_silence_after_a_wrong_line_tells_the_line(serve, target_check, clock):
    """A person wants to see what the server did say."""

    async def stubborn(server, stream):
        await stream.send(b"554 \x1b[31mno\x1b[0m\r\n")
        await stream.receive()

    server = await serve(stubborn)
    check = target_check(tcp(server.port, dialogue=[{"expect": "220 *"}]), timeout=0.2)
    result = await check.run()
    assert result.status is Status.DOWN
    assert result.error.startswith('step 1, expect: "554 \\x1b[31mno\\x1b[0m" instead of "220 *" from 127.0.0.1:')


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([{"expect": "220 *"}, {"expect": "250 *"}], 'step 2, expect: closed without a word, expected "250 *"'),
        ([{"expect": "220 "}, {"expect": "250"}], 'step 2, expect: closed after 3 bytes without "250"'),
        ([{"expect": "221 *"}], 'step 1, expect: closed after "220 a", expected "221 *"'),
        ([{"expect": "220"}, {"starttls": True}], 'step 2, starttls: said more before TLS began: " a"'),
    ],
)
async def test_the_step_that_fails_is_named(serve, target_check, steps, said):
    """A dialogue has up to fifty."""

    async def brief(server, stream):
        await stream.send(b"220 a\r\n")

    server = await serve(brief)
    result = await target_check(tcp(server.port, dialogue=steps)).run()
    assert (result.status, result.error) == (Status.DOWN, said)


async def test_a_step_that_hears_nothing_is_named(serve, answers, target_check):
    """With the time for which it was waited."""
    server = await serve(answers.silent)
    result = await target_check(tcp(server.port, dialogue=[{"send": "a"}, {"expect": "b"}]), timeout=0.2).run()
    assert result.error.startswith("step 2, expect: no answer from 127.0.0.1:")


async def test_lines_without_end_are_cut_off(serve, target_check):
    """A step looks through so many bytes and no more, however many lines they are."""

    async def endless(server, stream):
        while True:
            await stream.send(b"220-more\r\n" * 1000)

    server = await serve(endless)
    with anyio.fail_after(PATIENCE):
        result = await target_check(tcp(server.port, dialogue=[{"expect": "220 *"}])).run()
    assert result.status is Status.DOWN
    assert result.error == f'step 1, expect: sent more than {MOST_READ:,} bytes without "220 *"'


async def test_tls_from_the_start_is_judged_as_elsewhere(serve, servers, target_check):
    """A server that speaks none is down, in words of ours."""
    server = await serve(servers.smtp)
    result = await target_check(tcp(server.port, tls=True, verify=False, send="x")).run()
    assert result.status is Status.DOWN
    assert result.error == f"TLS with 127.0.0.1:{server.port} failed: it does not speak TLS there"


@pytest.mark.parametrize(
    ("pattern", "line", "fits"),
    [
        ("220 *", b"220 hi", True),
        ("220 *", b"220 ", True),
        ("220 *", b" 220 hi", False),
        ("*ready", b"is ready", True),
        ("*ready", b"ready, is", False),
        ("a*b*c", b"a--b--c", True),
        ("a*b*c", b"a--c--b", False),
        ("ab*ba", b"aba", False),
        ("*", b"", True),
        ("**", b"x", True),
        ("* OK *", b"* OK [X] hi", True),
        ("+*é", "+ olé".encode(), True),
    ],
)
def test_a_pattern_fits_a_whole_line(pattern, line, fits):
    """With a star for whatever stands there."""
    assert Expect(pattern, is_pattern=True).fits(line) is fits


@given(st.lists(st.text(alphabet="ab", max_size=3), min_size=2, max_size=4), st.text(alphabet="ab", max_size=8))
def test_a_pattern_means_what_a_regular_expression_would(parts, line):
    """The one that has `.*` for each star."""
    import re  # noqa: PLC0415 - the oracle

    is_match = re.fullmatch(".*".join(map(re.escape, parts)), line) is not None
    assert Expect("*".join(parts), is_pattern=True).fits(line.encode()) is is_match


@pytest.mark.parametrize(
    "steps",
    [
        [],
        "220",
        [{}],
        [{"expect": ""}],
        [{"expect": 1}],
        [{"expect": "a", "send": "b"}],
        [{"starttls": False}],
        [{"starttls": 1.0, "x": 1}],
        [{"wait": 1}],
        ["220"],
        [{"regex": "("}],
        [{"regex": "(?=x)"}],
        [{"send": "x"}] * 51,
        [{"send": "x" * 10_001}],
    ],
)
def test_steps_that_make_no_sense_are_refused(steps):
    """In words that show what steps look like."""
    with pytest.raises(Unfit):
        dialogue(steps)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"dialogue": [{"expect": "a"}], "send": "b"}, "dialogue"),
        ({"dialogue": [{"starttls": True}], "tls": True}, "dialogue"),
        ({"dialogue": [{"starttls": True}, {"starttls": True}]}, "dialogue"),
        ({"verify": False}, "verify"),
        ({"cert_expires_within": "1d"}, "cert_expires_within"),
        ({"dialogue": [{"send": "b"}], "verify": False}, "verify"),
    ],
)
def test_options_that_do_not_fit_together_clash(options, key):
    """And the key is named that has to change."""
    with pytest.raises(Clash) as caught:
        tcp(1, **options)
    assert caught.value.key == key


def test_a_clash_is_told_with_the_line_of_its_key():
    """As every mistake in a file is."""
    content = '[[check]]\nurl = "tcp://h:1"\nsend = "x"\ndialogue = [{ send = "y" }]\n'
    with pytest.raises(ConfigError, match=r"f:4: \[\[check\]\] number 1: dialogue: there is send or expect too"):
        parse_config(content, "f", {})


def test_a_check_that_verifies_nothing_after_starttls_is_told_of():
    """As for https."""
    content = '[[check]]\nurl = "tcp://h:1"\ndialogue = [{ starttls = true }]\nverify = false\n'
    assert "certificates are not verified (verify = false) of tcp://h:1" in parse_config(content, "f", {}).all_warnings


def test_a_context_is_an_ordinary_one(certificate):
    """TLS 1.2 at least, with the host checked."""
    context = tcp(1, tls=True, ca_file=str(certificate[0]))._context()
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
