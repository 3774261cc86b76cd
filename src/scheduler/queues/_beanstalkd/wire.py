"""Send many commands at once, and read their answers in order: one wait for a hundred."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

AT_ONCE: Final = 100
"""Commands whose answers fit into a socket's buffer, so neither side waits for the other to read."""

_WITH_BODY: Final = frozenset({b"RESERVED", b"FOUND", b"OK"})
_ALONE: Final = frozenset(
    {
        b"INSERTED",
        b"BURIED",
        b"DELETED",
        b"RELEASED",
        b"TOUCHED",
        b"WATCHING",
        b"NOT_FOUND",
        b"TIMED_OUT",
        b"DEADLINE_SOON",
        b"DRAINING",
        b"OUT_OF_MEMORY",
        b"JOB_TOO_BIG",
    }
)
"""Answers after which the stream is in step."""


class Reply(NamedTuple):
    """Its first word, its number if any, and its body."""

    word: bytes
    number: int = 0
    body: bytes = b""


class StrangeAnswer(ValueError):
    """The rest of the stream is unreadable."""


class BeanstalkWire:
    """For one thread at a time."""

    def __init__(self, socket: socket.socket) -> None:
        self._socket = socket
        self._reader = socket.makefile("rb")

    def exchange(self, commands: Sequence[bytes]) -> Iterator[Reply]:
        """Read all answers before the next call.

        Raises OSError and StrangeAnswer: then the connection is useless.
        """
        for first in range(0, len(commands), AT_ONCE):
            part = commands[first : first + AT_ONCE]
            self._socket.sendall(b"".join(part))
            for _ in part:
                yield self._answer()

    def close(self) -> None:
        self._reader.close()

    def _answer(self) -> Reply:
        line = self._reader.readline()
        words = line.split()
        if not line.endswith(b"\r\n") or not words:
            msg = "the connection has ended" if not line else f"an unreadable answer: {line[:80]!r}"
            raise (StrangeAnswer if line else ConnectionResetError)(msg)
        word = words[0]
        if word in _ALONE:
            return Reply(word, int(words[1]) if len(words) > 1 else 0)
        if word not in _WITH_BODY:
            msg = f"it answered {line[:80]!r}, and the connection was dropped"
            raise StrangeAnswer(msg)
        size = int(words[-1])
        body = self._reader.read(size + 2)
        if len(body) < size + 2:
            msg = "the connection has ended within an answer"
            raise ConnectionResetError(msg)
        return Reply(word, int(words[1]), body[:-2])
