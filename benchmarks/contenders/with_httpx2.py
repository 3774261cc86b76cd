"""httpx2 with a transport for each check, so that each has a connection of its own to the address that was chosen."""

import asyncio

import httpx2
from answering import measured, server
from child import Values, serve


def http_check(checks: int, at_once: int) -> Values:
    """Ask, read the body, look for a text."""
    with server() as port:
        return asyncio.run(_checked(port, checks, at_once))


async def _checked(port: int, checks: int, at_once: int) -> Values:
    context = httpx2.create_ssl_context(verify=False)  # made anew it would cost more than all the rest

    async def check() -> None:
        async with httpx2.AsyncHTTPTransport(verify=context, trust_env=False) as transport:
            timeout = {"connect": 10.0, "read": 10.0, "write": 10.0, "pool": 10.0}
            request = httpx2.Request("GET", f"http://127.0.0.1:{port}/", extensions={"timeout": timeout})
            response = await transport.handle_async_request(request)
            body = b"".join([part async for part in response.aiter_raw()])
            await response.aclose()
            assert b"hello" in body

    return await measured(check, checks, at_once)


if __name__ == "__main__":
    serve({"http_check": http_check}, distribution="httpx2")
