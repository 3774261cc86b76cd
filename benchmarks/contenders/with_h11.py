"""h11 over asyncio's streams, and nothing else: no phases, no bounds, one timeout."""

import asyncio

import h11
from answering import measured, server
from child import Values, serve


def http_check(checks: int, at_once: int) -> Values:
    """Ask, read the body, look for a text."""
    with server() as port:
        return asyncio.run(_checked(port, checks, at_once))


async def _checked(port: int, checks: int, at_once: int) -> Values:
    async def check() -> None:
        async with asyncio.timeout(10.0):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
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
    serve({"http_check": http_check}, distribution="h11")
