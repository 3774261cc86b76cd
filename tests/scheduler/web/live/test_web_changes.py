"""Who changed what, over HTTP; the nodes of a fleet; what runs and waits."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from asgi import Caller
from scheduler import Scheduler, acting_as
from scheduler.stores.postgres import PostgresStore
from scheduler.web import Access, app


@pytest.fixture
def job(s):
    """A job that code has added."""
    return s.add("nothing", "@every 1h", id="a", args=["canary"])


async def test_each_act_is_noted_with_its_caller(s, job, admin, operator):
    """Also for those who look later, in another process."""
    body = {"task": "nothing", "schedule": "@every 1h", "args": ["canary"]}
    await admin.put("/v1/jobs/b", body)
    await admin.patch("/v1/jobs/b", {"schedule": "@every 2h"})
    await operator.post("/v1/jobs/a/pause", {"reason": "new disks"})
    await operator.post("/v1/jobs/a/resume")
    await operator.post("/v1/jobs/a/run")
    await admin.delete("/v1/jobs/b")
    await admin.put("/v1/sets/me", {"jobs": [{"id": "c", **body}]})
    await admin.patch("/v1/limits", {"limits": {"http": 5}})
    found = (await operator.get("/v1/changes")).json["changes"][::-1]
    assert [(each["act"], each["scope"], each["actor"]) for each in found] == [
        ("add", "job:b", "ann"),
        ("update", "job:b", "ann"),
        ("pause", "job:a", "otto"),
        ("resume", "job:a", "otto"),
        ("run", "job:a", "otto"),
        ("remove", "job:b", "ann"),
        ("add", "job:c", "ann"),
        ("sync", "set:me", "ann"),
        ("resize", "limits", "ann"),
    ]
    assert found[0]["after"]["args"] == ["canary"]
    assert (found[1]["before"], found[1]["after"]) == ({"schedule": "@every 1h"}, {"schedule": "@every 2h"})
    assert (found[2]["reason"], found[2]["job_id"]) == ("new disks", "a")
    assert (found[-1]["before"], found[-1]["after"]) == ({"http": 2}, {"http": 5})


async def test_a_reader_sees_no_arguments(s, job, admin, reader):
    """Neither as they were nor as they are."""
    await admin.put("/v1/jobs/b", {"task": "nothing", "schedule": "@every 1h", "args": ["canary"]})
    await admin.put("/v1/jobs/b", {"task": "nothing", "schedule": "@every 1h", "kwargs": {"key": "canary"}})
    await admin.delete("/v1/jobs/b")
    answer = await reader.get("/v1/changes")
    assert b"canary" not in answer.body
    assert [each["act"] for each in answer.json["changes"]] == ["remove", "update", "add"]
    assert answer.json["changes"][0]["before"]["schedule"] == "@every 1h"


async def test_changes_come_in_pages(s, job, reader):
    """Each change is in one of them."""
    for number in range(7):
        with acting_as("ann" if number % 2 else "bob"):
            job.pause(str(number))
    await s.flush()
    found, target = [], "/v1/changes?limit=3"
    while target is not None:
        page = (await reader.get(target)).json
        found += [each["reason"] for each in page["changes"]]
        target = page["next"] and "/v1/changes" + page["next"]
    assert found == list("6543210")
    of_ann = (await reader.get("/v1/changes?actor=ann&limit=2")).json
    assert [each["reason"] for each in of_ann["changes"]] == ["5", "3"]
    rest = (await reader.get("/v1/changes" + of_ann["next"])).json
    assert [each["reason"] for each in rest["changes"]] == ["1"]
    assert rest["next"] is None
    assert (await reader.get("/v1/changes?job=b")).json == {"changes": [], "next": None}
    assert len((await reader.get("/v1/changes?job=a")).json["changes"]) == 7


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "cursor=yesterday", "cursor=2026-01-01T00:00:00", "who=x"])
async def test_a_wrong_query_says_its_key(query, s, reader):
    """As everywhere."""
    answer = await reader.get(f"/v1/changes?{query}")
    assert (answer.status, answer.json["key"]) == (422, query.split("=")[0])


async def test_without_other_nodes_there_is_no_fleet(s, reader):
    """The answer says so."""
    assert (await reader.get("/v1/fleet")).json == {"fleet": None, "store": None}


async def test_the_nodes_of_a_fleet(postgres_server, postgres_schema):
    """As this node sees them, and as the store says."""
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True, name="left")
    async with Scheduler(store=store) as s:
        answer = await Caller(app(s, access=lambda _: Access("rita", "read"))).get("/v1/fleet")
    found = answer.json
    assert found["fleet"]["me"] == "left"
    assert [each["name"] for each in found["store"]["agents"]] == ["left"]
    assert found["store"]["requests"] == 0
    assert postgres_server.dsn.encode() not in answer.body


async def test_what_runs_and_what_waits(s, reader):
    """And for which limit."""
    goes_on = anyio.Event()

    async def wait(_):
        await goes_on.wait()

    s.register("wait", wait)
    jobs = [s.add("wait", "@every 1h", id=f"{number}", args=["canary"], needs="http") for number in range(3)]
    asked = [job.run_now() for job in jobs]
    found = {}
    while (found.get("running"), found.get("waiting")) != (2, 1):
        await checkpoint()
        found = (await reader.get("/v1/queue")).json
    goes_on.set()
    for each in asked:
        await each
    assert found["waiting_for"] == {"http": 1}
    assert [each["state"] for each in found["runs"]] == ["running", "running", "waiting"]
    assert "canary" not in str(found)
    assert (found["queue"], len((await reader.get("/v1/queue?limit=1")).json["runs"])) == (None, 0)
