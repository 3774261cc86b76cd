"""Proper answers of those that the agent asks: mutants are made of them."""

import json
import struct

import dns.message
import dns.rrset

MAIL = [
    b"220 mail ESMTP\r\n250-mail\r\n250-SIZE 100000\r\n250 8BITMIME\r\n250 a\r\n250 b\r\n354 c\r\n250 d\r\n221 e\r\n",
    b"220-first\r\n220 second\r\n500 what\r\n250 mail\r\n250 ok\r\n550 nobody\r\n221 bye\r\n",
    b"554 no\r\n",
]
"""Greeting, EHLO, envelope and message, as a mail server says them."""

HOOK = [
    b"HTTP/1.1 204 No Content\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n",
    b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 5\r\n\r\nlater",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 429 Slow\r\nRetry-After: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b",
]
"""What a receiver of webhooks says."""

RDAP = [
    json.dumps({"ldhName": "example.org", "status": [state], "events": events}).encode()
    for state, events in [
        ("active", [{"eventAction": "expiration", "eventDate": "2100-01-01T00:00:00Z"}]),
        ("redemption period", [{"eventAction": "registration"}]),
        ("active", [{"eventAction": "expiration", "eventDate": "0001-01-01T00:00:00+14:00"}]),
        ("active", [{"eventAction": "expiration", "eventDate": "9999-12-31T23:59:59-14:00"}]),
    ]
]
"""What a registry says of a domain."""

RDAP_WHOLE = [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(each) + each for each in RDAP]


def names_answer(data):
    """Answer a question for an address, with an alias before it."""
    query = dns.message.from_wire(data)
    response = dns.message.make_response(query)
    name = query.question[0].name.to_text()
    response.answer += [
        dns.rrset.from_text(name, 60, "IN", "CNAME", "other.example."),
        dns.rrset.from_text("other.example.", 60, "IN", "A", "192.0.2.1", "192.0.2.2"),
    ]
    return response.to_wire()


def time_answer(data):
    """Answer a question for the time."""
    (asked,) = struct.unpack_from("!Q", data, 40)
    return struct.pack("!BBbbIII4Q", 0x24, 2, 6, -20, 655, 655, 0x7F000001, asked, asked, asked, asked)
