"""The body of a request, read within bounds of size, depth and time."""

from __future__ import annotations

from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request

from ..._shape import read_json
from ..._values import InvalidJob
from .fields import JSON
from .problem import Problem
from .route import Route

WITHIN_S: Final = 30.0
"""Seconds for a whole body."""

FROM_HERE: Final = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site that may change something: a page of ours, or a person."""

_PORTS: Final = {"http": ":80", "https": ":443"}

LARGE: Final = 64 * 1024
"""Bytes of a body that is read in a thread: the event loop goes on."""

BAD: Final = HTTPStatus.BAD_REQUEST


def refuse_other_sites(request: Request) -> None:
    """Raise Problem if a page of another site would make a browser change something here."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        is_here = site in FROM_HERE
    else:  # browsers leave it out on http that is not localhost, and some always
        is_here = origin is None or _host_of(origin) == _without_port(request.headers.get("host", ""), None)
    if not is_here:
        other = site if site is not None else origin
        raise Problem(HTTPStatus.FORBIDDEN, "other-site", f"a page of another site ({other!r:.80}) may change nothing")


def _host_of(origin: str) -> str | None:
    """None: a page without a site, or no origin at all."""
    scheme, mark, host = origin.lower().partition("://")
    return _without_port(host, scheme) if mark and host else None


def _without_port(host: str, scheme: str | None) -> str:
    """Leave out the port that a browser leaves out. None: of either scheme."""
    host = host.strip().lower()
    for known, port in _PORTS.items():
        if scheme in {known, None}:
            host = host.removesuffix(port)
    return host


async def body_of(request: Request, route: Route[Any, Any]) -> Any:
    """Read the body as the route says. Raises Problem."""
    data = await _bytes_of(request, route.most_bytes)
    if route.read_body is None:
        if data:
            raise Problem(BAD, "unwanted-body", f"{route.method} {route.path} takes no body")
        return None
    if data:
        _check_media(request, route.media)
    value = await run_sync(_json_of, data) if len(data) > LARGE else _json_of(data) if data else {}
    return route.read_body(value)


async def _bytes_of(request: Request, most: int) -> bytes:
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length[:20]) > most:
        raise _too_large(most)
    data = bytearray()
    try:
        with anyio.fail_after(WITHIN_S):
            async with aclosing(request.stream()) as chunks:
                async for chunk in chunks:
                    data += chunk
                    if len(data) > most:
                        raise _too_large(most)
    except TimeoutError:
        detail = f"the body has not come within {WITHIN_S:g} s"
        raise Problem(HTTPStatus.REQUEST_TIMEOUT, "slow-body", detail) from None
    return bytes(data)


def _too_large(most: int) -> Problem:
    detail = f"the body must have at most {most:,} bytes"
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "large-body", detail)


def _check_media(request: Request, media: tuple[str, ...]) -> None:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind not in media:
        detail = f"the body must be {' or '.join(media)}, not {kind[:100]!r}"
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", detail)


def _json_of(data: bytes) -> JSON:
    try:
        return read_json(data.decode())
    except UnicodeDecodeError as exc:
        raise Problem(BAD, "not-json", f"the body must be JSON in UTF-8: {exc.reason} at byte {exc.start}") from None
    except InvalidJob as exc:
        detail = str(exc).replace("it is not JSON as it should be", "the body is not JSON as it should be")
        raise Problem(BAD, "not-json", detail) from None
