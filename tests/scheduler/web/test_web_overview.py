"""Figures, limits, why a job did or did not run, and the description of the API."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from asgi import Caller
from kit import nothing, until
from scheduler import Scheduler
from scheduler.web import Access, app
from scheduler.web._openapi import openapi
from scheduler.web._routes import ROUTES

HOURLY = {"task": "nothing", "schedule": "@every 1h"}


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


@pytest.mark.parametrize(("scope", "is_told"), [("read", False), ("operate", True)])
async def test_a_reader_sees_no_error_of_the_store(scope, is_told, tmp_path):
    """It names files and tables, and what a driver says. Who may run jobs sees it."""
    place = tmp_path / "secret.db"
    async with Scheduler(store=f"sqlite:///{place}") as s:
        s.register("nothing", nothing)
        s.add("nothing", "@every 1h", id="a")
        await s.flush()
        with closing(sqlite3.connect(place)) as beside:
            beside.execute("ALTER TABLE tick RENAME TO away")
            found = await Caller(app(s, access=lambda _: Access("ann", scope))).get("/v1/jobs/a/runs")
            beside.execute("ALTER TABLE away RENAME TO tick")
    assert (found.status, found.json["error"], b"secret.db" in found.body) == (503, "StoreError", is_told)


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


async def test_why_is_a_value_and_a_sentence(s, admin, has_store):
    """A run by hand is in the records, if records are kept."""
    await admin.put("/v1/jobs/a", HOURLY)
    end = await s.get("a").run_now()
    said = (await admin.get(f"/v1/jobs/a/why?at={end.due.isoformat().replace('+00:00', 'Z')}")).json
    assert said["job_id"] == "a"
    assert said["verdict"] == ("ran" if has_store else "not_due")
    assert said["text"].startswith("Job 'a' ")


async def test_without_an_instant_it_says_what_comes_or_holds(s, admin):
    """A paused job says who paused it, and why."""
    await admin.put("/v1/jobs/a", HOURLY)
    await admin.post("/v1/jobs/a/pause", {"reason": "new disks"})
    said = (await admin.get("/v1/jobs/a/why")).json
    assert (said["verdict"], said["pause"]["reason"]) == ("paused", "new disks")
    assert "new disks" in said["text"]


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("schedule", ["@every 1h", "0 9 * * *"])
async def test_why_is_answered_for_the_first_and_the_last_second(at, schedule, s, admin):
    """The schedule is not at fault there."""
    await admin.put("/v1/jobs/a", {"task": "nothing", "schedule": schedule})
    await s.get("a").run_now()
    said = await admin.get(f"/v1/jobs/a/why?at={at}")
    assert (said.status, said.json["verdict"], said.json["error"]) == (200, "not_due", None)


async def test_a_job_that_is_gone_is_no_error(admin):
    """Its records may be there still."""
    said = await admin.get("/v1/jobs/nobody/why")
    assert (said.status, said.json["verdict"]) == (200, "gone")


async def test_a_wrong_instant_is_refused(admin):
    """With the name of the key."""
    assert (await admin.get("/v1/jobs/a/why?at=yesterday")).json["key"] == "at"


async def test_a_reader_sees_no_error_of_a_run(s, admin, reader, has_store):
    """Neither as a value nor in the sentence."""

    def broken():
        msg = "the secret is 4711"
        raise ValueError(msg)

    s.register("broken", broken)
    await admin.put("/v1/jobs/a", {**HOURLY, "task": "broken"})
    await s.get("a").run_now()
    await until(lambda: not s.runs())
    seen, masked = await admin.get("/v1/jobs/a/why"), await reader.get("/v1/jobs/a/why")
    assert ("4711" in (seen.json["error"] or "")) is has_store
    assert b"4711" not in masked.body
