"""h11 over asyncio's streams, and nothing else: no phases, no bounds, one timeout."""

import asyncio
import ssl
import tempfile
from pathlib import Path

import h11
from answering import NAME, certificate_in, measured, server
from child import Values, serve


def http_check(checks: int, at_once: int) -> Values:
    """Ask, read the body, look for a text."""
    with server() as port:
        return asyncio.run(_checked(port, checks, at_once))


def https_check(checks: int, at_once: int) -> Values:
    """The same after a handshake, in one context for all, with the certificate checked."""
    with tempfile.TemporaryDirectory() as folder:
        certificate = certificate_in(Path(folder))
        tls = ssl.create_default_context(cafile=certificate)
        with server(certificate) as port:
            return asyncio.run(_checked(port, checks, at_once, tls))


async def _checked(port: int, checks: int, at_once: int, tls: ssl.SSLContext | None = None) -> Values:
    name = None if tls is None else NAME

    async def check() -> None:
        async with asyncio.timeout(10.0):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)
            connection = h11.Connection(h11.CLIENT)
            request = h11.Request(method="GET", target="/", headers=[("Host", "127.0.0.1"), ("Connection", "close")])
            writer.write((connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b""))
            body = bytearray()
            while not isinstance(event := connection.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    connection.receive_data(await reader.read(65_536))
                elif isinstance(event, h11.Data):
                    body += event.data
            writer.close()
            await writer.wait_closed()
        assert b"hello" in body

    return await measured(check, checks, at_once)


if __name__ == "__main__":
    serve({"http_check": http_check, "https_check": https_check}, distribution="h11")
