"""Where the app runs: on the scheduler's loop, on one in another thread, mounted below a path, or before a start."""

import anyio
import pytest
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.routing import Mount

from asgi import Caller
from kit import PATIENCE, nothing
from scheduler import Scheduler
from scheduler.web import Access, app

HOURLY = {"task": "nothing", "schedule": "@every 1h"}


async def elsewhere(work):
    """Await it on an event loop in another thread."""

    async def within():
        with anyio.fail_after(PATIENCE):
            return await work()

    return await run_sync(anyio.run, within)


async def test_the_app_runs_on_the_loop_of_another_thread(s, admin, has_store):
    """As under a server in a thread, or beside one: each answer to a write is true when it comes."""

    async def walk():
        assert (await admin.put("/v1/jobs/a", HOURLY)).status == 201
        assert (await admin.post("/v1/jobs/a/run")).status == 202
        assert (await admin.post("/v1/jobs/a/pause", {"reason": "x"})).status == 204
        assert (await admin.get("/v1/jobs/a")).json["state"] in {"disabled", "running"}
        assert (await admin.post("/v1/jobs/a/resume")).status == 204
        assert len((await admin.get("/v1/jobs")).json["jobs"]) == 1
        runs = (await admin.get("/v1/jobs/a/runs")).json["runs"]
        assert len(runs) == (1 if has_store else 0)
        assert (await admin.put("/v1/sets/api", {"jobs": []})).json["removed"] == ["a"]
        assert (await admin.patch("/v1/limits", {"limits": {"http": 3}})).json["limits"]["http"]["size"] == 3
        for target in ("/v1/summary", "/healthz", "/readyz"):
            assert (await admin.get(target)).status == 200

    await elsewhere(walk)
    assert s.jobs() == []


@pytest.mark.parametrize("root", ["", "/control", "/a/b%20c", "/ä"])
async def test_the_app_is_mounted_below_a_path(root, s, admin):
    """Its links are relative, so they hold there."""
    caller = Caller(admin.app, root_path=root, headers=admin.headers)
    assert (await caller.put("/v1/jobs/a%2Fb", HOURLY)).headers["location"] == "a%2Fb"
    assert (await caller.get("/v1/jobs/a%2Fb")).json["id"] == "a/b"
    assert (await caller.get("/healthz")).status == 200


async def test_starlette_mounts_it(s, admin):
    """Without lifespan of its own."""
    outer = Caller(Starlette(routes=[Mount("/control", admin.app)]), headers=admin.headers)
    assert (await outer.put("/control/v1/jobs/a%2Fb", HOURLY)).status == 201
    assert [each["id"] for each in (await outer.get("/control/v1/jobs")).json["jobs"]] == ["a/b"]


async def test_a_server_that_gives_no_raw_path(s, admin):
    """Such a server knows no slash in an id; the rest works."""
    scope = admin.scope("GET", "/v1/jobs", admin.headers)
    del scope["raw_path"]
    assert (await admin.send(scope, [b""])).status == 200


async def test_a_server_whose_path_is_without_the_root(s, admin):
    """As servers before ASGI 3.0 gave it."""
    scope = admin.scope("GET", "/v1/jobs", admin.headers) | {"root_path": "/control"}
    assert (await admin.send(scope, [b""])).status == 200


async def test_head_is_a_get_without_a_body(s, admin):
    """With the length that the body would have."""
    answer = await admin("HEAD", "/v1/jobs")
    assert answer.status == 200
    assert answer.body == b""


async def test_before_the_start_and_after_the_stop():
    """Reads work, writes are refused, and it is neither healthy nor ready."""
    s = Scheduler()
    s.register("nothing", nothing)
    admin = Caller(app(s, access=lambda _: Access("ann", "admin")))
    for _ in range(2):
        assert (await admin.get("/v1/jobs")).status == 200
        for answer in (
            await admin.put("/v1/jobs/a", HOURLY),
            await admin.post("/v1/jobs/a/run"),
            await admin.put("/v1/sets/red", {"jobs": []}),
            await admin.patch("/v1/limits", {"limit": 1}),
            await admin.get("/healthz"),
            await admin.get("/readyz"),
        ):
            assert answer.status == 503
        async with s if s.state.value == "pre_running" else anyio.create_task_group():
            pass


async def test_a_loop_that_stands_still_is_not_healthy(s, monkeypatch):
    """Another thread's health check says so."""
    from scheduler.web._resources import overview  # noqa: PLC0415 - whose patience is too long for a test

    monkeypatch.setattr(overview, "TURN_WITHIN_S", 0.01)
    monkeypatch.setattr(s, "turn", anyio.sleep_forever)
    answer = await Caller(app(s, access=lambda _: None)).get("/healthz")
    assert answer.status == 503
    assert "has not turned" in answer.json["detail"]


async def test_requests_from_two_loops_at_once(s, admin):
    """Each answer is true, and in the end each job is as its last request says."""
    last = {}

    async def walk(first):
        for number in range(first, first + 10):
            id = f"job-{number}"
            assert (await admin.put(f"/v1/jobs/{id}", HOURLY)).status == 201
            assert (await admin.patch(f"/v1/jobs/{id}", {"timeout": number + 1})).status == 200
            assert (await admin.post(f"/v1/jobs/{id}/pause")).status == 204
            last[id] = number + 1
            if number % 3 == 0:
                assert (await admin.delete(f"/v1/jobs/{id}")).status == 204
                del last[id]

    async with anyio.create_task_group() as group:
        group.start_soon(walk, 0)
        group.start_soon(walk, 10)
        group.start_soon(elsewhere, lambda: walk(20))
        group.start_soon(elsewhere, lambda: walk(30))
    assert {job.id: job.timeout.total_seconds() for job in s.jobs()} == last
    assert {job.state.value for job in s.jobs()} == {"disabled"}
