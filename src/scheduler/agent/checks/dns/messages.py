"""Messages of the DNS: a question, an answer to it, and what that says.

What comes is looked at before dnspython reads it. Names in a message may refer to others, so that a small message can
be long to read: the number of its records is bounded as well as its bytes (test_agent_dns counts what that costs).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Final

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.reversename
from attrs import frozen

from ..contract import CheckFailed

LARGEST_DATAGRAM: Final = 1232
"""Bytes that we ask servers to send at most in a datagram, which no network has to cut."""

MOST_RECORDS: Final = 500
LARGEST_MESSAGE: Final = 32 * 1024
_HEADER: Final = struct.Struct("!6H")
_TC: Final = 0x0200
_QR: Final = 0x8000
_TEXTS: Final = frozenset({"TXT", "SPF"})


@frozen
class Answers:
    """What an answer says. `records`: in the form of master files; `ttl`: seconds, of the shortest lived."""

    rcode: str
    records: tuple[str, ...]
    ttl: int | None
    is_truncated: bool


def question(name: str, record: str) -> dns.message.QueryMessage:
    """Make a question for the records of a type at a name. Raises ValueError: what was expected."""
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
    """Whether a message claims to answer that question. Anybody may have sent it, or it may be late."""
    if len(data) < _HEADER.size:
        return False
    number, flags, *_ = _HEADER.unpack_from(data)
    return bool(number == query.id and flags & _QR)


def read(query: dns.message.QueryMessage, data: bytes) -> Answers:
    """Read an answer. Raises CheckFailed for what is none, or is too much."""
    _, flags, *counts = _HEADER.unpack_from(data)
    if flags & _TC:
        return Answers("NOERROR", (), None, is_truncated=True)
    if sum(counts) > MOST_RECORDS or len(data) > LARGEST_MESSAGE:
        raise CheckFailed(f"its answer is too large: {sum(counts):,} records, {len(data):,} bytes")
    try:
        response = dns.message.from_wire(data)
        if not query.is_response(response):
            raise CheckFailed("it answers another question")
        return _answers(response)
    except (dns.exception.DNSException, ValueError, struct.error) as exc:
        raise CheckFailed(f"its answer makes no sense as DNS: {str(exc) or type(exc).__name__}") from None


def _answers(response: dns.message.Message) -> Answers:
    rcode = dns.rcode.to_text(response.rcode())
    if rcode != "NOERROR" or not isinstance(response, dns.message.QueryMessage):
        return Answers(rcode, (), None, is_truncated=False)
    found = response.resolve_chaining()
    if found.answer is None:
        return Answers(rcode, (), None, is_truncated=False)
    texts = tuple(sorted(each.to_text() for each in found.answer))
    return Answers(rcode, texts, found.minimum_ttl, is_truncated=False)


@lru_cache(maxsize=10_000)
def canonical(record: str, text: str) -> object:
    """A record in a form in which two that mean the same are equal. Raises ValueError: what was expected."""
    if record in _TEXTS and not text.startswith('"'):
        return text.encode()
    try:
        found = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(record), text, relativize=False)
    except (dns.exception.DNSException, ValueError, UnicodeError) as exc:
        raise ValueError(f'{record} records as in zone files, found "{text[:100]}" ({exc})') from None
    return b"".join(getattr(found, "strings", ())) if record in _TEXTS else found.to_digestable(dns.name.root)


def all_canonical(record: str, texts: Iterable[str]) -> dict[object, str]:
    """Records by their canonical form."""
    return {canonical(record, text): text for text in texts}
