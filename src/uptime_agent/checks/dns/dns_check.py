"""DNS: a name server answers as expected."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final, assert_never
from urllib.parse import unquote

from anyio import EndOfStream
from anyio.abc import ByteStream
from attrs import field, frozen

from ...text import Url, printable
from ...toml import Option, Unfit, one_of, text
from ..contract import Attempt, CheckFailed, Clash, Finding, Kind, Status
from ..net import Budget, datagrams, dialled
from .records import RECORDS

if TYPE_CHECKING:
    from dns.message import QueryMessage

    from .messages import DnsAnswers

RCODES: Final = ("NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED")
MOST_BYTES: Final = 64 * 1024
MOST_ANSWERS: Final = 100
_SHOWN: Final = 200
_LENGTH: Final = 2
"""Bytes."""

_MISSING: Final = 'dnspython is not installed, which dns checks need: pip install "timerqueue[agent]"'


class Match(enum.Enum):
    """How the answers must compare with the expected answers."""

    ALL = "all"
    """All expected answers came, perhaps with others."""
    ANY = "any"
    """At least one expected answer came."""
    EXACTLY = "exactly"
    """All expected answers came, and no others."""


class Transport(enum.Enum):
    """How the question is asked."""

    UDP = "udp"
    """A truncated answer is asked for again over TCP."""
    TCP = "tcp"


@frozen(kw_only=True)
class DnsCheck:
    """Asks for records of the name in the URL's path."""

    url: Url
    record: str | None = None
    answers: tuple[str, ...] = ()
    match: Match = Match.ALL
    rcode: tuple[str, ...] = ("NOERROR",)
    transport: Transport = Transport.UDP
    name: str = field(init=False, eq=False, repr=False)
    asked: str = field(init=False, eq=False, repr=False)

    @name.default
    def _name(self) -> str:
        name = unquote(self.url.target.partition("?")[0].removeprefix("/"))
        if not name:
            raise Clash("url", f"expected the name to ask for, as in dns://{self.url.authority}/www.example.org?type=A")
        return name

    @asked.default
    def _asked(self) -> str:
        query = self.url.target.partition("?")[2]
        named = query.removeprefix("type=").upper() if query.startswith("type=") else None
        if query and named not in RECORDS:
            raise Clash("url", f"expected nothing after the name but ?type= and one of {', '.join(RECORDS)}")
        if self.record is not None and named is not None and self.record != named:
            raise Clash("record", f"the URL has type={named}: keep one of them")
        return self.record or named or "A"

    def __attrs_post_init__(self) -> None:
        if self.answers and "NOERROR" not in self.rcode:
            raise Clash("answers", f"there are none when the answer is {' or '.join(self.rcode)}")
        try:
            from . import messages  # noqa: PLC0415 - dnspython takes long to import, and few checks need it

            messages.question(self.name, self.asked)
            messages.all_canonical(self.asked, self.answers)
        except ModuleNotFoundError:
            raise Clash("url", _MISSING) from None
        except ValueError as exc:
            raise Clash("answers" if self.answers else "url", f"expected {exc}") from None

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        return self.url.secrets

    async def attempt(self, at: Attempt) -> Finding:
        """Ask, and compare the answer."""
        from .messages import question  # noqa: PLC0415 - as above

        query, budget = question(self.name, self.asked), Budget(MOST_BYTES)
        match self.transport:
            case Transport.UDP:
                answers = await self._by_datagram(at, query, budget)
                if answers.is_truncated:
                    return self._judged(await self._by_stream(at, query, budget), Transport.TCP)
            case Transport.TCP:
                answers = await self._by_stream(at, query, budget)
            case _:
                assert_never(self.transport)
        return self._judged(answers, self.transport)

    async def _by_datagram(self, at: Attempt, query: QueryMessage, budget: Budget) -> DnsAnswers:
        from .messages import is_answer_to, read  # noqa: PLC0415 - as above

        def mine(data: bytes) -> bytes | None:
            return data if is_answer_to(query, data) else None

        with datagrams(at, self.url.port, budget) as server:
            return await read(query, await server.ask(query.to_wire, mine))

    async def _by_stream(self, at: Attempt, query: QueryMessage, budget: Budget) -> DnsAnswers:
        from .messages import is_answer_to, read  # noqa: PLC0415 - as above

        async with dialled(at, self.url.port, budget) as stream:
            with at.watch.measure("receive"):
                wire = query.to_wire()
                await stream.send(len(wire).to_bytes(_LENGTH, "big") + wire)
                data = await _message(stream)
        if not is_answer_to(query, data):
            raise CheckFailed("its answer makes no sense as DNS")
        return await read(query, data)

    def _judged(self, answers: DnsAnswers, transport: Transport) -> Finding:
        detail: dict[str, str | int | float] = {"rcode": answers.rcode, "transport": transport.value}
        if answers.records:
            detail["answers"] = printable(_listed(answers.texts))
        if answers.ttl is not None:
            detail["ttl"] = answers.ttl
        error = self._wrong(answers)
        return Finding(status=Status.UP if error is None else Status.DOWN, error=error, detail=detail)

    def _wrong(self, answers: DnsAnswers) -> str | None:
        if answers.is_truncated:
            return "its answer over TCP is truncated"
        if answers.rcode not in self.rcode:
            return f"answers {answers.rcode}, expected {' or '.join(self.rcode)}"
        if answers.rcode != "NOERROR":
            return None
        if not answers.records:
            return f"{self.name} has no {self.asked} record"
        return self._unlike(answers) if self.answers else None

    def _unlike(self, answers: DnsAnswers) -> str | None:
        from .messages import all_canonical  # noqa: PLC0415 - as above

        expected, found = all_canonical(self.asked, self.answers), answers.records
        missing = [expected[each] for each in expected if each not in found]
        more = found.keys() - expected.keys()
        said = f"answers {_listed(answers.texts)}"
        match self.match:
            case Match.ANY:
                return None if len(missing) < len(expected) else f"{said}, expected one of {_listed(self.answers)}"
            case Match.ALL:
                return f"{said}, without {_listed(missing)}" if missing else None
            case Match.EXACTLY:
                return f"{said}, expected exactly {_listed(self.answers)}" if missing or more else None
            case _:
                assert_never(self.match)


async def _message(stream: ByteStream) -> bytes:
    received, wanted = b"", _LENGTH
    while len(received) < wanted:
        try:
            received += await stream.receive()
        except EndOfStream:
            said = f"after {len(received)} bytes of an answer" if received else "without an answer"
            raise CheckFailed(f"closed {said}") from None
        wanted = (
            max(wanted, _LENGTH + int.from_bytes(received[:_LENGTH], "big")) if len(received) >= _LENGTH else wanted
        )
    return received[_LENGTH:wanted]


def _listed(records: tuple[str, ...] | list[str]) -> str:
    listed = ", ".join(records)
    return listed if len(listed) <= _SHOWN else f"{listed[:_SHOWN]}..."


def _texts(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    if not 0 < len(items) <= MOST_ANSWERS or not all(isinstance(each, str) and each for each in items):
        raise Unfit('records as in zone files, such as "192.0.2.1" or ["10 mail.example.org."]', value)
    return tuple(items)


def _rcodes(value: Any) -> tuple[str, ...]:
    reader = one_of({each: each for each in RCODES})
    items = value if isinstance(value, list) and value else [value]
    return tuple(dict.fromkeys(reader(each) for each in items))


def _record(value: Any) -> str:
    return one_of({each: each for each in RECORDS})(text(value).upper())


DNS: Final = Kind(
    "dns",
    {"dns": 53},
    DnsCheck,
    {
        "record": Option(
            _record,
            "the type, in place of `?type=` in the URL; by default `A`. For `PTR` the name may be an IP address",
        ),
        "answers": Option(
            _texts,
            'records as in zone files: `"10 mail.example.org."`, or the text of a TXT record as it is. They are '
            "compared by what they mean. By default one record of the type is enough",
        ),
        "match": Option(
            one_of({each.value: each for each in Match}),
            "whether all `answers` must have come, one of them, or they and no others",
            "all",
        ),
        "rcode": Option(
            _rcodes,
            'which answer is right, or a list of these. With `"NXDOMAIN"` the target is up as long as the name does '
            "not exist",
            "NOERROR",
        ),
        "transport": Option(
            one_of({each.value: each for each in Transport}),
            "how the question is asked. By `udp`, an answer that is truncated is asked for once more over TCP",
            "udp",
        ),
    },
    meaning="up if a server of names answers a question, and as it should",
)
