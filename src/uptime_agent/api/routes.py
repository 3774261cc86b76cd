"""The agent's own routes, in addition to those of `scheduler.web`.

A row says scope and audit, so none is open by mistake.

A new verb of the agent is a row here: its handler calls the verb, with the caller as the actor.
"""

from __future__ import annotations

from functools import partial, update_wrapper
from http import HTTPStatus
from typing import Any

from scheduler.web import Answer, Ask, Nothing, Route, Routes, body_reader, schema_of

from ..text import our_version
from .acting import (
    By,
    Ending,
    Lasting,
    Reasoned,
    acknowledge,
    begin_maintenance,
    check_now,
    end_acknowledgement,
    end_maintenance,
    end_silence,
    pause_target,
    resume_target,
    silence,
)
from .figures import get_metrics
from .inside import Inside
from .reading import TargetsAsked, get_target, list_acts, list_incidents, list_targets


def routes_of(inside: Inside) -> Routes:
    """Return the table."""
    get, post, end = partial(_get, inside), partial(_post, inside), partial(_end, inside)
    return (
        get("/v1/agent", get_agent),
        get("/v1/targets", list_targets, TargetsAsked),
        get("/v1/targets/{name}", get_target),
        get("/v1/incidents", list_incidents),
        get("/v1/acts", list_acts),
        get("/metrics", get_metrics, answers={HTTPStatus.OK: {"type": "string"}}, gives="text/plain"),
        *(
            each
            for kind in ("target", "group")
            for each in (post(kind, "ack", acknowledge, Reasoned), end(kind, "ack", end_acknowledgement))
        ),
        *(
            each
            for kind in ("target", "group", "tag")
            for each in (
                post(kind, "silence", silence, Ending),
                end(kind, "silence", end_silence),
                post(kind, "maintain", begin_maintenance, Lasting),
                end(kind, "maintain", end_maintenance),
            )
        ),
        post("target", "pause", pause_target, Lasting),
        post("target", "resume", resume_target, By, answers={HTTPStatus.NO_CONTENT: None}),
        post("target", "check-now", check_now, By, answers={HTTPStatus.ACCEPTED: {"type": "object"}}),
    )


async def get_agent(inside: Inside, ask: Ask[Nothing, None]) -> Answer:
    """Return which agent this is: its version, its file, and since when it runs."""
    found: dict[str, Any] = {
        "version": our_version(),
        "file": inside.about.file,
        "began": inside.about.began,
        "state": ask.s.state.value,
    }
    if ask.who is not None:
        found |= {"caller": ask.who.name, "scopes": sorted(ask.who.scopes)}
    return Answer(HTTPStatus.OK, found)


def _get(inside: Inside, path: str, handler: Any, query: type[Any] = Nothing, **more: Any) -> Route[Any, Any]:
    return Route(method="GET", path=path, scope="read", audit=None, handler=_with(handler, inside), query=query, **more)


def _post(inside: Inside, kind: str, act: str, handler: Any, body: type[Any], **more: Any) -> Route[Any, Any]:
    return Route(
        method="POST",
        path=f"/v1/{kind}s/{{name}}/{act}",
        scope="operate",
        audit=f"{act}-{kind}",
        handler=_with(handler, inside, kind),
        query=Nothing,
        read_body=body_reader(body),
        body_schema=lambda: schema_of(body),
        **more,
    )


def _end(inside: Inside, kind: str, act: str, handler: Any) -> Route[Any, Any]:
    return Route(
        method="DELETE",
        path=f"/v1/{kind}s/{{name}}/{act}",
        scope="operate",
        audit=f"end-{act}-{kind}",
        handler=_with(handler, inside, kind),
        query=By,
    )


def _with(handler: Any, inside: Inside, *kind: str) -> Any:
    """Give a handler what it acts on. Its first line still describes the route."""
    made: Any = update_wrapper(partial(handler, inside, *kind), handler)
    made.__name__ = "_of_".join((handler.__name__, *kind))
    return made
