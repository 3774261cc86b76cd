"""dns:// checks against a server of names of our own: what they ask, what is right, and what they survive."""

import re
import struct
import subprocess
import sys
from contextlib import asynccontextmanager, suppress

import anyio
import dns.flags
import dns.message
import dns.rrset
import pytest
from anyio.abc import SocketAttribute
from hypothesis import given, strategies as st

from dns_server import Zone
from kit import PATIENCE
from uptime_agent.checks import CheckFailed, Clash, Status
from uptime_agent.checks.dns import DNS
from uptime_agent.checks.dns.messages import MOST_RECORDS, question, read
from uptime_agent.config.config import parse_config
from uptime_agent.testing import DatagramConformance, StreamConformance
from uptime_agent.text import parse_url

WWW = "www.example.org."
TWO = [(WWW, "A", "192.0.2.1", "192.0.2.2")]


def check_of(url, **options):
    """Make a check as a file would."""
    read_options = {key: DNS.options[key](value) for key, value in options.items()}
    return DNS.make(url=parse_url(url, DNS.schemes), **read_options)


@asynccontextmanager
async def serving(zone, port=0):
    """Serve names over UDP and TCP at one port, which is what it gives."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port) as listener:
        port = listener.extra(SocketAttribute.local_port)
        async with (
            await anyio.create_udp_socket(local_host="127.0.0.1", local_port=port) as udp,
            anyio.create_task_group() as group,
        ):

            async def over_udp():
                async for data, peer in udp:
                    for reply in zone.replies(data):
                        await udp.sendto(reply, *peer[:2])

            async def over_tcp(stream):
                async with stream:
                    await zone.over_tcp(stream)

            group.start_soon(over_udp)
            group.start_soon(listener.serve, over_tcp)
            yield port
            group.cancel_scope.cancel()


@pytest.fixture
def asked(target_check):
    """Ask a server for a name, with options, as the agent does."""

    async def ask(zone, path="/www.example.org", within=10.0, **options):
        async with serving(zone) as port:
            with anyio.fail_after(PATIENCE):
                return await target_check(check_of(f"dns://127.0.0.1:{port}{path}", **options), timeout=within).run()

    return ask


EXAMPLES = [
    {"answers": ["192.0.2.1"], "match": "all"},
    {"record": "AAAA", "rcode": ["NXDOMAIN", "NOERROR"], "transport": "tcp"},
]


class TestOverUdp(DatagramConformance):
    """As most people ask."""

    @pytest.fixture
    def kind(self):
        return DNS

    @pytest.fixture
    def examples(self):
        return EXAMPLES

    @pytest.fixture
    def url_of(self):
        return lambda host, port: f"dns://{host}:{port}/www.example.org"

    @pytest.fixture
    def replies(self):
        return Zone(TWO).replies


class TestOverTcp(StreamConformance):
    """As is asked for what is large."""

    @pytest.fixture
    def kind(self):
        return DNS

    @pytest.fixture
    def examples(self):
        return [{**EXAMPLES[0], "transport": "tcp"}, {"record": "AAAA", "rcode": "NXDOMAIN"}]

    @pytest.fixture
    def url_of(self):
        return lambda host, port: f"dns://{host}:{port}/www.example.org"

    @pytest.fixture
    def well(self):
        return Zone(TWO).over_tcp


async def test_it_asks_for_the_name_and_the_type_of_its_url(asked):
    """Once, and tells what it heard."""
    zone = Zone([(WWW, "MX", "10 mail.example.org.")])
    result = await asked(zone, "/www.example.org?type=MX")
    assert (result.status, result.error) == (Status.UP, None)
    assert zone.questions == ["www.example.org. IN MX"]
    assert result.detail == {
        "rcode": "NOERROR",
        "transport": "udp",
        "answers": "10 mail.example.org.",
        "ttl": 60,
    }


@pytest.mark.parametrize(
    ("records", "options", "error"),
    [
        (TWO, {}, None),
        (TWO, {"answers": "192.0.2.1"}, None),
        (TWO, {"answers": ["192.0.2.2", "192.0.2.1"], "match": "exactly"}, None),
        (TWO, {"answers": ["192.0.2.9", "192.0.2.1"], "match": "any"}, None),
        (TWO, {"answers": ["192.0.2.9", "192.0.2.1"]}, "answers 192.0.2.1, 192.0.2.2, without 192.0.2.9"),
        (TWO, {"answers": ["192.0.2.9"], "match": "any"}, "answers 192.0.2.1, 192.0.2.2, expected one of 192.0.2.9"),
        (
            TWO,
            {"answers": ["192.0.2.1"], "match": "exactly"},
            "answers 192.0.2.1, 192.0.2.2, expected exactly 192.0.2.1",
        ),
        ([], {}, "www.example.org has no A record"),
        ([(WWW, "AAAA", "2001:db8::1")], {"record": "AAAA", "answers": "2001:DB8:0::1"}, None),
        ([(WWW, "MX", "10 Mail.Example.org.")], {"record": "mx", "answers": "10 mail.example.org"}, None),
        ([(WWW, "TXT", '"v=spf1 " "-all"')], {"record": "TXT", "answers": "v=spf1 -all"}, None),
        ([(WWW, "TXT", '"v=spf1 -all"')], {"record": "TXT", "answers": '"v=spf1" " -all"'}, None),
        (
            [(WWW, "TXT", '"v=spf1 +all"')],
            {"record": "TXT", "answers": "v=spf1 -all"},
            'answers "v=spf1 +all", without v=spf1 -all',
        ),
        ([(WWW, "CNAME", "a.example."), ("a.example.", "A", "192.0.2.7")], {"answers": "192.0.2.7"}, "answers"),
        ([(WWW, "CNAME", "a.example.")], {"record": "CNAME", "answers": "a.example"}, None),
        ([(WWW, "CNAME", "a.example.")], {}, "www.example.org has no A record"),
        ([(WWW, "CNAME", WWW)], {}, "its answer makes no sense as DNS: The CNAME chain is too long."),
    ],
)
async def test_answers_are_compared_by_what_they_mean(asked, records, options, error):
    """However they are written; and a name that leads elsewhere is followed in the answer, and nowhere else."""
    zone = Zone(records)
    if error == "answers":  # the server gives the whole chain
        zone = Zone([*records, (WWW, "A", "192.0.2.7")])
        error = None
    result = await asked(zone, **options)
    assert (result.status, result.error) == (Status.DOWN if error else Status.UP, error)
    assert len(zone.questions) == 1


async def test_a_chain_in_the_answer_is_followed(asked):
    """A resolver gives all of it; nobody else is asked."""

    class Chain(Zone):
        def answer(self, data, *, is_datagram=True):
            response = dns.message.make_response(dns.message.from_wire(data))
            response.answer.append(dns.rrset.from_text(WWW, 60, "IN", "CNAME", "a.example."))
            response.answer.append(dns.rrset.from_text("a.example.", 5, "IN", "A", "192.0.2.7"))
            return response.to_wire()

    result = await asked(Chain(), answers="192.0.2.7")
    assert (result.status, result.detail["ttl"]) == (Status.UP, 5)


@pytest.mark.parametrize(
    ("rcode", "options", "error"),
    [
        ("NXDOMAIN", {}, "answers NXDOMAIN, expected NOERROR"),
        ("NXDOMAIN", {"rcode": "NXDOMAIN"}, None),
        ("SERVFAIL", {"rcode": ["NXDOMAIN", "NOERROR"]}, "answers SERVFAIL, expected NXDOMAIN or NOERROR"),
        ("NOERROR", {"rcode": "NXDOMAIN"}, "answers NOERROR, expected NXDOMAIN"),
        ("REFUSED", {"rcode": "REFUSED"}, None),
    ],
)
async def test_the_code_of_the_answer_is_what_is_expected(asked, rcode, options, error):
    """A name that must not exist is up while it does not."""
    result = await asked(Zone(TWO if rcode == "NOERROR" else [], rcode=rcode), **options)
    assert (result.status, result.error) == (Status.DOWN if error else Status.UP, error)


async def test_what_is_truncated_is_asked_for_again_over_tcp(asked):
    """At the same address and port."""
    zone = Zone(TWO, truncated_over_udp=True)
    result = await asked(zone, answers="192.0.2.1")
    assert (result.status, result.error) == (Status.UP, None)
    assert zone.transports == ["udp", "tcp"]
    assert result.detail["transport"] == "tcp"


async def test_over_tcp_alone_no_datagram_is_sent(asked):
    """For who wants to know whether that works."""
    zone = Zone(TWO)
    result = await asked(zone, transport="tcp")
    assert (result.status, zone.transports) == (Status.UP, ["tcp"])


async def test_a_lost_datagram_is_sent_again(asked, monkeypatch):
    """Networks lose some of them, and a target is not down for that."""
    monkeypatch.setattr("uptime_agent.checks.net.datagram.ASKED_AGAIN_AFTER", 0.01)

    class Forgetful(Zone):
        def replies(self, data):
            answer = self.answer(data)
            if len(self.questions) > 2:
                yield answer

    zone = Forgetful(TWO)
    result = await asked(zone)
    assert result.status is Status.UP
    assert len(zone.questions) >= 3


async def test_answers_to_other_questions_are_passed_over(asked):
    """Somebody guesses numbers, or an answer is late: the right one still counts."""

    class Guessed(Zone):
        def replies(self, data):
            answer = self.answer(data)
            yield struct.pack("!H", (int.from_bytes(answer[:2], "big") + 1) % 65536) + answer[2:]
            yield data  # the question itself
            yield answer

    result = await asked(Guessed(TWO), answers="192.0.2.1")
    assert (result.status, result.error) == (Status.UP, None)


async def test_a_server_is_not_down_because_others_send_answers_in_its_name(asked):
    """Whoever guesses wrong numbers without end hides an answer, and nobody knows whether there was one."""

    class Drowned(Zone):
        def replies(self, data):
            others = (number for number in range(5_000) if number != query_id(data))
            return (struct.pack("!H", number) + b"\x80\0" + bytes(8) for number in others)

    result = await asked(Drowned(TWO), within=1.0)
    assert result.status is Status.UNKNOWN
    assert re.search(r"no answer from .* within 1 s .*, but [0-9,]+ datagrams have come that answer no", result.error)


async def test_a_server_that_gives_a_few_wrong_answers_and_no_right_one_is_down(asked):
    """It has had its time."""

    class Wrong(Zone):
        def replies(self, data):
            yield struct.pack("!H", (query_id(data) + 1) % 65536) + self.answer(data)[2:]

    result = await asked(Wrong(TWO), within=0.5)
    assert result.status is Status.DOWN
    assert result.error.startswith("no answer from")


def query_id(data):
    """The number of a question."""
    return int.from_bytes(data[:2], "big")


async def test_an_answer_with_our_number_to_another_question_is_down(asked):
    """A server that confuses them is not well."""

    class Confused(Zone):
        def answer(self, data, *, is_datagram=True):
            query = dns.message.make_query("evil.example", "A", id=int.from_bytes(data[:2], "big"))
            return dns.message.make_response(query).to_wire()

    result = await asked(Confused())
    assert (result.status, result.error) == (Status.DOWN, "it answers another question")


def test_an_address_is_asked_for_backwards():
    """As PTR records are kept."""
    assert question("192.0.2.1", "PTR").question[0].name.to_text() == "1.2.0.192.in-addr.arpa."


async def test_an_answer_of_very_many_records_is_not_read():
    """Its names may all refer to the longest: reading it would hold up every other check."""
    query = question("www.example.org", "A")
    header = struct.pack("!6H", query.id, 0x8180, 1, MOST_RECORDS + 1, 0, 0)
    with pytest.raises(CheckFailed, match="its answer is too large: 201 records"):
        await read(query, header + bytes(100))


async def test_a_record_of_a_type_that_may_hold_any_number_of_names_is_not_read():
    """HIP is one: a few kilobytes of references to a long name would be seconds of reading."""
    query = question("www.example.org", "A")
    hip = b"\0" + struct.pack("!HHIH", 55, 1, 60, 4) + bytes(4)
    with pytest.raises(CheckFailed, match="a record of a type that nobody asked for: 55"):
        await read(query, struct.pack("!6H", query.id, 0x8180, 0, 1, 0, 0) + hip)


async def test_an_answer_of_many_records_is_read_in_a_thread():
    """All of them count."""
    query = question("www.example.org", "A")
    addresses = [f"192.0.2.{number}" for number in range(100)]
    found = await read(query, Zone([(WWW, "A", *addresses)]).answer(query.to_wire()))
    assert len(found.records) == 100


@given(st.binary(max_size=600), st.integers(0, 0xFFFF), st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_any_bytes_are_an_answer_or_a_failed_check(body, flags, counts):
    """Nothing else is raised, whatever a server sends."""
    query = question("www.example.org", "A")
    with suppress(CheckFailed):
        found = anyio.run(read, query, struct.pack("!6H", query.id, flags, *counts) + body)
        assert isinstance(found.rcode, str)


@given(st.data())
def test_a_damaged_answer_is_an_answer_or_a_failed_check(data):
    """Bits of a real one are turned: what compresses names, and how long things are."""
    query = question("www.example.org", "A")
    zone = Zone([(WWW, "CNAME", "a.example."), (WWW, "A", "192.0.2.1"), (WWW, "TXT", '"text"')])
    damaged = bytearray(zone.answer(query.to_wire()))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(2, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CheckFailed):
        assert isinstance(anyio.run(read, query, bytes(damaged)).texts, list)


@pytest.mark.parametrize(
    ("url", "options", "key", "words"),
    [
        ("dns://h", {}, "url", "expected the name to ask for, as in dns://h/www.example.org"),
        ("dns://h/", {}, "url", "expected the name to ask for"),
        ("dns://h/a..b", {}, "url", "expected a name in the DNS"),
        ("dns://h/" + "a" * 64, {}, "url", "expected a name in the DNS"),
        ("dns://h/x?type=ANY", {}, "url", "expected nothing after the name but"),
        ("dns://h/x?typ=A", {}, "url", "expected nothing after the name but"),
        ("dns://h/x?type=A", {"record": "MX"}, "record", "the URL has type=A: keep one of them"),
        ("dns://h/x", {"answers": "mail"}, "answers", "expected A records as in zone files"),
        ("dns://h/x", {"answers": "1.2.3.4", "rcode": "NXDOMAIN"}, "answers", "there are none when"),
    ],
)
def test_questions_that_make_no_sense_clash(url, options, key, words):
    """With the key that has to change."""
    with pytest.raises(Clash, match=words.replace("(", "\\(")) as caught:
        check_of(url, **options)
    assert caught.value.key == key


def test_a_file_may_say_the_type_in_either_place():
    """In the URL, as one writes it in a hurry, or as a key."""
    content = '[[check]]\nurl = "dns://h/x?type=mx"\n[[check]]\nurl = "dns://h:54/x"\nrecord = "MX"\n'
    first, second = parse_config(content, "f", {}).targets
    assert (first.check.asked, first.check.url.port) == ("MX", 53)
    assert (second.check.asked, str(second.check.url)) == ("MX", "dns://h:54/x")


async def test_watch_takes_a_name_to_ask_for(ran):
    """And says what is missing without one, instead of a traceback."""
    async with serving(Zone(TWO)) as port:
        code, out, _ = await ran("watch", "--once", "--plain", f"dns://127.0.0.1:{port}/www.example.org")
        assert (code, "UP" in out) == (0, True), out
    code, _, err = await ran("watch", "dns://127.0.0.1")
    assert code == 2
    assert "dns://127.0.0.1: url: expected the name to ask for" in err


def test_without_dnspython_only_dns_checks_are_refused():
    """With the words that install it; everything else works."""
    program = """
import sys
sys.modules["dns"] = None
from uptime_agent.config.config import parse_config
from uptime_agent.toml import ConfigError
parse_config('[[check]]\\nurl = "http://h/"', "f", {})
try:
    parse_config('[[check]]\\nurl = "dns://h/x"', "f", {})
except ConfigError as exc:
    print(exc)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 'dnspython is not installed, which dns checks need: pip install "timerqueue[agent]"' in done.stdout
