"""Errors of a connection."""

from __future__ import annotations

import re
from typing import Final

from ..text import printable

FULL: Final = "53300"
"""SQLSTATE too_many_connections."""

MAX_CHARACTERS: Final = 1000
"""Characters."""

_SAYS_FULL: Final = re.compile(
    r"sorry, too many clients already"
    r"|remaining connection slots are reserved"
    r"|too many connections for (role|database)"
    r"|no more connections allowed"
)
"""libpq reports a refused connection without its SQLSTATE."""

_ASKS_IN_CLEAR: Final = '"!password" failed: server requested a cleartext password'
"""libpq's words when our own rule refuses."""


class NoDriver(Exception):
    """psycopg 3 or its libpq is missing."""


class Unreachable(Exception):
    """A connection could not be made, or broke."""

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


class Garbled(Unreachable):
    """The server breaks the protocol."""

    def __init__(self, text: str) -> None:
        super().__init__(f"the server answers what no PostgreSQL answers: {text}")


class ServerFull(Unreachable):
    """The server is up, but has no room for us (53300)."""


class ServerError(Exception):
    """An error that the server answered."""

    def __init__(self, sqlstate: str, text: str) -> None:
        super().__init__(one_line(text))
        self.sqlstate = sqlstate


def refused(text: str) -> Unreachable:
    """Tell the error from libpq's words."""
    if _SAYS_FULL.search(text[:MAX_CHARACTERS]):
        return ServerFull(f"the server is full (53300): {text}")
    if _ASKS_IN_CLEAR in text:
        return Unreachable(
            "the server asks for the password in clear, without TLS: have it ask for scram-sha-256, "
            'or say sslmode = "require", or require_auth = "password" to send it all the same'
        )
    return Unreachable(text)


def one_line(text: str) -> str:
    """A server's words on one line, without control characters."""
    return printable(" ".join(text[:MAX_CHARACTERS].split()))
