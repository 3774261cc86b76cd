"""The description of the API tells the truth: schemathesis asks for what it describes, and checks each answer."""

import json

import pytest
import schemathesis
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from kit import examples, nothing
from scheduler import Scheduler
from scheduler.web import Access, app
from scheduler.web._openapi import openapi
from scheduler.web._routes import ROUTES

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
STREAMS = {"/v1/events"}
"""Answers that do not end: they have tests of their own."""


def described():
    """Return the description as schemathesis reads it: the place of the server is the root of the app."""
    document = json.loads(json.dumps(openapi(ROUTES)))
    paths = {}
    for path, place in document["paths"].items():
        servers = place.pop("servers", None)
        paths[path if servers else f"/v1{path}"] = place
    return {**document, "paths": paths, "servers": [{"url": "/"}]}


SCHEMA = schemathesis.openapi.from_dict(described())
OPERATIONS = {each.ok().label: each.ok() for each in SCHEMA.get_all_operations()}


@pytest.fixture(scope="module")
def api():
    """The API of a scheduler with some jobs, which runs on a loop of its own."""
    with (
        start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(Scheduler(store="memory://", limits={"http": 2})) as s,
    ):
        s.register("nothing", nothing)
        s.add("nothing", "@every 1h", id="0")
        s.add("nothing", "@every 1h", id="a", owner="api", tags=["0"])
        yield app(s, access=lambda _: Access("ann", "admin"))


def test_each_route_is_described():
    """Also those that others have added."""
    assert len(OPERATIONS) == len(ROUTES)


@pytest.mark.parametrize("label", [each for each in OPERATIONS if each.split()[1] not in STREAMS])
def test_answers_are_as_described(api, label):
    """Whatever a request holds that the description allows: a described status, type and body, and never a defect."""
    phases = [Phase.explicit, Phase.generate]
    health = list(HealthCheck)

    @settings(max_examples=examples(40), derandomize=True, database=None, phases=phases, suppress_health_check=health,
              deadline=None)  # fmt: skip
    @given(case=OPERATIONS[label].as_strategy())
    def ask(case):
        response = case.call(app=api, base_url="http://127.0.0.1")
        case.validate_response(response, checks=CHECKS)

    ask()
