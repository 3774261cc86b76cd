"""Messages of the DNS.

Compressed names take long to read: 1.5 ms each. So before dnspython reads an answer, its records are counted, and
unrequested types refused. An answer with more than a few records is read in a thread.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final

import anyio.to_thread
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.reversename
from attrs import field, frozen

from ..contract import CheckFailed
from .records import RECORDS

LARGEST_DATAGRAM: Final = 1232
"""Bytes: networks carry a datagram of this size in one piece."""

MOST_RECORDS: Final = 200
AT_ONCE: Final = 10
"""Records read without a thread."""

LARGEST_MESSAGE: Final = 32 * 1024
_HEADER: Final = struct.Struct("!6H")
_TC: Final = 0x0200
_QR: Final = 0x8000
_FIXED: Final = struct.Struct("!HHIH")
_POINTER: Final = 0xC0
_BESIDE: Final = ("DNAME", "NSEC", "NSEC3", "OPT", "RRSIG")
"""Types that accompany the requested ones."""
_KNOWN: Final = frozenset(int(dns.rdatatype.from_text(each)) for each in (*RECORDS, *_BESIDE))
_TEXTS: Final = frozenset({"TXT", "SPF"})


@frozen
class DnsAnswers:
    """`records`: by canonical form; `ttl`: the least, in seconds."""

    rcode: str = "NOERROR"
    records: Mapping[bytes, str] = field(factory=dict)
    ttl: int | None = None
    is_truncated: bool = False

    @property
    def texts(self) -> list[str]:
        """Sorted: the server's order does not matter."""
        return sorted(self.records.values())


def question(name: str, record: str) -> dns.message.QueryMessage:
    """Make a question. Raises ValueError with what was expected."""
    query = dns.message.make_query(_name(name, record), record, use_edns=0, payload=LARGEST_DATAGRAM)
    query.flags |= dns.flags.AD  # "say whether you have verified it", without the signatures themselves
    return query


@lru_cache(maxsize=10_000)
def _name(name: str, record: str) -> dns.name.Name:
    if record == "PTR":
        with suppress(dns.exception.SyntaxError, ValueError):
            return dns.reversename.from_address(name)
    try:
        return dns.name.from_text(name)
    except (dns.exception.DNSException, ValueError, UnicodeError):
        raise ValueError(f'a name in the DNS such as "www.example.org", found "{name[:100]}"') from None


def is_answer_to(query: dns.message.QueryMessage, data: bytes) -> bool:
    """Whether a message claims to answer that question. The message may be late or forged."""
    if len(data) < _HEADER.size:
        return False
    number, flags, *_ = _HEADER.unpack_from(data)
    return bool(number == query.id and flags & _QR)


async def read(query: dns.message.QueryMessage, data: bytes) -> DnsAnswers:
    """Read an answer. Raises CheckFailed if it is invalid or too large."""
    _, flags, questions, *counts = _HEADER.unpack_from(data)
    if flags & _TC:
        return DnsAnswers(is_truncated=True)
    if sum(counts) > MOST_RECORDS or questions > 1 or len(data) > LARGEST_MESSAGE:
        raise CheckFailed(f"its answer is too large: {sum(counts):,} records, {len(data):,} bytes")
    _look_through(data, questions, sum(counts))
    if sum(counts) <= AT_ONCE:
        return parsed(query, data)
    return await anyio.to_thread.run_sync(parsed, query, data, abandon_on_cancel=True)


def _look_through(data: bytes, questions: int, records: int) -> None:
    """Raise CheckFailed for an unexpected or broken record."""
    at = _HEADER.size
    try:
        for _ in range(questions):
            at = _after_name(data, at) + 4
        for _ in range(records):
            at = _after_name(data, at)
            kind, _, _, length = _FIXED.unpack_from(data, at)
            if kind not in _KNOWN:
                raise CheckFailed(f"its answer holds a record of a type that nobody asked for: {kind}")
            at += _FIXED.size + length
    except (IndexError, struct.error):
        raise CheckFailed("its answer makes no sense as DNS: it breaks off") from None


def _after_name(data: bytes, at: int) -> int:
    while length := data[at]:
        if length >= _POINTER:
            return at + 2
        at += length + 1
    return at + 1


def parsed(query: dns.message.QueryMessage, data: bytes) -> DnsAnswers:
    """Parse a checked message. Raises CheckFailed."""
    try:
        response = dns.message.from_wire(data)
        if not query.is_response(response):
            raise CheckFailed("it answers another question")
        return _answers(response)
    except (dns.exception.DNSException, ValueError, struct.error) as exc:
        raise CheckFailed(f"its answer makes no sense as DNS: {str(exc) or type(exc).__name__}") from None


def _answers(response: dns.message.Message) -> DnsAnswers:
    rcode = dns.rcode.to_text(response.rcode())
    if rcode != "NOERROR" or not isinstance(response, dns.message.QueryMessage):
        return DnsAnswers(rcode)
    found = response.resolve_chaining()
    if found.answer is None:
        return DnsAnswers(rcode)
    return DnsAnswers(rcode, {_canonical(each): each.to_text() for each in found.answer}, found.minimum_ttl)


@lru_cache(maxsize=10_000)
def canonical(record: str, text: str) -> bytes:
    """Return a record's canonical form: records that mean the same have equal forms. Raises ValueError."""
    if record in _TEXTS and not text.startswith('"'):
        return text.encode()
    try:
        found = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(record), text, relativize=False)
    except (dns.exception.DNSException, ValueError, UnicodeError) as exc:
        raise ValueError(f'{record} records as in zone files, found "{text[:100]}" ({exc})') from None
    return _canonical(found)


def _canonical(record: dns.rdata.Rdata) -> bytes:
    strings = getattr(record, "strings", None)
    return record.to_digestable(dns.name.root) if strings is None else b"".join(strings)


def all_canonical(record: str, texts: Iterable[str]) -> dict[bytes, str]:
    """Key records by canonical form. Raises ValueError."""
    return {canonical(record, text): text for text in texts}
