"""The answer of a process without the scheduler: 421, with the address of the process that has it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, Final

_HEADERS: Final = (
    ("Content-Type", "application/problem+json"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)
_AGAIN_S: Final = "5"

Message = MutableMapping[str, Any]


class Elsewhere:
    """An ASGI app for processes without the scheduler, to be mounted in place of `app`. Its method `wsgi` is for WSGI.

    It answers each request with 421, or with 503 while no process runs the scheduler. `Client` follows the address.

    `owner`: the address of the API, such as "unix:/run/jobs.sock" or "http://127.0.0.1:8001". It may be a function that
    returns it, or None if no process runs the scheduler now. All callers read it: put no secret into it.
    """

    def __init__(self, owner: str | Callable[[], str | None]) -> None:
        self._owner: Callable[[], str | None] = owner if callable(owner) else lambda: owner

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],  # noqa: ARG002 - as ASGI calls it
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            msg = f"the control API knows no {scope['type']}: mount it, or run the server without it"
            raise RuntimeError(msg)
        status, headers, body = self._answer()
        raw = [(name.lower().encode(), value.encode()) for name, value in headers]
        await send({"type": "http.response.start", "status": status.value, "headers": raw})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def wsgi(self, environ: MutableMapping[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        """Answer one request of WSGI."""
        status, headers, body = self._answer()
        start_response(f"{status.value} {status.phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self) -> tuple[HTTPStatus, list[tuple[str, str]], bytes]:
        owner = self._owner()
        if owner is None:
            status, detail = HTTPStatus.SERVICE_UNAVAILABLE, "no process runs the scheduler now: try again later"
            more = [("Retry-After", _AGAIN_S)]
        else:
            status, more = HTTPStatus.MISDIRECTED_REQUEST, []
            detail = f"another process runs the scheduler: ask {owner}"
        kind = "unavailable" if owner is None else "elsewhere"
        body = {
            "type": f"urn:timerqueue:problem:{kind}",
            "title": status.phrase,
            "status": status.value,
            "detail": detail,
        }
        data = json.dumps(body if owner is None else {**body, "owner": owner}).encode()
        return status, [*_HEADERS, *more, ("Content-Length", str(len(data)))], data
