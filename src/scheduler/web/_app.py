"""The ASGI app. It finds the route and the caller of a request, and each error ends that request alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from http import HTTPStatus
from inspect import isawaitable
from json import dumps
from logging import getLogger
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from timerqueue import Clock, Random, SystemClock, system_random

from .._changes import acting_as
from .._scheduler import Scheduler
from ..stores import StoreError
from ._once import Once, told
from ._protocol import (
    MEDIA_TYPE,
    Access,
    Answer,
    AsgiScope,
    Ask,
    AtPath,
    GrantAccess,
    Means,
    Problem,
    Route,
    Routes,
    Trace,
    at_path,
    body_of,
    of_other_owner,
    problem_of,
    query_of,
    refuse_other_sites,
    segments_of,
    unavailable,
)
from ._routes import ROUTES
from ._stream import send_head, send_nothing, send_stream

logger = getLogger(__name__)
changes = getLogger("scheduler.web.changes")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
PlaceOf = Callable[[str], str | None]
"""Returns where a job is defined, such as "jobs.toml:12". None: the job's owner says all."""

_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_OF_STREAM: Final = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}
_HIDDEN: Final = 'the store does not answer as it should; callers with the scope "operate" see why'
"""Errors of stores have paths and texts of drivers."""

_SHOWN: Final = 200
"""Characters of an id in the log."""

_FORBIDDEN: Final = 1008
"""The code that closes a WebSocket for a reason of policy."""


class App:
    """An ASGI app without lifespan. Its event loop may be the scheduler's, or one in another thread."""

    def __init__(
        self,
        s: Scheduler,
        access: GrantAccess,
        routes: Routes = ROUTES,
        place_of: PlaceOf = lambda _: None,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        self._s = s
        self._access = access
        self._routes = routes
        self._place_of = place_of
        self._means = Means(SystemClock() if clock is None else clock, _secret(random or system_random()))
        self._once = Once(self._means.clock)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        match scope["type"]:
            case "http":
                await self._answer(Request(scope, receive), receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": _FORBIDDEN})
            case kind:
                msg = f"the control API knows no {kind}: mount it, or run the server without it (--lifespan off)"
                raise RuntimeError(msg)

    async def _answer(self, request: Request, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer_of(request)
        except ClientDisconnect:
            return
        except Exception as exc:  # noqa: BLE001 - whatever a request does ends that request alone
            answer = _refusal(request, exc)
        if answer.stream is not None:
            await self._send_stream(request, answer, receive, send)
            return
        if answer.content is not None:
            content = answer.content
        else:
            content = b"" if answer.body is None else dumps(answer.body, allow_nan=False).encode()
        media = None if answer.body is None else "application/json"
        headers = {**_HEADERS, **answer.headers}
        response = Response(content, answer.status, headers, media)
        if request.method == "HEAD":
            response.body = b""  # the length in the head is that of a GET
        await response(request.scope, receive, send)

    async def _send_stream(self, request: Request, answer: Answer, receive: Receive, send: Send) -> None:
        assert answer.stream is not None
        await send_head(send, answer.status, {**_HEADERS, **_OF_STREAM, **answer.headers})
        if request.method == "HEAD":
            await send_nothing(send)
            return
        allowed = partial(self._is_allowed, request.scope)
        try:
            await send_stream(answer.stream, clock=self._means.clock, is_allowed=allowed, receive=receive, send=send)
        except Exception:
            logger.exception("a stream of %r failed", request.scope["path"])

    async def _is_allowed(self, scope: AsgiScope) -> bool:
        """Ask again whether the caller may read: access may have been taken away."""
        try:
            return (await self._caller(scope)).may("read")
        except Problem:
            return False
        except Exception:
            logger.exception("access has failed for a stream, which ends")
            return False

    async def _answer_of(self, request: Request) -> Answer:
        routes = self._routes_of(request.scope)
        method = "GET" if request.method == "HEAD" else request.method
        route, names = routes.get(method) or (None, {})
        who = None
        if route is None or route.scope is not None:
            who = await self._caller(request.scope)
        if route is None:
            raise _no_route([found for found, _ in routes.values()], request)
        trace = Trace()
        if who is None or route.audit is None:
            return await self._handled(request, route, names, who, trace)
        with _noted(route.audit, who, names, trace) as note, acting_as(_actor(who)):
            refuse_other_sites(request)
            return note(await self._handled(request, route, names, who, trace))

    def _routes_of(self, scope: AsgiScope) -> AtPath:
        try:
            return at_path(self._routes, segments_of(scope))
        except Problem:  # a path that cannot be read is told only to callers with access
            return {}

    async def _caller(self, scope: AsgiScope) -> Access:
        who = self._access(scope)
        if isawaitable(who):
            who = await who
        if who is None:
            headers = {"WWW-Authenticate": "Bearer"}
            raise Problem(HTTPStatus.UNAUTHORIZED, "no-access", "this needs a caller with access", headers=headers)
        if not isinstance(who, Access):
            msg = f"access must return an Access or None, not {type(who).__qualname__}"
            raise TypeError(msg)
        return who

    async def _handled(
        self, request: Request, route: Route[Any, Any], names: Mapping[str, str], who: Access | None, trace: Trace
    ) -> Answer:
        if who is not None and route.scope is not None and not who.may(route.scope):
            detail = f"{who.name} may not {route.method} {route.path}: that needs the scope {route.scope!r}"
            raise Problem(HTTPStatus.FORBIDDEN, "scope", detail)
        pairs = request.query_params.multi_items()
        query = query_of(route.query, pairs)
        body = await body_of(request, route)
        ask = Ask(self._s, who, names, query, body, request.headers, pairs, trace, self._routes, means=self._means)
        try:
            return await self._carried_out(request, route, ask)
        except StoreError as exc:
            if ask.may("operate"):
                raise
            raise unavailable(_HIDDEN, error="StoreError") from exc
        except Exception as exc:
            place = self._place_of(names["id"]) if "id" in names else None
            if place is None or (problem := of_other_owner(exc, place)) is None:
                raise
            raise problem from exc

    async def _carried_out(self, request: Request, route: Route[Any, Any], ask: Ask[Any, Any]) -> Answer:
        key = request.headers.get("idempotency-key") if request.method == "POST" else None
        if key is None or ask.who is None:
            return await route.handler(ask)
        asked = told(route.path, sorted(ask.names.items()), ask.query, ask.body)
        return await self._once.answer(ask.who.name, key, asked, partial(route.handler, ask), ask.trace)


def _secret(random: Random) -> bytes:
    """Return 32 bytes that no caller can guess."""
    return blake2b(repr([random() for _ in range(8)]).encode(), digest_size=32).digest()


def _actor(who: Access) -> str:
    """Return the caller's name as changes note it."""
    return _in_one_line(who.name)[:_SHOWN] or "?"


@contextmanager
def _noted(act: str, who: Access, names: Mapping[str, str], trace: Trace) -> Iterator[Callable[[Answer], Answer]]:
    """Log the act with its caller and its outcome, however the request ends."""
    outcome = "unknown"

    def note(answer: Answer) -> Answer:
        nonlocal outcome
        outcome = str(answer.status.value)
        return answer

    try:
        yield note
    except BaseException as exc:
        outcome = _outcome_of(exc, trace)
        raise
    finally:
        shown = ", ".join(f"{name} {value[:_SHOWN]!r}" for name, value in names.items())
        extra = {"caller": who.name, "act": act, "names": names}
        changes.info("%s by %r: %s: %s", act, who.name, shown, _in_one_line(outcome), extra=extra)


def _outcome_of(error: BaseException, trace: Trace) -> str:
    """Return what has become of the change of a request that has ended with this error."""
    if not isinstance(error, Exception) or isinstance(error, ClientDisconnect):
        return f"{trace.step}, cancelled"
    problem = problem_of(error)
    if problem is None:
        return f"{trace.step}, failed"
    return f"{'refused' if trace.step == 'not made' else trace.step}: {problem}"


def _in_one_line(text: str) -> str:
    """Escape what a client could forge a line of the log with."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _no_route(routes: Routes, request: Request) -> Problem:
    if not routes:
        return Problem(HTTPStatus.NOT_FOUND, "no-such-path", f"there is no {request.scope['path']!r:.200} here")
    allowed = ", ".join(sorted({each.method for each in routes} | {"HEAD" for each in routes if each.method == "GET"}))
    detail = f"{request.method:.20} is not allowed here: {allowed} are"
    return Problem(HTTPStatus.METHOD_NOT_ALLOWED, "method", detail, headers={"Allow": allowed})


def _refusal(request: Request, error: Exception) -> Answer:
    problem = problem_of(error)
    if problem is None:
        logger.error("%s %r failed", request.method, request.scope["path"], exc_info=error)
        detail = "the request met a defect, which the log describes; other requests go on"
        problem = Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "defect", detail)
    return Answer(problem.status, problem.body, {"Content-Type": MEDIA_TYPE, **problem.headers})
