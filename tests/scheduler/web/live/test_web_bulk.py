"""Acts on many jobs by a filter: a count and a token first, then the acts, and what of them failed."""

import pytest

from asgi import Caller
from scheduler import JobState
from scheduler.web import Access
from scheduler.web._app import App
from timerqueue.testing import ManualClock


@pytest.fixture
def jobs(s):
    """Some jobs of a shop, and one that is none."""
    found = [s.add("nothing", "@every 1h", id=f"shop {number}", tags=["shop"]) for number in range(3)]
    return [*found, s.add("nothing", "@every 1h", id="other")]


async def confirmed(caller, target, body=None, **headers):
    """Ask twice: for the count, and to act."""
    first = await caller.post(target, body or {})
    assert first.status == 200
    return first.json, await caller.post(target, {**(body or {}), "token": first.json["token"]}, **headers)


async def test_the_first_call_counts_and_changes_nothing(s, jobs, operator):
    """It says how many jobs there are, and gives a token."""
    answer = (await operator.post("/v1/jobs/pause?tag=shop")).json
    assert (answer["act"], answer["count"]) == ("pause", 3)
    assert answer["token"]
    assert all(job.state is JobState.SCHEDULED for job in jobs)


async def test_the_second_call_acts_on_the_jobs_of_the_filter(s, jobs, operator):
    """And on no others."""
    first, answer = await confirmed(operator, "/v1/jobs/pause?tag=shop", {"reason": "a sale"})
    assert answer.json == {"act": "pause", "count": first["count"], "failed": 0, "failures": []}
    assert [job.state is JobState.DISABLED for job in jobs] == [True, True, True, False]
    assert jobs[0].pauses[0].reason == "a sale"
    _, answer = await confirmed(operator, "/v1/jobs/resume?q=SHOP")
    assert (answer.json["count"], answer.json["failed"]) == (3, 0)
    assert all(job.state is JobState.SCHEDULED for job in jobs)
    changes = await s.changes(actor="otto")
    assert [each.act for each in changes] == ["resume"] * 3 + ["pause"] * 3


async def test_jobs_are_run_and_skipped(s, jobs, operator):
    """As one by one."""
    due = jobs[0].next_start
    _, answer = await confirmed(operator, "/v1/jobs/skip?state=scheduled&owner=code")
    assert (answer.status, answer.json["count"]) == (200, 4)
    assert jobs[0].next_start > due
    _, answer = await confirmed(operator, "/v1/jobs/run")
    assert (answer.json["count"], answer.json["failed"]) == (4, 0)
    for job in jobs:
        await job.run_now()
        assert job.statistics().runs >= 1


async def test_what_failed_is_told_job_by_job(s, jobs, operator):
    """The others are done."""
    _, answer = await confirmed(operator, "/v1/jobs/pause", {"until": "2001-01-01T00:00:00Z"})
    assert answer.json["failed"] == 4
    assert {each["job_id"] for each in answer.json["failures"]} == {job.id for job in jobs}
    assert "until" in answer.json["failures"][0]["detail"]


async def refused(caller, target, body):
    """Tell whether the call was refused for its token."""
    answer = await caller.post(target, body)
    return (answer.status, answer.json.get("type")) == (409, "urn:timerqueue:problem:confirmation")


@pytest.mark.parametrize("token", ["", "x", "1.x", "99999999999.00", "-1.", "\xb2.x", "9" * 900])
async def test_a_forged_token_acts_on_nothing(token, s, jobs, operator):
    """It must be what this app has signed."""
    assert await refused(operator, "/v1/jobs/pause", {"token": token})
    assert all(job.state is JobState.SCHEDULED for job in jobs)


async def test_a_token_holds_for_one_caller_act_filter_body_and_set_of_jobs(s, api, jobs, operator, admin):
    """Whatever else comes with it, nothing happens."""
    token = (await operator.post("/v1/jobs/pause?tag=shop", {"reason": "x"})).json["token"]
    assert await refused(admin, "/v1/jobs/pause?tag=shop", {"reason": "x", "token": token})
    assert await refused(operator, "/v1/jobs/skip?tag=shop", {"token": token})
    assert await refused(operator, "/v1/jobs/pause", {"reason": "x", "token": token})
    assert await refused(operator, "/v1/jobs/pause?tag=shop", {"reason": "y", "token": token})
    assert await refused(operator, "/v1/jobs/pause?tag=shop", {"token": token})
    s.add("nothing", "@every 1h", id="new", tags=["shop"])
    assert await refused(operator, "/v1/jobs/pause?tag=shop", {"reason": "x", "token": token})
    s.remove("new")
    assert not await refused(operator, "/v1/jobs/pause?tag=shop", {"reason": "x", "token": token})


async def test_a_token_of_another_app_or_of_long_ago_does_not_hold(s, jobs):
    """It is signed with a secret of its process, and holds for a minute."""
    clock = ManualClock()
    first, second = (Caller(App(s, lambda _: Access("otto", "operate"), clock=clock)) for _ in range(2))
    token = (await first.post("/v1/jobs/pause")).json["token"]
    assert await refused(second, "/v1/jobs/pause", {"token": token})
    await clock.travel(61)
    assert await refused(first, "/v1/jobs/pause", {"token": token})


async def test_a_reader_may_not(s, jobs, reader):
    """Not even count."""
    assert (await reader.post("/v1/jobs/pause")).status == 403


async def test_a_job_may_be_called_as_an_act_is(s, operator, admin):
    """Its own paths are others."""
    body = {"task": "nothing", "schedule": "@every 1h"}
    assert (await admin.put("/v1/jobs/pause", body)).status == 201
    assert (await admin.get("/v1/jobs/pause")).json["id"] == "pause"
    assert (await operator.post("/v1/jobs/pause/pause")).status == 204
    assert s.get("pause").state is JobState.DISABLED


async def test_many_jobs_are_done_in_slices(s, operator):
    """Other work goes on in between."""
    s.add_many("nothing", [(f"{number}", "@every 1h") for number in range(500)])
    _, answer = await confirmed(operator, "/v1/jobs/pause")
    assert (answer.json["count"], answer.json["failed"]) == (500, 0)
    assert {job.state for job in s.jobs()} == {JobState.DISABLED}
