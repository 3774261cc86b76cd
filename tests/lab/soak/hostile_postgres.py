"""PostgreSQL servers that answer whatever they like, in a process of their own: a port for each malice.

Give it a certificate and its key, and they speak TLS to who asks for it. Prints the ports, one on a line, and serves
until its standard input ends.
"""
# ruff: noqa: T201 - it speaks to who started it

import asyncio
import os
import ssl
import struct
import sys
from contextlib import suppress

from anyio.streams.tls import TLSStream

WANT_TLS, WANT_GSS, CANCEL = (struct.pack("!i", code) for code in (80877103, 80877104, 80877102))
GIBIBYTE = 1 << 30
FLOOD = 256 * 1024
"""Bytes of a flood that are sent at a time."""


def message(kind, content=b"", size=None):
    """Write a message. `size`: the length that it claims to have."""
    return kind + struct.pack("!i", len(content) + 4 if size is None else size) + content


def columns(*names):
    """Write the description of rows whose columns are texts."""
    each = [name + b"\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0) for name in names]
    return message(b"T", struct.pack("!h", len(names)) + b"".join(each))


def row(*values):
    """Write a row. None is NULL."""
    each = [struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value for value in values]
    return message(b"D", struct.pack("!h", len(values)) + b"".join(each))


def error(sqlstate, text, severity=b"ERROR", kind=b"E"):
    """Write an error, or a notice."""
    return message(kind, b"S" + severity + b"\0C" + sqlstate + b"\0M" + text + b"\0\0")


def parameter(name, value):
    """Write what a server tells of a setting."""
    return message(b"S", name + b"\0" + value + b"\0")


LET_IN = message(b"R", struct.pack("!i", 0))
READY = message(b"Z", b"I")
HELLO = LET_IN + parameter(b"server_version", b"15.4") + message(b"K", struct.pack("!ii", 1, 2)) + READY
DONE = message(b"C", b"SELECT 1\0")
BOUND = message(b"1") + message(b"2")
SET = BOUND + columns(b"a") + row(b"x") + DONE
"""The answer to what sets the settings of a query."""
WELL = SET + BOUND + columns(b"a") + row(b"1") + DONE + READY


async def flooded(send, *pieces):
    """Send the same without end."""
    while True:
        await send(b"".join(pieces) * max(FLOOD // sum(map(len, pieces)), 1))


async def after_login(send, receive, *said):
    """Let somebody in, wait for a question, and say that."""
    await send(HELLO)
    await receive()
    await send(b"".join(said))


async def copy_in(send, receive):
    await after_login(send, receive, BOUND, message(b"G", b"\0\0\0"))


async def copy_out(send, receive):
    await after_login(send, receive, BOUND, message(b"H", b"\0\0\0"))
    await flooded(send, message(b"d", b"x" * 1000))


async def copy_both(send, receive):
    await after_login(send, receive, SET, BOUND, message(b"W", b"\0\0\0"))
    await flooded(send, message(b"d", b"x"))


async def endless_rows(send, receive):
    await after_login(send, receive, SET, BOUND, columns(b"a"))
    await flooded(send, row(b"x" * 1000))


async def tiny_rows(send, receive):
    await after_login(send, receive, SET, BOUND, columns(b"a"))
    await flooded(send, row(None))


async def rows_of_nothing(send, receive):
    await after_login(send, receive, SET, BOUND, columns())
    await flooded(send, row())


async def rows_in_the_answer_to_the_settings(send, receive):
    await after_login(send, receive, BOUND, columns(b"a"))
    await flooded(send, row(b"x" * 50))


async def a_field_of_a_gibibyte(send, receive):
    await after_login(send, receive, SET, BOUND, columns(b"a"))
    await send(message(b"D", struct.pack("!hi", 1, GIBIBYTE), GIBIBYTE + 10))
    await flooded(send, b"x")


async def an_error_of_a_gibibyte(send, receive):
    await after_login(send, receive, message(b"E", b"SERROR\0C42601\0M", GIBIBYTE))
    await flooded(send, b"x")


async def a_refusal_of_a_gibibyte(send, receive):
    await send(message(b"E", b"SFATAL\0C28000\0M", GIBIBYTE))
    await flooded(send, b"x")


async def a_description_of_a_gibibyte(send, receive):
    await after_login(send, receive, SET, BOUND, message(b"T", struct.pack("!h", 30_000), GIBIBYTE))
    await flooded(send, b"x")


async def wide_rows(send, receive):
    many = [b"a"] * 5000
    await after_login(send, receive, SET, BOUND, columns(*many))
    await flooded(send, row(*[None] * 5000))


async def parameters_without_end(send, receive):
    await send(LET_IN)
    number = 0
    while True:
        await send(b"".join(parameter(b"%x" % each, b"") for each in range(number, number + 1000)))
        number += 1000


async def parameters_without_end_later(send, receive):
    await after_login(send, receive, SET)
    await parameters_without_end(send, receive)


async def notices_without_end(send, receive):
    await after_login(send, receive, SET)
    await flooded(send, error(b"00000", b"x" * 100, b"NOTICE", b"N"))


async def notifications_without_end(send, receive):
    await after_login(send, receive, SET)
    await flooded(send, message(b"A", struct.pack("!i", 1) + b"a\0b\0"))


async def results_without_end(send, receive):
    await after_login(send, receive, SET, BOUND)
    await flooded(send, DONE)


async def ready_at_once(send, receive):
    await after_login(send, receive, READY * 3)


async def ready_after_the_settings(send, receive):
    await after_login(send, receive, SET, READY, READY)


async def two_answers(send, receive):
    await after_login(send, receive, SET, SET, SET, READY)


async def no_rows(send, receive):
    await after_login(send, receive, SET, BOUND, columns(b"a"), DONE, READY)


async def something_else(send, receive):
    await after_login(send, receive, SET, BOUND, columns(b"a"), row(b"2"), DONE, READY)


async def another_shape(send, receive):
    await after_login(send, receive, SET, BOUND, columns(b"a", b"b"), row(b"1", b"1"), DONE, READY)


async def columns_no_utf8(send, receive):
    await after_login(send, receive, SET, BOUND, columns(b"caf\xe9", b"\xff"), row(b"1", b"1"), DONE, READY)


async def an_sqlstate_no_utf8(send, receive):
    await after_login(send, receive, SET, BOUND, error(b"\xff\xfe\xfd\xfc\xfb", b"caf\xe9 \x1b[2J"), READY)


async def an_encoding_that_nobody_knows(send, receive):
    await after_login(send, receive, parameter(b"client_encoding", b"KLINGON"), SET, message(b"?"))


async def an_end_without_ready(send, receive):
    await after_login(send, receive, SET, error(b"57P01", b"terminating connection", b"FATAL"))


async def silence(send, receive):
    await after_login(send, receive)
    await receive(everything=True)


async def a_login_without_end(send, receive):
    await send(LET_IN)
    for each in parameter(b"a", b"x" * 10_000):
        await send(bytes([each]))
        await asyncio.sleep(0.05)


async def another_protocol(send, receive):
    await flooded(send, b"HTTP/1.1 400 Bad Request\r\n")


MALICE = (
    copy_in,
    copy_out,
    copy_both,
    endless_rows,
    tiny_rows,
    rows_of_nothing,
    rows_in_the_answer_to_the_settings,
    a_field_of_a_gibibyte,
    an_error_of_a_gibibyte,
    a_refusal_of_a_gibibyte,
    a_description_of_a_gibibyte,
    wide_rows,
    parameters_without_end,
    parameters_without_end_later,
    notices_without_end,
    notifications_without_end,
    results_without_end,
    ready_at_once,
    ready_after_the_settings,
    two_answers,
    no_rows,
    something_else,
    another_shape,
    columns_no_utf8,
    an_sqlstate_no_utf8,
    an_encoding_that_nobody_knows,
    an_end_without_ready,
    silence,
    a_login_without_end,
    another_protocol,
)


def sending(writer):
    """Make what sends: at the pace of the other side, which over TLS `drain` does not know."""

    async def send(data):
        writer.write(data)
        while writer.transport.get_write_buffer_size() > FLOOD:  # noqa: ASYNC110 - nobody tells when it is less
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)

    return send


def served(behave, tls):
    """Make a handler of connections that begins as a server does."""

    async def handle(reader, writer):
        send = sending(writer)

        async def receive(*, everything=False):
            while found := await reader.read(65_536):
                if not everything:
                    return found
            raise ConnectionResetError

        with suppress(OSError):
            first = await receive()
            while first[4:8] in {WANT_TLS, WANT_GSS}:
                if is_tls := tls is not None and first[4:8] == WANT_TLS:
                    await send(b"S")
                    await writer.start_tls(tls)
                else:
                    await send(b"N")
                first = await receive()
                if is_tls:
                    break
            if first[4:8] != CANCEL:
                await behave(send, receive)
                await receive(everything=True)
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()

    return handle


async def greeted(stream, tls=None):
    """Take the start of a connection, with TLS if there is a context for it; return the stream to go on with."""
    first = await stream.receive()
    while first[4:8] in {WANT_TLS, WANT_GSS}:
        if tls is not None and first[4:8] == WANT_TLS:
            await stream.send(b"S")
            stream = await TLSStream.wrap(stream, server_side=True, ssl_context=tls, standard_compatible=False)
        else:
            await stream.send(b"N")
        first = await stream.receive()
    return stream


def asking_in_clear(tls=None):
    """Make a handler that asks for the password as it is, and lets its server remember what it gets."""

    async def handle(server, stream):
        stream = await greeted(stream, tls)
        await stream.send(message(b"R", struct.pack("!i", 3)))
        server.requests.append(await stream.receive())

    return handle


def answering(*pieces):
    """Make a handler that lets anybody in, takes each LISTEN, and answers each question by these pieces."""

    async def handle(server, stream):
        stream = await greeted(stream)
        await stream.send(HELLO)
        while True:
            asked = await stream.receive()
            server.requests.append(asked)
            said = (BOUND, message(b"C", b"LISTEN\0")) if b"LISTEN" in asked else pieces
            await stream.send(b"".join((SET, *said, READY) if said else (READY,)))

    return handle


async def serve(tls):
    for behave in MALICE:
        server = await asyncio.start_server(served(behave, tls), "127.0.0.1", 0, backlog=100)
        print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)  # with whatever is still being sent


def context_of(certificate, key):
    """Make the context of a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


if __name__ == "__main__":
    asyncio.run(serve(context_of(*sys.argv[1:3]) if len(sys.argv) > 1 else None))
