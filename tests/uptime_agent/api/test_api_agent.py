"""The control API of an agent that runs: who may what, whose jobs are whose, and what survives."""

import json
import os

import anyio
import pytest

from asgi_kit import Answered, check, written
from kit import PATIENCE, until
from push_kit import rest_of
from scheduler.web import Route
from scheduler.web._routes import ROUTES
from uptime_agent.api.routes import routes_of

OPEN = {"/healthz", "/readyz"}


def routes(job="site"):
    """Return the table of all routes: of the library, and of the agent. Of a stream the head is asked for."""
    found = (*ROUTES, *routes_of(None))
    assert all(isinstance(each, Route) for each in found)
    names = {"id": job, "owner": "api", "name": "site"}
    method_of = {"text/event-stream": "HEAD"}
    return [(method_of.get(each.gives, each.method), each.path.format(**names), each.scope) for each in found]


async def test_every_route_but_two_is_closed_without_a_token(running):
    """Whatever is added to the table, here or in the library."""
    async with running(check("site")) as agent:
        statuses = {(method, path): (await agent.nobody(method, path)).status for method, path, _ in routes()}
        assert {place for place, status in statuses.items() if status != 401} == {("GET", path) for path in OPEN}
        for path in (
            "/",
            "/v1",
            "/v1/none",
            "/push/x",
            "/v1/jobs/site/none",
            "/metrics",
            "//v1/jobs",
            "/%2e%2e/v1/jobs",
        ):
            assert (await agent.nobody("GET", path)).status == 401
            assert (await agent.nobody("GET", f"{path}?token=secret-ann&access_token=secret-ann")).status == 401


@pytest.mark.parametrize("scope", ["read", "operate", "admin"])
async def test_a_token_may_what_its_scope_says(running, scope):
    """403 for more, and with the name of the scope that is missing."""
    order = ("read", "operate", "admin")
    async with running(check("site")) as agent:
        ann = agent.by("ann", scope)
        for method, path, needs in routes():
            found = await ann(method, path)
            is_refused = needs is not None and order.index(needs) > order.index(scope)
            assert (found.status == 403) == is_refused, (method, path, found)


async def test_our_own_user_needs_no_token_over_the_socket(running):
    """And is called by its number in the log of changes."""
    async with running(check("site")) as agent:
        found = (await agent.local("GET", "/v1/agent")).json
        assert (found["caller"], found["file"]) == (f"uid {os.geteuid()}", "uptime.toml")
        assert (await agent.local("GET", "/v1/jobs", Host="evil.example")).status == 200  # no browser comes this way


async def test_a_reader_sees_no_secret_on_any_route(running):
    """Neither arguments, nor what URLs hold, nor what errors repeat."""
    secret = "canary-4711-xyz"
    checks = check("site", interval="100ms", url=f"http://me:{secret}@127.0.0.1:1/?api_key={secret}")
    checks += check("unnamed", url=f"https://me:{secret}@127.0.0.1:1/").replace('name = "unnamed"\n', "")
    async with running(checks) as agent:
        put = {"task": "check", "schedule": "@every 1h", "args": [secret]}
        assert (await agent.local("PUT", "/v1/jobs/other", json.dumps(put).encode())).status == 201
        await agent.local("POST", "/v1/jobs/other/run")
        await until(lambda: agent.scheduler.get("other").statistics().runs)
        await until(lambda: agent.scheduler.get("site").statistics().runs)
        bob = agent.by("bob", "read")
        for name in ("site", "other"):
            for method, path, needs in routes(name):
                found = await bob(method, path)
                assert secret.encode() not in found.received, (method, path)
                assert (found.status < 400) == (needs in {"read", None}), (method, path, found)
        assert secret.encode() in (await agent.local("GET", "/v1/jobs/other")).received  # so there was something to see


async def test_the_file_owns_its_checks_and_the_answer_says_on_which_line(running):
    """Also after the file was edited above it: then the line is another one."""
    async with running(check("first") + check("site")) as agent:
        body = json.dumps({"task": "check", "schedule": "@every 5s", "args": ["site"]}).encode()
        for method, data in (("PUT", body), ("PATCH", b'{"schedule": "@every 5s"}'), ("DELETE", b"")):
            found = await agent.local(method, "/v1/jobs/site", data)
            line = agent.file.read_text().splitlines().index('name = "site"')
            assert (found.status, found.json["place"]) == (409, f"uptime.toml:{line}")
            assert found.json["owner"] == "file:uptime.toml"
            assert f"uptime.toml:{line}" in found.json["detail"]
        agent.write("# a comment\n\n" + check("first") + check("site"))
        line += 2
        with anyio.fail_after(PATIENCE):
            while (await agent.local("DELETE", "/v1/jobs/site")).json["place"] != f"uptime.toml:{line}":
                await anyio.lowlevel.checkpoint()
        for act in ("pause", "resume", "run", "skip"):
            assert (await agent.local("POST", f"/v1/jobs/site/{act}")).status < 300


async def test_a_pause_by_the_api_survives_a_reload_and_a_restart(running):
    """With its reason; and the target is shown as paused."""
    async with running(check("site", interval="100ms")) as agent:
        assert (await agent.local("POST", "/v1/jobs/site/pause", b'{"reason": "new disks"}')).status == 204
        agent.write(check("site", 'timeout = "3s"', interval="100ms") + check("added"))
        await until(lambda: any("configuration read again" in each for each in agent.display.notices))
        assert (await agent.local("GET", "/v1/jobs/site")).json["pauses"][0]["reason"] == "new disks"
    async with running() as agent:
        job = (await agent.local("GET", "/v1/jobs/site")).json
        assert (job["pauses"][0]["reason"], job["state"]) == ("new disks", "disabled")
        assert (await agent.local("POST", "/v1/jobs/site/resume")).status == 204
        await until(lambda: agent.scheduler.get("site").statistics().runs)


async def test_a_job_that_came_by_the_api_is_there_after_a_restart(running):
    """The agent removes checks that its file no longer has, and no others."""
    body = json.dumps({"task": "check", "schedule": "@every 1h", "args": ["site"], "tags": ["check"]}).encode()
    async with running(check("site") + check("gone")) as agent:
        assert (await agent.local("PUT", "/v1/jobs/mine", body)).status == 201
    async with running(check("site")) as agent:
        ids = {each["id"] for each in (await agent.local("GET", "/v1/jobs")).json["jobs"]}
        assert {"site", "mine"} <= ids
        assert "gone" not in ids


# -- hostile -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Cookie": "token=secret-ann", "Authorization": None}, 401),
        ({"Authorization": "Basic bWU6c2VjcmV0LWFubg=="}, 200),
        ({}, 200),
    ],
)
async def test_a_page_in_a_browser_cannot_ask(running, headers, status):
    """Even if a person's browser sent the right token along."""
    async with running(check("site")) as agent:
        ann = agent.by("ann", "admin")
        found = await ann("GET", "/v1/jobs", **headers)
        assert found.status == status
        assert "access-control-allow-origin" not in found.headers
        assert "set-cookie" not in found.headers


async def test_basic_reads_and_does_not_act(running):
    """A browser sends a password along with whatever a page asks."""
    async with running(check("site")) as agent:
        ann = agent.by("ann", "admin")
        basic = {"Authorization": "Basic bWU6c2VjcmV0LWFubg=="}
        assert (await ann("POST", "/v1/jobs/site/pause", b"{}", **basic)).status == 403
        assert (await ann("POST", "/v1/jobs/site/pause", b"{}")).status == 204
        found = await agent.nobody("GET", "/v1/jobs")
        assert "Basic" in found.headers["www-authenticate"]


async def test_a_revoked_token_ends_at_once(running):
    """The next request is refused."""
    async with running(check("site")) as agent:
        ann = agent.by("ann", "admin")
        assert (await ann("GET", "/v1/jobs")).status == 200
        agent.tokens.revoke("ann")
        assert (await ann("GET", "/v1/jobs")).status == 401


async def test_who_guesses_tokens_waits_and_keeps_nobody_out(running):
    """Each guess holds one of the peer's places for a while; checks and other callers go on."""
    async with running(check("site", interval="100ms")) as agent:
        statuses = []

        async def guess(number):
            found = await agent.nobody("GET", "/v1/jobs", Authorization=f"Bearer guess-{number}")
            statuses.append(found.status)

        async with anyio.create_task_group() as group:
            for number in range(60):
                group.start_soon(guess, number)
            assert (await agent.local("GET", "/v1/jobs")).status == 200
        assert set(statuses) <= {401, 503}
        runs = agent.scheduler.get("site").statistics().runs
        await until(lambda: agent.scheduler.get("site").statistics().runs > runs)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b'{"schedule": ' + b"9" * 10_000 + b"}",
        b'{"schedule": "0 0 31 2 *", "task": "check"}',
        b'{"schedule": "' + b"1," * 100_000 + b'1 * * * *", "task": "check"}',
        b'{"schedule": "@every 1ns", "task": "os:system", "args": ["id"]}',
        b'{"schedule": "@every 1s", "task": "builtins.eval"}',
        b"\xff\xfe",
        b"x" * 1_100_000,
    ],
)
async def test_whatever_a_body_holds_ends_its_own_request(running, body):
    """With an answer that says why, and the agent goes on."""
    async with running(check("site", interval="100ms")) as agent:
        found = await agent.local("PUT", "/v1/jobs/x", body)
        assert 400 <= found.status < 500
        assert found.json["detail"]
        runs = agent.scheduler.get("site").statistics().runs
        await until(lambda: agent.scheduler.get("site").statistics().runs > runs)


async def test_hundreds_of_silent_connections_stop_no_check(running):
    """They hold their places until they give way; callers come through over the socket and over TCP."""
    async with running(check("site", interval="100ms")) as agent:
        ann = agent.by("ann", "read")
        with anyio.fail_after(PATIENCE):
            silent = [await agent.nobody.connect() for _ in range(300)]
            for each in silent[::2]:
                await each.send(b"GET /v1/jobs HTTP/1.1\r\nHost: local")
            runs = agent.scheduler.get("site").statistics().runs
            await until(lambda: agent.scheduler.get("site").statistics().runs > runs)
            assert (await ann("GET", "/v1/jobs")).status == 200
            assert (await agent.local("GET", "/readyz")).status == 200
            for each in silent:
                await each.aclose()


async def test_two_requests_on_one_connection_are_one(running):
    """The second one is dropped, whatever the first one is."""
    async with running(check("site")) as agent:
        async with await agent.local.connect() as stream:
            await stream.send(written("GET", "/healthz") + written("POST", "/v1/jobs/site/pause"))
            found = Answered(await rest_of(stream))
        assert (found.status, found.received.count(b"HTTP/1.1")) == (200, 1)
        assert not agent.scheduler.get("site").pauses
