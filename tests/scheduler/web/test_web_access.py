"""Who may do what: nothing is open, each route says its scope, and what changes something is logged."""

import logging

import pytest

from asgi import Caller
from scheduler.web import Access, app
from scheduler.web._routes import ROUTES

OPEN = {"/healthz", "/readyz"}


@pytest.fixture
def store():
    """Access does not depend on a store."""
    return


def target(route):
    """Return a path of a route."""
    return route.path.replace("{id}", "a").replace("{owner}", "me")


def names(route):
    """Name a route in the report."""
    return f"{route.method} {route.path}"


@pytest.mark.parametrize("route", ROUTES, ids=names)
async def test_each_route_is_closed_without_access(route, stranger):
    """Only the two that a load balancer asks are open."""
    answer = await stranger(route.method, target(route))
    assert (answer.status == 401) == (route.path not in OPEN)


@pytest.mark.parametrize("route", ROUTES, ids=names)
async def test_each_other_method_is_closed_too(route, stranger):
    """Not even which methods there are is told."""
    for method in ("GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE", "TRACE", "X"):
        answer = await stranger(method, target(route))
        is_open = route.path in OPEN and method in {"GET", "HEAD"}
        assert (answer.status == 401) == (not is_open), method


@pytest.mark.parametrize("path", ["/", "", "//", "/v1", "/v2/jobs", "/v1/jobs/", "/v1/jobs//run", "/healthz/x", "/%ff"])
async def test_paths_that_are_not_there_are_closed(path, stranger, reader):
    """A stranger learns nothing of them; a caller with access does."""
    assert (await stranger.get(path)).status == 401
    assert (await reader.get(path)).status == 404


@pytest.mark.parametrize("route", [each for each in ROUTES if each.scope is not None], ids=names)
async def test_a_route_needs_its_scope(route, api):
    """Who may less is told what is needed."""
    order = ["read", "operate", "admin"]
    for scope in order[: order.index(route.scope)]:
        caller = Caller(api, headers={"authorization": f"joe:{scope}"})
        answer = await caller(route.method, target(route))
        assert answer.status == 403
        assert f"needs the scope '{route.scope}'" in answer.json["detail"]
    for scope in order[order.index(route.scope) :]:
        caller = Caller(api, headers={"authorization": f"joe:{scope}"})
        assert (await caller(route.method, target(route))).status not in {401, 403}


def test_what_changes_something_is_audited_and_needs_more_than_read():
    """A new route without one of them would stand out here."""
    for route in ROUTES:
        assert (route.audit is not None) == (route.method != "GET"), names(route)
        assert route.method == "GET" or route.scope in {"operate", "admin"}, names(route)
    audits = [route.audit for route in ROUTES if route.audit]
    assert len(set(audits)) == len(audits)


async def test_an_act_is_logged_with_its_caller(s, operator, caplog):
    """Also one that is refused."""
    s.add("nothing", "@every 1h", id="a")
    with caplog.at_level(logging.INFO, "scheduler.web.changes"):
        await operator.post("/v1/jobs/a/pause", {"reason": "quiet"})
        await operator.put("/v1/jobs/a", {})
    assert [record.getMessage() for record in caplog.records] == [
        "pause by 'otto': id 'a': 204",
        "put by 'otto': id 'a': refused: otto may not PUT /v1/jobs/{id}: that needs the scope 'admin'",
    ]
    assert caplog.records[0].caller == "otto"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_page_of_another_site_changes_nothing(site, s, admin):
    """A browser sends cookies and passwords along; it says for whom."""
    s.add("nothing", "@every 1h", id="a")
    assert (await admin.post("/v1/jobs/a/pause", sec_fetch_site=site)).status == 403
    assert (await admin.post("/v1/jobs/a/pause", sec_fetch_site="same-origin")).status == 204


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("https://evil.example", "jobs.example", 403),
        ("http://jobs.example:8000", "jobs.example", 403),
        ("http://jobs.example.evil.example", "jobs.example", 403),
        ("http://evil.example@jobs.example", "jobs.example", 403),
        ("null", "jobs.example", 403),
        ("", "", 403),
        ("jobs.example", "jobs.example", 403),
        ("http://jobs.example", "jobs.example", 204),
        ("http://jobs.example:8000", "Jobs.example:8000", 204),
        ("https://jobs.example", "jobs.example:443", 204),
        ("http://[::1]:8000", "[::1]:8000", 204),
    ],
)
async def test_a_browser_that_tells_only_the_origin(origin, host, status, s, admin):
    """On http, browsers do not say whether the page is of this site: its host must be ours."""
    s.add("nothing", "@every 1h", id="a")
    assert (await admin.post("/v1/jobs/a/pause", origin=origin, host=host)).status == status


async def test_what_the_browser_says_of_the_site_comes_first(s, admin):
    """A proxy may give another host."""
    s.add("nothing", "@every 1h", id="a")
    public = {"origin": "https://jobs.example", "host": "10.0.0.1"}
    assert (await admin.post("/v1/jobs/a/pause", sec_fetch_site="same-origin", **public)).status == 204
    assert (await admin.post("/v1/jobs/a/pause", **public)).status == 403


async def test_access_may_be_a_coroutine_function(s):
    """It may ask a database."""

    async def asked(scope):
        return Access("ann", "read")

    assert (await Caller(app(s, access=asked)).get("/v1/jobs")).status == 200


@pytest.mark.parametrize("answer", [True, "admin", 1, ("ann", "admin")])
async def test_an_answer_that_is_no_access_opens_nothing(answer, s, caplog):
    """A mistake in the user's callable closes the door."""
    found = await Caller(app(s, access=lambda _: answer)).get("/v1/jobs")
    assert found.status == 500
    assert "access must return an Access or None" in caplog.text


async def test_an_access_that_raises_opens_nothing(s, caplog):
    """What it says goes to the log, and not to the caller."""

    def broken(_):
        raise ValueError("the secret")

    found = await Caller(app(s, access=broken)).get("/v1/jobs")
    assert found.status == 500
    assert b"secret" not in found.body
    assert "the secret" in caplog.text


def test_scopes_that_are_not_there_are_refused():
    """A typing error would else be a caller that may nothing, or too much."""
    with pytest.raises(ValueError, match="no scope 'write': there are read, operate, admin"):
        Access("ann", "write")
    assert Access("ann", ["admin"]).may("read")
    assert not Access("ann", "read").may("operate")


async def test_access_is_not_optional(s):
    """Nothing is open by default."""
    with pytest.raises(TypeError, match="access"):
        app(s)
    with pytest.raises(TypeError, match="access must be a function"):
        app(s, access=None)
