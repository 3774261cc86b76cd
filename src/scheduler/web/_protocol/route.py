"""Routes: method, path, scope and audit of each stand in one row, so that none can be forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Generic, Literal, TypeVar
from urllib.parse import quote, unquote_to_bytes

from attrs import define, field, frozen

from timerqueue import Clock

from ..._scheduler import Scheduler
from ..._shape import check_text
from .access import Access, AsgiScope, Scope
from .problem import Problem

JSON = Any
Q = TypeVar("Q")
B = TypeVar("B")
Method = Literal["GET", "PUT", "PATCH", "POST", "DELETE"]

SMALL: Final = 1024 * 1024
"""Bytes of a body."""


Feed = Callable[[bytes], Awaitable[None]]
"""Sends a piece of a stream, and waits until the server takes more."""


@frozen
class Stream:
    """A body that does not end by itself. `feed`: sends it, piece by piece.

    `is_over`: whether no more can come. `farewell`: the last piece, also for a caller who has lost access.
    """

    feed: Callable[[Feed], Awaitable[None]]
    is_over: Callable[[], bool]
    farewell: bytes


@frozen
class Answer:
    """`body`: JSON, or None for an answer without one. `stream`: what comes in place of a body.

    `content`: bytes in place of JSON; then `headers` name their Content-Type.
    """

    status: HTTPStatus
    body: JSON = None
    headers: Mapping[str, str] = field(factory=dict)
    stream: Stream | None = None
    content: bytes | None = None


Step = Literal["not made", "unknown", "made, not durable", "made"]


@define
class Trace:
    """How far the change of a request has come: the log of changes says so, however the request ends.

    `step`: "unknown" while a thread makes the change.
    """

    step: Step = "not made"


@frozen
class Means:
    """The clock of an app, and its secret, which signs what callers bring back."""

    clock: Clock
    secret: bytes


@frozen
class Ask(Generic[Q, B]):
    """A request whose parts have been read. `who`: None on an open route."""

    s: Scheduler
    who: Access | None
    names: Mapping[str, str]
    query: Q
    body: B
    headers: Mapping[str, str]
    pairs: Sequence[tuple[str, str]] = ()
    """The query as it was given."""
    trace: Trace = field(factory=Trace)
    routes: Sequence[Route[Any, Any]] = ()
    """All routes of the app."""
    means: Means = field(kw_only=True)

    @property
    def id(self) -> str:
        """The job's id in the path."""
        return self.names["id"]

    def may(self, scope: Scope) -> bool:
        return self.who is not None and self.who.may(scope)


@frozen(kw_only=True)
class Route(Generic[Q, B]):
    """`scope`: what the caller needs; None: open. `audit`: the act in the log of changes; None: it changes nothing.

    `read_body`: makes the body of JSON; None: the route takes none. `body_schema` describes it. `answers`: statuses and
    schemas of good answers. `media`: the types of its body. `gives`: the type of its answers.
    """

    method: Method
    path: str
    scope: Scope | None
    audit: str | None
    handler: Callable[[Ask[Q, B]], Awaitable[Answer]]
    query: type[Q]
    read_body: Callable[[JSON], B] | None = None
    body_schema: Callable[[], JSON] = dict
    answers: Mapping[HTTPStatus, JSON] = field(factory=lambda: {HTTPStatus.OK: {"type": "object"}})
    media: tuple[str, ...] = ("application/json",)
    most_bytes: int = SMALL
    gives: str = "application/json"

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").splitlines()[0].rstrip(".")

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.path.removeprefix("/").split("/"))


Routes = Sequence[Route[Any, Any]]
AtPath = dict[str, tuple[Route[Any, Any], Mapping[str, str]]]
"""The route of each method at one path, with the names in the path."""


def at_path(routes: Routes, segments: Sequence[str]) -> AtPath:
    """Return the route of each method at a path, with the names in the path. A path without names comes first."""
    found: AtPath = {}
    for route in routes:
        names = _names_in(route.parts, segments)
        if names is not None and (route.method not in found or not names):
            found[route.method] = route, names
    return found


def _names_in(parts: Sequence[str], segments: Sequence[str]) -> Mapping[str, str] | None:
    if len(parts) != len(segments):
        return None
    names: dict[str, str] = {}
    for part, segment in zip(parts, segments, strict=True):
        if part.startswith("{") and segment:
            names[part[1:-1]] = segment
        elif part != segment:
            return None
    return names


def segments_of(scope: AsgiScope) -> list[str]:
    """Return the decoded parts of the path below `root_path`. An id may hold slashes, as %2F.

    Raises Problem for parts that are not UTF-8.
    """
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    parts = raw.split(b"?")[0].removeprefix(b"/").split(b"/")
    root = scope.get("root_path", "").strip("/")
    above = [_decoded(part.encode()) for part in root.split("/")] if root else []
    segments = [_decoded(part) for part in parts]
    return segments[len(above) :] if segments[: len(above)] == above else segments


def _decoded(part: bytes) -> str:
    try:
        text = unquote_to_bytes(part).decode()
        check_text(text, "the path")
    except ValueError as exc:
        raise Problem(HTTPStatus.BAD_REQUEST, "bad-path", f"the path must be UTF-8 without NUL: {exc}") from None
    return text


def linked(id: str) -> str:
    """Return the id as one part of a URL."""
    return quote(id, safe="")
