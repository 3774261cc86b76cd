"""What people do to targets over the control API of an agent that runs, and how targets stand there."""

import json
import sys

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_of
from prometheus_client.parser import text_string_to_metric_families as families_of

from asgi_kit import check as check_of
from kit import until

RARE = "5000d"
"""No check comes by its schedule during a test."""


def check(name, *more, **options):
    """Write a check that comes when it is asked for."""
    return check_of(name, *more, interval=RARE, **options)


CANARY = "canary-4711-xyz"
OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3"
SITE = check("site", 'tags = ["web"]', 'start = "now"', url=f"http://me:{CANARY}@127.0.0.1:1/?api_key={CANARY}")
GROUP = '[[group]]\nname = "shop"\nmembers = ["site", "other"]\n'
NIGHT = "2999-01-01T00:00:00Z"


@pytest.fixture
def shop(running):
    """Run an agent of a group of two checks, of which one is down from its first check on."""
    return running(SITE + check("other") + GROUP)


async def act(asked, method, path, **body):
    """Act, and return the status and what was answered."""
    found = await asked(method, path, json.dumps(body).encode() if body else b"")
    return found.status, found.json if found.body else None


async def is_down(agent):
    """Wait until the check has found its target down."""
    await until(lambda: agent.display.view.targets[0].incident is not None)


async def test_an_incident_is_listed_and_acknowledged_by_the_caller(shop):
    """By its token's name, with the reason; whoever may act sees the error, and who may only read does not."""
    async with shop as agent:
        await is_down(agent)
        ann, bob = agent.by("ann", "operate"), agent.by("bob", "read")
        status, found = await act(ann, "POST", "/v1/targets/site/ack", reason="disk ordered")
        assert (status, found["text"]) == (200, "site is acknowledged by ann: disk ordered")
        (seen,) = (await ann("GET", "/v1/incidents")).json["incidents"]
        assert (seen["target"], seen["status"], seen["acknowledged"]["actor"]) == ("site", "down", "ann")
        assert "refused" in seen["error"]
        target = (await ann("GET", "/v1/targets/site")).json
        assert (target["status"], target["incident"]["id"], target["is_here"]) == ("down", seen["id"], True)
        assert [each["act"] for each in target["acts"]] == ["acknowledge"]
        for path in ("/v1/incidents", "/v1/targets", "/v1/targets/site", "/v1/acts", "/metrics"):
            read = await bob("GET", path)
            assert (read.status, b"refused" in read.received, CANARY.encode() in read.received) == (200, False, False)
        status, found = await act(ann, "DELETE", "/v1/targets/site/ack")
        assert (status, (await ann("GET", "/v1/incidents")).json["incidents"][0]["acknowledged"]) == (200, None)


async def test_each_act_begins_ends_and_is_in_history(shop):
    """Of a target, a group and a tag; the list of acts has what holds."""
    async with shop as agent:
        ann = agent.by("ann", "operate")
        for place in ("targets/site", "groups/shop", "tags/web"):
            assert (await act(ann, "POST", f"/v1/{place}/silence", until=NIGHT, reason="x"))[0] == 200
            assert (await act(ann, "POST", f"/v1/{place}/maintain", reason="y"))[0] == 200
        assert (await act(ann, "POST", "/v1/targets/site/pause", until=NIGHT, reason="z"))[0] == 200
        held = (await ann("GET", "/v1/acts")).json["acts"]
        assert len(held) == 7
        assert {each["actor"] for each in held} == {"ann"}
        assert {each.get("tag") for each in held} == {None, "web"}
        assert (await ann("GET", "/v1/jobs/site")).json["pauses"][0]["reason"] == "z"
        assert (await act(ann, "POST", "/v1/targets/site/resume")) == (204, None)
        for place in ("targets/site", "groups/shop", "tags/web"):
            assert (await act(ann, "DELETE", f"/v1/{place}/silence"))[0] == 200
            assert (await act(ann, "DELETE", f"/v1/{place}/maintain"))[0] == 200
        assert (await ann("GET", "/v1/acts")).json["acts"] == []
        changes = (await ann("GET", "/v1/changes?limit=500")).json["changes"]
        assert {each["actor"] for each in changes if "act:" in str(each)} >= {"ann"}


async def test_a_check_by_hand_counts(shop):
    """And the answer does not wait for it."""
    async with shop as agent:
        await is_down(agent)
        (before,) = (each.checks for each in agent.display.view.targets if each.name == "other")
        assert (await act(agent.local, "POST", "/v1/targets/other/check-now")) == (202, {"target": "other"})
        await until(lambda: any(each.checks > before for each in agent.display.view.targets if each.name == "other"))


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "says"),
    [
        ("POST", "targets/siet/ack", {"reason": "x"}, 404, "did you mean 'site'?"),
        ("POST", "targets/shop/ack", {"reason": "x"}, 404, "that is a group"),
        ("POST", "groups/site/silence", {"reason": "x", "until": NIGHT}, 404, "that is a target"),
        ("POST", "tags/none/maintain", {"reason": "x"}, 404, "there is no tag"),
        ("DELETE", "targets/site/silence", {}, 409, "there is no silence"),
        ("POST", "targets/site/resume", {}, 409, "is not paused"),
        ("POST", "targets/site/pause", {}, 422, "reason"),
        ("POST", "targets/site/pause", {"reason": " "}, 422, "reason"),
        ("POST", "targets/site/pause", {"reason": "x", "until": "2001-01-01T00:00:00Z"}, 422, "until"),
        ("POST", "targets/site/silence", {"reason": "x"}, 422, "until"),
        ("POST", "targets/site/silence", {"reason": "x", "until": NIGHT, "for": 1}, 422, "for"),
        ("GET", "targets/none", {}, 404, "there is no target"),
        ("GET", "targets?limit=0", {}, 422, "limit"),
    ],
)
async def test_an_act_that_makes_no_sense_says_what_to_do(shop, method, path, body, status, says):
    """And changes nothing."""
    async with shop as agent:
        found = await act(agent.local, method, f"/v1/{path}", **body)
        assert (found[0], says in found[1]["detail"]) == (status, True), found
        assert (await agent.local("GET", "/v1/acts")).json["acts"] == []


async def test_only_an_admin_acts_for_another(shop):
    """Such as the command of a person, over the socket."""
    async with shop as agent:
        ann = agent.by("ann", "operate")
        body = {"reason": "x", "actor": "root"}
        assert (await act(ann, "POST", "/v1/targets/site/maintain", **body))[0] == 403
        assert (await act(agent.local, "POST", "/v1/targets/site/maintain", **body))[1]["actor"] == "root"
        assert (await act(ann, "DELETE", "/v1/targets/site/maintain?actor=root"))[0] == 403
        assert (await act(agent.local, "DELETE", "/v1/targets/site/maintain?actor=root"))[0] == 200


async def test_targets_come_a_page_at_a_time(running):
    """By name; the last page has no next."""
    async with running("".join(check(f"site {number}/") for number in range(5))) as agent:
        page, names = (await agent.local("GET", "/v1/targets?limit=2")).json, []
        while page["next"]:
            names += [each["name"] for each in page["targets"]]
            page = (await agent.local("GET", f"/v1/targets{page['next']}")).json
        names += [each["name"] for each in page["targets"]]
        assert names == [f"site {number}/" for number in range(5)]
        found = (await agent.local("GET", "/v1/targets/site%203%2F")).json
        assert found["name"] == "site 3/"


@pytest.mark.parametrize(("accept", "parse"), [("*/*", families_of), (OPENMETRICS, openmetrics_of)])
async def test_prometheus_reads_the_agent(shop, accept, parse):
    """In the format that it asks for; a silent target has its series too."""
    async with shop as agent:
        await is_down(agent)
        found = await agent.by("bob", "read")("GET", "/metrics", Accept=accept)
        assert found.headers["content-type"].startswith(accept.split(";")[0] if "open" in accept else "text/plain")
        samples = [each for family in parse(found.body.decode()) for each in family.samples]
        values = {(each.name, each.labels.get("target")): each.value for each in samples}
        assert values["timerqueue_target_up", "site"] == 0.0
        assert values["timerqueue_scheduler_running", None] == 1
        assert (await agent.local("HEAD", "/metrics")).status == 200


async def test_without_the_extra_metrics_the_answer_names_it(shop, monkeypatch):
    """And all else goes on."""
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    for name in [each for each in sys.modules if each.startswith(("scheduler.metrics", "uptime_agent.exposition"))]:
        monkeypatch.delitem(sys.modules, name)
    async with shop as agent:
        found = await agent.local("GET", "/metrics")
        assert (found.status, found.json["type"]) == (501, "urn:timerqueue:problem:no-metrics")
        assert "pip install 'timerqueue[agent,web,metrics]'" in found.json["detail"]
        assert (await agent.local("GET", "/v1/targets")).status == 200


async def test_the_description_has_the_routes_of_the_agent(shop):
    """Each with a name of its own."""
    async with shop as agent:
        paths = (await agent.local("GET", "/v1/openapi.json")).json["paths"]
        assert {"/targets/{name}/ack", "/groups/{name}/silence", "/tags/{name}/maintain", "/metrics"} <= set(paths)
        names = [each["operationId"] for path in paths.values() for each in path.values() if isinstance(each, dict)]
        assert len(names) == len(set(names))
