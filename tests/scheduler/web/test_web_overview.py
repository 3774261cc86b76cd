"""Figures, limits and the description of the API."""

import json
import subprocess
import sys

import pytest

from scheduler.web._openapi import openapi
from scheduler.web._routes import ROUTES


async def test_the_summary_counts_by_state_and_owner(s, reader):
    """Without a list of jobs."""
    s.add("nothing", "@every 1h", id="a")
    s.add("nothing", "@every 1h", id="b", owner="red").pause()
    await s.flush()
    found = (await reader.get("/v1/summary")).json
    assert found["jobs"] == 2
    assert (found["states"]["scheduled"], found["states"]["disabled"]) == (1, 1)
    assert found["owners"] == {"code": 1, "red": 1}
    assert "limits" not in found


async def test_limits_are_shown_and_resized(s, admin, reader):
    """A null stands for no limit."""
    shown = (await reader.get("/v1/limits")).json["limits"]["http"]
    assert (shown["size"], shown["used"], shown["waiting"]) == (2, 0, 0)
    answer = await admin.patch(
        "/v1/limits",
        {"limit": 100, "limits": {"http": 5, "free": None, "pace": {"units": 3, "window": "1s"}}},
    )
    assert answer.status == 200
    sizes = {name: each["size"] for name, each in answer.json["limits"].items()}
    assert sizes == {"http": 5, "free": None, "pace": 3}
    assert s.statistics().limits["http"].size == 5


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({"limits": {"http": 0}}, "limits.http"),
        ({"limits": {"http": "5"}}, "limits.http"),
        ({"limits": {"http": {"units": 3, "window": "x"}}}, "limits.http"),
        ({"limits": {"http": {"window": "1s"}}}, "limits.http"),
        ({"limits": {"http": {"units": 3, "colour": 1}}}, "limits.http"),
        ({"limits": {"http": {"units": 3, "fleet": True}}}, "limits.http"),
        ({"limits": {"http": {"units": 3, "fleet": "yes"}}}, "limits.http.fleet"),
        ({"limits": {"http": {"units": 3, "fleet": None}}}, "limits.http.fleet"),
        ({"limits": {"": 3}}, "limits"),
        ({"limits": {"a\nb": 3}}, "limits"),
        ({"limits": {"x" * 201: 3}}, "limits"),
        ({"limits": [1]}, "limits"),
        ({"limit": 0}, "limit"),
        ({"limit": {"units": 3}}, "limit"),
        ({"size": 3}, None),
    ],
)
async def test_a_size_that_is_wrong_is_refused(body, key, s, admin):
    """And no limit changes."""
    answer = await admin.patch("/v1/limits", body)
    assert answer.status == 422
    assert answer.json.get("key") == key
    assert s.statistics().limits["http"].size == 2


async def test_a_store_in_trouble_is_not_ready(s, stranger, monkeypatch, has_store):
    """A load balancer sends its requests elsewhere."""
    assert (await stranger.get("/readyz")).json == {"status": "ok"}
    if has_store:
        monkeypatch.setattr(s._memory._commits, "trouble", "the secret disk is full")
        answer = await stranger.get("/readyz")
        assert answer.status == 503
        assert b"secret" not in answer.body
        assert (await stranger.get("/healthz")).status == 200


async def test_a_reader_sees_that_there_is_trouble_and_not_which(s, reader, operator, monkeypatch, has_store):
    """The text of a driver has paths and names of hosts."""
    found = (await reader.get("/v1/summary")).json
    assert (found["store"] is None) != has_store
    if has_store:
        assert found["store"]["trouble"] is None
        monkeypatch.setattr(s._memory._commits, "trouble", "the secret disk is full")
        answer = await reader.get("/v1/summary")
        assert b"secret" not in answer.body
        assert answer.json["store"]["trouble"].startswith("there is trouble")
        assert (await operator.get("/v1/summary")).json["store"]["trouble"] == "the secret disk is full"


async def test_a_large_body_is_read(s, admin):
    """In a thread, and within the same bounds."""
    body = b'{"task": "nothing", "schedule": "@every 1h", "args": ["' + b"x" * 300_000 + b'"]}'
    assert (await admin.put("/v1/jobs/a", body)).status == 201
    assert (await admin.put("/v1/jobs/a", body[:-1])).status == 400


async def test_the_description_is_of_the_routes(reader):
    """Each route stands in it, with its scope, its query and its body."""
    found = (await reader.get("/v1/openapi.json")).json
    assert found == json.loads(json.dumps(openapi(ROUTES)))
    described = {
        (method.upper(), ("" if "servers" in place else "/v1") + path)
        for path, place in found["paths"].items()
        for method in place
        if method != "servers"
    }
    assert described == {(route.method, route.path) for route in ROUTES}
    listing = found["paths"]["/jobs"]["get"]
    assert {each["name"] for each in listing["parameters"]} == set("limit cursor q tag state owner sort fields".split())
    pausing = found["paths"]["/jobs/{id}/pause"]["post"]
    assert set(pausing["requestBody"]["content"]["application/json"]["schema"]["properties"]) == {"until", "reason"}
    assert pausing["security"] == [{"access": ["operate"]}]


def test_the_description_names_what_it_uses():
    """Each reference leads to a schema, and each operation has its own name."""
    text = json.dumps(openapi(ROUTES))
    schemas = openapi(ROUTES)["components"]["schemas"]
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.split('"')[0] in schemas
    names = [operation["operationId"] for operation in operations()]
    assert len(set(names)) == len(names)
    assert [operation["summary"] for operation in operations() if not operation["summary"]] == []


def operations():
    """Yield all operations of the description."""
    for place in openapi(ROUTES)["paths"].values():
        yield from (each for method, each in place.items() if method != "servers")


def test_the_scheduler_does_not_import_the_api():
    """Who uses none of it pays nothing."""
    code = "import sys, scheduler; print([each for each in sys.modules if 'starlette' in each or '.web' in each])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
