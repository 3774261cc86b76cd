"""Errors of a connection: it cannot be made, it broke, or the server answered with an error of its own."""

from __future__ import annotations

import re
from typing import Final

from ..text import printable

FULL: Final = "53300"
"""SQLSTATE too_many_connections: the server is there, and has no place for us."""

LONGEST: Final = 1000
"""Characters of what a server says of an error."""

_SAYS_FULL: Final = re.compile(
    r"sorry, too many clients already"
    r"|remaining connection slots are reserved"
    r"|too many connections for (role|database)"
    r"|no more connections allowed"
)
"""Words for 53300. libpq tells of a refused connection in words alone."""

_ASKS_IN_CLEAR: Final = '"!password" failed: server requested a cleartext password'
"""libpq's words where our own rule is what refuses."""


class NoDriver(Exception):
    """psycopg 3 is not installed, or has no libpq."""


class Unreachable(Exception):
    """A connection could not be made, or broke. The text says why."""

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


class Garbled(Unreachable):
    """A server answers something that is no answer to what it was asked."""

    def __init__(self, text: str) -> None:
        super().__init__(f"the server answers what no PostgreSQL answers: {text}")


class ServerFull(Unreachable):
    """A server has no place for another connection (53300). It is there, and answers."""


class ServerError(Exception):
    """An answer of the server that is an error, with its SQLSTATE."""

    def __init__(self, sqlstate: str, text: str) -> None:
        super().__init__(one_line(text))
        self.sqlstate = sqlstate


def refused(text: str) -> Unreachable:
    """Return what a refusal in libpq's words means."""
    if _SAYS_FULL.search(text[:LONGEST]):
        return ServerFull(f"the server is full (53300): {text}")
    if _ASKS_IN_CLEAR in text:
        return Unreachable(
            "the server asks for the password in clear, without TLS: have it ask for scram-sha-256, "
            'or say sslmode = "require", or require_auth = "password" to send it all the same'
        )
    return Unreachable(text)


def one_line(text: str) -> str:
    """Return the words of a server on one line, without what could move a cursor; of a long text, its beginning."""
    return printable(" ".join(text[:LONGEST].split()))
