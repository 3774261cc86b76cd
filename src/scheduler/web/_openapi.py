"""OpenAPI, made of the table of routes, and of the converters that read requests and write answers."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from .._changes import Change
from .._memory import Record
from .._shape import JobInfo, JobSpec, json_schema_of
from .._why import Why
from ._protocol import JSON, MEDIA_TYPE, Route, Routes, parameters_of

_KINDS: Final[dict[str, type]] = {
    "Change": Change,
    "Job": JobInfo,
    "JobSpec": JobSpec,
    "Record": Record,
    "Why": Why,
}

_JOB_ID: Final[JSON] = {"type": ["string", "null"], "description": "The changed job; null: it is no change of one job."}

_PROBLEM: Final[JSON] = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "description": "A word for programs, behind urn:timerqueue:problem:."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What was wrong, and what to do."},
        "key": {"type": "string", "description": "The path of the value that was wrong."},
        "owner": {"type": "string", "description": "The owner of a job that another owner has."},
        "error": {"type": "string", "description": "The error of the library, such as UnknownTask."},
        "reason": {"type": "string", "description": "Why a run did not begin."},
        "due": {"type": "string", "format": "date-time", "description": "The tick that did not run."},
        "place": {"type": "string", "description": "Where that owner defines the job, such as a file and its line."},
    },
    "required": ["type", "title", "status", "detail"],
}
_REFUSED: Final[JSON] = {
    "description": "Refused.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


_IN_HEAD: Final[tuple[JSON, ...]] = (
    {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "The same key and body within a day: the same answer, and no other act.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    },
)


def of_value(name: str) -> JSON:
    """Return a reference to the schema of a Change, Job, JobSpec, Record or Why."""
    assert name in _KINDS
    return {"$ref": f"#/components/schemas/{name}"}


def openapi(routes: Routes) -> JSON:
    """Describe the routes. Links are relative to the place of the description."""
    paths: dict[str, dict[str, JSON]] = {}
    for route in routes:
        path, server = _place(route.path)
        place = paths.setdefault(path, {} if server is None else {"servers": [{"url": server}]})
        place[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "timerqueue", "version": "1", "summary": "Read, add, change and run jobs."},
        "servers": [{"url": "../v1"}],
        "paths": paths,
        "components": {
            "schemas": {**_schemas(), "Problem": _PROBLEM},
            "securitySchemes": {"access": {"type": "http", "scheme": "bearer"}},
        },
    }


@cache
def _schemas() -> dict[str, JSON]:
    found = {name: json_schema_of(kind) for name, kind in _KINDS.items()}
    change = found["Change"]
    return {**found, "Change": {**change, "properties": {**change["properties"], "job_id": _JOB_ID}}}


def _place(path: str) -> tuple[str, str | None]:
    """Return the path below its server, and the server unless it is the usual one."""
    return (path.removeprefix("/v1"), None) if path.startswith("/v1/") else (path, "..")


def _operation(route: Route[Any, Any]) -> JSON:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]
    found: dict[str, JSON] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": [*in_path, *parameters_of(route.query), *(_IN_HEAD if route.method == "POST" else ())],
        "responses": {
            **{str(status.value): _answered(schema, route.gives) for status, schema in route.answers.items()},
            "default": _REFUSED,
        },
        "security": [] if route.scope is None else [{"access": [route.scope]}],
    }
    if route.read_body is not None:
        found["requestBody"] = {"content": {media: {"schema": route.body_schema()} for media in route.media}}
    return found


def _answered(schema: JSON, media: str) -> JSON:
    found: dict[str, JSON] = {"description": "Done."}
    return found if schema is None else {**found, "content": {media: {"schema": schema}}}
