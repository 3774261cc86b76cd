"""A PostgreSQL server whose every connection gets another mangled answer, in a process of its own.

The name of the database that somebody asks for says which: `7` gets the seventh answer of the seed. Prints its port and
serves until its standard input ends.
"""
# ruff: noqa: T201 - it speaks to who started it

import asyncio
import json
import os
import random
import struct
import sys
from contextlib import suppress

from hostile_postgres import (
    BOUND,
    CANCEL,
    DONE,
    GIBIBYTE,
    LET_IN,
    READY,
    WANT_GSS,
    WANT_TLS,
    columns,
    error,
    message,
    parameter,
    row,
)
from postgres_fleets import server_row

KEY = message(b"K", struct.pack("!ii", 1, 2))
TABLES = (
    (b"meta", b"timerqueue probes", b'{"version": 1}'),
    (b"servers", b"one", json.dumps(server_row("one").values).encode()),
    (b"servers", b"two", b'{"dsn": "host=two.invalid", "password_env": null}'),
)
ANSWERS = {
    b"LISTEN": [BOUND, message(b"C", b"LISTEN\0")],
    b"timerqueue:tables": [BOUND, columns(b"place", b"key", b"content"), *(row(*each) for each in TABLES), DONE],
    b"timerqueue:node_role": [BOUND, columns(*[b"a"] * 9), row(*[b"1"] * 4, *[None] * 5), DONE],
    b"timerqueue:extensions": [BOUND, columns(b"a", b"b", b"c"), row(b"pg_stat_statements", b"1.10", b"public"), DONE],
    b"timerqueue:statements": [BOUND, error(b"42P01", b"there is no such thing")],
    b"": [BOUND, columns(b"a"), row(b"1"), DONE],
}
"""What is answered to a question with these words in it, where nothing is mangled."""
KINDS = b"123ACDEGHIKNRSTVWZcdnstvZ\x00\xff"
MOST = 100_000
"""Bytes of one piece that was repeated. What is sent without end has tests of its own."""


class Answers:
    """What the server of a number says, the same each time: `welcome`, and an answer to each question.

    Something that it says is mangled, unless `mangles` is False. `hangs_up`: whether it closes the connection after
    some questions.
    """

    def __init__(self, seed, number, *, mangles=True):
        self._mangles = mangles
        self._chance = random.Random(f"{seed} {number}")
        self._wait = self._chance.choice((0, 0, 1, 1, 2, 3))
        self.hangs_up = self._chance.random() < 0.8
        started = [LET_IN, parameter(b"server_version", b"15.4"), parameter(b"client_encoding", b"UTF8"), KEY, READY]
        self.welcome = self._mangled(started)

    def to(self, question):
        """Answer a question. Where several were asked at once, the last one counts."""
        (words,) = [words for words in ANSWERS if words in question][:1]
        return self._mangled([BOUND, columns(b"a"), row(b"x"), DONE, *ANSWERS[words], READY])

    def _mangled(self, pieces):
        self._wait -= 1
        if self._wait < 0 and self._mangles:
            for _ in range(self._chance.choice((1, 1, 2, 3, 8))):
                self._chance.choice(MANGLERS)(self._chance, pieces)
        return b"".join(pieces)


def leave_out(chance, pieces):
    if pieces:
        del pieces[chance.randrange(len(pieces))]


def say_twice(chance, pieces):
    if pieces:
        pieces.insert(chance.randrange(len(pieces)), chance.choice(pieces))


def turn_around(chance, pieces):
    chance.shuffle(pieces)


def say_something(chance, pieces):
    kind = bytes([chance.choice(KINDS)])
    content = chance.choice((b"", b"\0", b"x\0y\0", struct.pack("!ih", 1, 1), chance.randbytes(chance.randrange(60))))
    pieces.insert(chance.randint(0, len(pieces)), message(kind, content))


def lie_about_the_size(chance, pieces):
    if pieces:
        at = chance.randrange(len(pieces))
        size = chance.choice((0, 1, 3, 4, 5, -1, -4, 29_999, 30_001, 70_000, GIBIBYTE, 2**31 - 1, -(2**31)))
        pieces[at] = pieces[at][:1] + struct.pack("!i", size) + pieces[at][5:]


def flip_bits(chance, pieces):
    if pieces:
        at = chance.randrange(len(pieces))
        mangled = bytearray(pieces[at])
        for _ in range(chance.randint(1, 6) if mangled else 0):
            mangled[chance.randrange(len(mangled))] ^= 1 << chance.randrange(8)
        pieces[at] = bytes(mangled)


def cut(chance, pieces):
    if pieces:
        at = chance.randrange(len(pieces))
        pieces[at] = pieces[at][: chance.randint(0, len(pieces[at]))]


def repeat(chance, pieces):
    if pieces:
        at = chance.randrange(len(pieces))
        pieces[at] *= chance.randint(1, max(MOST // max(len(pieces[at]), 1), 1))


def change_a_value(chance, pieces):
    value = chance.choice(
        (b"", b"\xff\xfe", b"caf\xe9", b"\0", b"1e999", b"9" * 5000, b"{" * 5000, b"null", b"\x1b[2J")
    )
    values = [chance.choice((value, None, b"meta", b"servers")) for _ in range(chance.choice((0, 1, 2, 3, 9, 200)))]
    pieces.insert(chance.randint(0, len(pieces)), row(*values))


def change_the_columns(chance, pieces):
    names = [chance.randbytes(chance.randrange(9)).replace(b"\0", b"") for _ in range(chance.choice((0, 1, 3, 100)))]
    pieces.insert(chance.randint(0, len(pieces)), columns(*names))


def say_an_error(chance, pieces):
    text = chance.choice((b"", b"\xff" * 50, b"x" * 50_000, b"sorry, too many clients already"))
    kind, severity = chance.choice(((b"E", b"FATAL"), (b"E", b"ERROR"), (b"N", b"NOTICE")))
    state = chance.choice((b"", b"00000", b"53300", b"57P01", b"\xff\xff\xff\xff\xff", b"x" * 40))
    pieces.insert(chance.randint(0, len(pieces)), error(state, text, severity, kind))


MANGLERS = (
    leave_out,
    say_twice,
    turn_around,
    say_something,
    lie_about_the_size,
    flip_bits,
    cut,
    repeat,
    change_a_value,
    change_the_columns,
    say_an_error,
)


async def named(reader, writer):
    """Read how somebody begins: the name of the database that he asks for. None: he has gone, or wants no answer."""
    first = await reader.read(4096)
    while first[4:8] in {WANT_TLS, WANT_GSS}:
        writer.write(b"N")
        first = await reader.read(4096)
    if first[4:8] == CANCEL or not first:
        return None
    words = first[8:].split(b"\0")
    return words[words.index(b"database") + 1].decode()


async def talk(answers, reader, writer):
    """Let somebody in, and answer some questions."""
    writer.write(answers.welcome)
    for _ in range(5):
        if not (asked := await reader.read(65_536)):
            return
        writer.write(answers.to(asked))
        await writer.drain()
    while not answers.hangs_up and await reader.read(65_536):
        pass


async def serve(seed):
    async def served(reader, writer):
        with suppress(OSError, asyncio.IncompleteReadError):
            if (database := await named(reader, writer)) is not None:
                await talk(Answers(seed, database), reader, writer)
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(served, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
