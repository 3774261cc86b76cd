"""The table of routes. A row says the method, path, scope and audit of each, so that none can be forgotten."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from ._openapi import of_value, openapi
from ._protocol import Answer, Ask, Nothing, Route, Routes, body_reader, schema_of
from ._resources import (
    LARGE,
    LISTED,
    SIZES,
    STARTED,
    ChangesAsked,
    Confirmed,
    ConfirmedPause,
    EventsAsked,
    Filter,
    Listing,
    Owned,
    Pausing,
    QueueAsked,
    RunsAsked,
    SetAsked,
    Starting,
    StartsAsked,
    WhyAsked,
    delete_job,
    get_fleet,
    get_job,
    get_limits,
    get_queue,
    get_why,
    healthz,
    list_changes,
    list_jobs,
    list_runs,
    list_starts,
    patch_job,
    patch_limits,
    pause_job,
    pause_jobs,
    put_job,
    put_set,
    read_definition,
    read_set,
    read_sizes,
    readyz,
    resume_job,
    resume_jobs,
    run_job,
    run_jobs,
    set_next_start,
    skip_job,
    skip_jobs,
    stream_events,
    summary,
    supersede_job,
)

OK: Final = HTTPStatus.OK
NO_CONTENT: Final = HTTPStatus.NO_CONTENT
_JOB: Final = of_value("Job")
_SPEC: Final = of_value("JobSpec")
BULK: Final = {
    "type": "object",
    "properties": {
        "act": {"type": "string"},
        "count": {"type": "integer", "description": "Jobs of the filter."},
        "token": {"type": "string", "description": "Without a token: what the second call brings."},
        "holds": {"type": "number", "description": "Seconds for which the token holds."},
        "failed": {"type": "integer"},
        "failures": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["act", "count"],
}
_STATUS: Final = {OK: {"type": "object", "properties": {"status": {"const": "ok"}}}}
_MERGE: Final = ("application/merge-patch+json", "application/json")
_nothing: Final = body_reader(Nothing)


async def describe(ask: Ask[Nothing, None]) -> Answer:
    """Return this description of the API, as OpenAPI 3.1."""
    return Answer(OK, openapi(ask.routes))


def _act(name: str, audit: str, handler: Any, body: type[Any] = Nothing, **more: Any) -> Route[Any, Any]:
    return Route(
        method="POST",
        path=f"/v1/jobs/{{id}}/{name}",
        scope="operate",
        audit=audit,
        handler=handler,
        query=Nothing,
        read_body=body_reader(body),
        body_schema=lambda: schema_of(body),
        **{"answers": {NO_CONTENT: None}, **more},
    )


def _bulk(name: str, handler: Any, body: type[Any] = Confirmed) -> Route[Any, Any]:
    return Route(
        method="POST",
        path=f"/v1/jobs/{name}",
        scope="operate",
        audit=f"{name}-many",
        handler=handler,
        query=Filter,
        read_body=body_reader(body),
        body_schema=lambda: schema_of(body),
        answers={OK: BULK},
    )


ROUTES: Final[Routes] = (
    Route(
        method="GET", path="/v1/jobs", scope="read", audit=None, handler=list_jobs, query=Listing,
        answers={OK: LISTED},
    ),
    Route(
        method="GET", path="/v1/jobs/{id}", scope="read", audit=None, handler=get_job, query=Nothing,
        answers={OK: _JOB},
    ),
    Route(
        method="PUT", path="/v1/jobs/{id}", scope="admin", audit="put", handler=put_job, query=Owned,
        read_body=read_definition, body_schema=lambda: _SPEC,
        answers={HTTPStatus.CREATED: _JOB, OK: _JOB, NO_CONTENT: None},
    ),
    Route(
        method="PATCH", path="/v1/jobs/{id}", scope="admin", audit="patch", handler=patch_job, query=Owned,
        read_body=read_definition, body_schema=lambda: {"type": "object"}, media=_MERGE,
        answers={OK: _JOB, NO_CONTENT: None},
    ),
    Route(
        method="DELETE", path="/v1/jobs/{id}", scope="admin", audit="delete", handler=delete_job, query=Owned,
        answers={NO_CONTENT: None},
    ),
    Route(
        method="GET", path="/v1/jobs/{id}/runs", scope="read", audit=None, handler=list_runs, query=RunsAsked,
        answers={OK: {"type": "object", "properties": {"runs": {"type": "array", "items": of_value("Record")}}}},
    ),
    Route(
        method="GET", path="/v1/jobs/{id}/next", scope="read", audit=None, handler=list_starts, query=StartsAsked,
    ),
    _act("run", "run", run_job, answers={HTTPStatus.ACCEPTED: STARTED}),
    Route(
        method="GET", path="/v1/jobs/{id}/why", scope="read", audit=None, handler=get_why, query=WhyAsked,
        answers={OK: of_value("Why")},
    ),
    _act("pause", "pause", pause_job, Pausing),
    _act("resume", "resume", resume_job),
    _act("skip", "skip", skip_job),
    _act("supersede", "supersede", supersede_job),
    _act("set-next-start", "set-next-start", set_next_start, Starting),
    Route(
        method="PUT", path="/v1/sets/{owner}", scope="admin", audit="put-set", handler=put_set, query=SetAsked,
        read_body=read_set, most_bytes=LARGE,
        body_schema=lambda: {"type": "object", "properties": {"jobs": {"type": "array", "items": _SPEC}}},
    ),
    _bulk("pause", pause_jobs, ConfirmedPause),
    _bulk("resume", resume_jobs),
    _bulk("run", run_jobs),
    _bulk("skip", skip_jobs),
    Route(
        method="GET", path="/v1/changes", scope="read", audit=None, handler=list_changes, query=ChangesAsked,
        answers={OK: {"type": "object", "properties": {"changes": {"type": "array", "items": of_value("Change")}}}},
    ),
    Route(
        method="GET", path="/v1/events", scope="read", audit=None, handler=stream_events, query=EventsAsked,
        answers={OK: {"type": "string"}}, gives="text/event-stream",
    ),
    Route(method="GET", path="/v1/fleet", scope="read", audit=None, handler=get_fleet, query=Nothing),
    Route(method="GET", path="/v1/queue", scope="read", audit=None, handler=get_queue, query=QueueAsked),
    Route(method="GET", path="/v1/summary", scope="read", audit=None, handler=summary, query=Nothing),
    Route(method="GET", path="/v1/limits", scope="read", audit=None, handler=get_limits, query=Nothing),
    Route(
        method="PATCH", path="/v1/limits", scope="admin", audit="limits", handler=patch_limits, query=Nothing,
        read_body=read_sizes, body_schema=lambda: SIZES, media=_MERGE,
    ),
    Route(method="GET", path="/v1/openapi.json", scope="read", audit=None, handler=describe, query=Nothing),
    Route(
        method="GET", path="/healthz", scope=None, audit=None, handler=healthz, query=Nothing, answers=_STATUS,
    ),
    Route(
        method="GET", path="/readyz", scope=None, audit=None, handler=readyz, query=Nothing, answers=_STATUS,
    ),
)  # fmt: skip
