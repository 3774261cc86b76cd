"""Conditions on definitions that JSON cannot hold, and patches that leave defaults."""

import pytest

HOURLY = {"task": "nothing", "schedule": "@every 1h"}


@pytest.fixture
def store():
    """Code may add anything without a store."""
    return


async def test_a_star_names_each_job_that_is_there(s, admin):
    """Also one whose definition has no tag."""
    s.add("nothing", "@every 1h", id="odd", args=(object(),), owner="api")
    assert (await admin.put("/v1/jobs/odd", HOURLY, if_none_match="*")).status == 412
    assert (await admin.put("/v1/jobs/odd", HOURLY, if_match='"x"')).status == 412
    assert (await admin.put("/v1/jobs/none", HOURLY, if_match="*")).status == 412
    assert (await admin.put("/v1/jobs/odd", HOURLY, if_match="*")).status == 200
    assert s.get("odd").args == ()


async def test_a_patch_whose_id_is_null(s, admin):
    """The id is that of the path."""
    await admin.put("/v1/jobs/a", HOURLY)
    assert (await admin.patch("/v1/jobs/a", {"id": None, "timeout": 1})).status == 200
    assert (await admin.patch("/v1/jobs/a", {"id": "b"})).json["key"] == "id"
    assert (await admin.put("/v1/jobs/a", {**HOURLY, "id": None})).status == 422
    for key in ("task", "schedule"):
        assert (await admin.patch("/v1/jobs/a", {key: None})).json["key"] == key


async def test_a_patch_of_overlap_leads_to_the_job_of_a_put(s, admin):
    """What was not said keeps its default, which the rule decides."""
    await admin.put("/v1/jobs/put", {**HOURLY, "overlap": "allow"})
    await admin.put("/v1/jobs/a", {**HOURLY, "timeout": 5, "tags": ["x"], "inline": True, "priority": 2})
    before = (await admin.get("/v1/jobs/a")).json["spec"]
    found = (await admin.patch("/v1/jobs/a", {"overlap": "allow"})).json["spec"]
    assert found["max_running"] == (await admin.get("/v1/jobs/put")).json["spec"]["max_running"]
    back = await admin.patch("/v1/jobs/a", {"overlap": None})
    assert (back.status, back.json["spec"]) == (200, before)


async def test_a_patch_leaves_what_was_said(s, admin):
    """A number that is no default stays."""
    await admin.put("/v1/jobs/a", {**HOURLY, "overlap": "allow", "max_running": 3})
    found = (await admin.patch("/v1/jobs/a", {"timeout": 5})).json["spec"]
    assert (found["overlap"], found["max_running"], found["timeout"]) == ("allow", 3, 5)


async def test_a_wrong_instant_of_a_page_is_named(s, admin):
    """Instants that no store can hold are refused."""
    await admin.put("/v1/jobs/a", HOURLY)
    answer = await admin.get("/v1/jobs/a/runs?before=0001-01-01T00:00:00%2B14:00")
    assert (answer.status, answer.json.get("key")) == (422, "before")
