"""An ASGI app serves the exchanges of a server.

No lifespan, no WebSockets. What an app streams ends when its client leaves: the app is cancelled then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import anyio
import h11

from . import exchange as bounds
from .exchange import Exchange, Headers, HttpAnswer, RequestRefused
from .peers import PeerPlace

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

PEER: Final = "timerqueue.peer"
"""The key of a scope's extensions under which the `PeerPlace` of the connection stands."""

MOST_AFTER: Final = 64
"""Pieces that a peer may send after its request. Then it counts as gone."""

_DISCONNECT: Final = "http.disconnect"
_OURS: Final = frozenset({b"connection", b"transfer-encoding", b"keep-alive"})
"""Headers that this server decides."""


class PeerGone(OSError):
    """The peer has left its stream."""


class AsgiHandler:
    """Serves exchanges by an ASGI app."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, exchange: Exchange, place: PeerPlace) -> None:
        """Have one exchange. Raises what the app raises, and as `Exchange.head`."""
        request: h11.Request | None = None
        with anyio.move_on_after(bounds.WITHIN):
            request = await exchange.head()
        if request is None:
            raise RequestRefused(HttpAnswer(408, f"the head of the request did not end within {bounds.WITHIN:g} s"))
        if not request.target.startswith(b"/"):
            raise RequestRefused(HttpAnswer(400, "the target of a request is a path: it begins with /"))
        await _Call(exchange, place).run(self._app, scope_of(request, place))


def scope_of(request: h11.Request, place: PeerPlace) -> Scope:
    """Return the ASGI scope of a request."""
    path, _, query = request.target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": request.http_version.decode("ascii"),
        "method": request.method.decode("ascii"),
        "scheme": "http",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": list(request.headers),
        "client": place.ends.address,
        "server": place.ends.local,
        "extensions": {PEER: place},
    }


class _Call:
    """One call of an app: what it receives, and what it sends."""

    def __init__(self, exchange: Exchange, place: PeerPlace) -> None:
        self._exchange = exchange
        self._place = place
        self._start: tuple[int, Headers] | None = None
        self._is_told = False
        """Whether the app was told that the request has ended."""
        self._is_over = False
        self._is_streaming = False
        self._is_watched = False
        self._gone = anyio.Event()
        self._failure: Exception | None = None
        self._refused: RequestRefused | None = None

    async def run(self, app: AsgiApp, scope: Scope) -> None:
        async with anyio.create_task_group() as self._group:
            with anyio.CancelScope() as self._scope:
                await self._called(app, scope)
            self._group.cancel_scope.cancel()
        if self._refused is not None and not self._exchange.is_begun:
            raise self._refused
        if self._failure is not None:
            raise self._failure
        if not self._exchange.is_begun and not self._gone.is_set():
            msg = "the app has not answered"
            raise RuntimeError(msg)

    async def _called(self, app: AsgiApp, scope: Scope) -> None:
        try:
            await app(scope, self.receive, self.send)
        except Exception as exc:  # noqa: BLE001 - so that no group of exceptions is made of it
            self._failure = exc

    async def receive(self) -> Message:
        """Return a piece of the body, or that the peer has gone."""
        if not self._is_told and not self._gone.is_set():
            try:
                with anyio.fail_after(bounds.BODY_WITHIN):
                    return await self._piece()
            except RequestRefused as exc:
                self._fail(exc)
            except TimeoutError:
                text = f"the body did not end within {bounds.BODY_WITHIN:g} s"
                self._fail(RequestRefused(HttpAnswer(408, text)))
            except (anyio.EndOfStream, anyio.BrokenResourceError, OSError):
                self._gone.set()
        self._watch()
        await self._gone.wait()
        return {"type": _DISCONNECT}

    def _fail(self, why: RequestRefused) -> None:
        """Let the app believe that the peer has gone. The answer says why the request was refused."""
        self._refused = why
        self._gone.set()

    async def _piece(self) -> Message:
        piece = await self._exchange.piece()
        self._is_told = self._place.is_heard = piece is None
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    def _watch(self) -> None:
        if self._exchange.is_read and not self._is_watched and not self._gone.is_set():
            self._is_watched = True
            self._group.start_soon(self._see_it_go)

    async def _see_it_go(self) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            for _ in range(MOST_AFTER):
                await self._exchange.stream.receive()
        self._gone.set()
        if self._is_streaming:
            self._scope.cancel()

    async def send(self, message: Message) -> None:
        """Send a part of the answer, once the peer takes it. Raises OSError if a stream has no reader any more."""
        match message["type"]:
            case "http.response.start" if self._start is None:
                headers = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
                self._start = message["status"], [each for each in headers if each[0] not in _OURS]
            case "http.response.body" if self._start is not None and not self._is_over:
                await self._send(bytes(message.get("body", b"")), is_last=not message.get("more_body", False))
            case kind:
                msg = f"an answer is one http.response.start and then bodies, and not {kind!r} here"
                raise RuntimeError(msg)

    async def _send(self, data: bytes, *, is_last: bool) -> None:
        self._place.is_heard = True
        if not is_last:
            self._is_streaming = True
            self._watch()
        if self._is_streaming and self._gone.is_set():
            msg = "the peer has left its stream"
            raise PeerGone(msg)
        self._is_over = is_last
        if self._exchange.is_begun:
            await self._exchange.go_on(data, is_last=is_last)
        elif self._start is not None:
            await self._exchange.begin(*self._start, data, is_whole=is_last)
