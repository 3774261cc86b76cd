"""The door of the control API.

It turns pages of other sites away, knows callers, and ends the streams of revoked tokens.
"""

from __future__ import annotations

from http import HTTPStatus
from json import dumps
from typing import Any, Final

from scheduler.web import Access, Problem
from timerqueue import Clock

from ..web import PEER, AsgiApp, Ends, PeerPlace, Peers
from .callers import Caller, Known, Stranger, caller_of, head_of, why_foreign, why_misdirected
from .tokens import Token, TokenFile

WRONG_TOKEN_S: Final = 0.5
"""Seconds until a wrong token is refused. Meanwhile the connection takes one of its peer's places."""

_CALLER: Final = "timerqueue.caller"
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer, Basic realm="timerqueue", charset="UTF-8"'}


class Revoked(OSError):
    """The token of a stream was revoked."""


class Guard:
    """An ASGI app around the control API. `names`: hosts of the configuration."""

    def __init__(self, known: Known, tokens: TokenFile, names: tuple[str, ...], peers: Peers, clock: Clock) -> None:
        self._known = known
        self._tokens = tokens
        self._names = names
        self._peers = peers
        self._clock = clock
        self.app: AsgiApp | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, or let the app answer it."""
        place: PeerPlace = scope["extensions"][PEER]
        head, ends = head_of(scope), place.ends
        if (why := why_misdirected(head, ends, self._names)) is not None:
            await _refuse(send, HTTPStatus.MISDIRECTED_REQUEST, "host", why)
            return
        if (why := why_foreign(head, self._names)) is not None:
            await _refuse(send, HTTPStatus.FORBIDDEN, "other-site", why)
            return
        caller = caller_of(head, ends, self._known)
        scope["extensions"][_CALLER] = caller
        if isinstance(caller, Caller):
            self._peers.know(place.peer)
        assert self.app is not None
        token = caller.token if isinstance(caller, Caller) else None
        await self.app(scope, receive, send if token is None else self._while_valid(send, token))

    def _while_valid(self, send: Any, token: Token) -> Any:
        async def checked(message: Any) -> None:
            if not self._tokens.has(token):
                msg = f"the token {token.name!r} was revoked"
                raise Revoked(msg)
            await send(message)

        return checked

    async def access(self, scope: Any) -> Access:
        """Say to the app who asks. Raises Problem for strangers."""
        match scope["extensions"][_CALLER]:
            case Caller(token=Token() as token) if not self._tokens.has(token):  # a stream asks again and again
                raise Problem(HTTPStatus.UNAUTHORIZED, "wrong-token", "the token was revoked", headers=_CHALLENGE)
            case Caller(name=name, scope=may):
                return Access(name, may)
            case Stranger(reason=reason, detail=detail):
                if reason == "wrong-token":
                    await self._clock.sleep(WRONG_TOKEN_S)
                status = HTTPStatus.FORBIDDEN if reason in {"basic", "user-header"} else HTTPStatus.UNAUTHORIZED
                raise Problem(status, reason, detail, headers=_CHALLENGE if status == HTTPStatus.UNAUTHORIZED else {})
            case other:
                msg = f"no caller: {other!r}"
                raise TypeError(msg)


async def _refuse(send: Any, status: HTTPStatus, kind: str, detail: str) -> None:
    problem = Problem(status, kind, detail)
    headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": dumps(problem.body).encode()})


def ends_of(scope: Any) -> Ends:
    """Return the ends of a request's connection."""
    place: PeerPlace = scope["extensions"][PEER]
    return place.ends
