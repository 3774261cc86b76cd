"""A whole set of jobs over HTTP: what differs changes, what is not in it goes, and a dry run tells before."""

import pytest

from scheduler import JobSpec, to_json

HOURLY = {"task": "nothing", "schedule": "@every 1h"}


def jobs(*ids, **options):
    """Return the body of a set."""
    return {"jobs": [{"id": id, **HOURLY, **options} for id in ids]}


async def test_a_set_adds_changes_and_prunes(s, admin):
    """And leaves alone what is the same."""
    first = await admin.put("/v1/sets/red", jobs("a", "b", "c"))
    assert (first.status, first.json["added"]) == (200, ["a", "b", "c"])
    body = {"jobs": [*jobs("a")["jobs"], *jobs("b", timeout=1)["jobs"], *jobs("d")["jobs"]]}
    second = (await admin.put("/v1/sets/red", body)).json
    assert {key: second[key] for key in ("added", "changed", "unchanged", "removed")} == {
        "added": ["d"],
        "changed": ["b"],
        "unchanged": ["a"],
        "removed": ["c"],
    }
    assert [job.id for job in s.jobs()] == ["a", "b", "d"]
    assert {job.owner for job in s.jobs()} == {"red"}


async def test_a_dry_run_changes_nothing(s, admin):
    """It answers what would change."""
    await admin.put("/v1/sets/red", jobs("a", "b"))
    would = (await admin.put("/v1/sets/red?dry_run=1", jobs("b", "c"))).json
    assert (would["dry_run"], would["added"], would["removed"]) == (True, ["c"], ["a"])
    assert [job.id for job in s.jobs()] == ["a", "b"]


async def test_an_empty_set_removes_all_jobs_of_its_owner(s, admin):
    """And of no other."""
    s.add("nothing", "@every 1h", id="ours")
    await admin.put("/v1/sets/red", jobs("a"))
    await admin.put("/v1/sets/blue", jobs("b"))
    assert (await admin.put("/v1/sets/red", jobs())).json["removed"] == ["a"]
    assert [job.id for job in s.jobs()] == ["ours", "b"]


@pytest.mark.parametrize("owner", ["code", "blue"])
async def test_a_set_takes_no_job_of_another(owner, s, admin):
    """409 names the owner, and nothing changes."""
    s.add("nothing", "@every 1h", id="a", owner=None if owner == "code" else owner)
    answer = await admin.put("/v1/sets/red", jobs("b", "a"))
    assert (answer.status, answer.json["owner"]) == (409, owner)
    assert [job.id for job in s.jobs()] == ["a"]


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({"jobs": [{"id": "a", **HOURLY}, {"id": "b", **HOURLY, "timeout": -1}]}, "jobs[1].timeout"),
        ({"jobs": [{"id": "a", **HOURLY}, {"id": "b", "task": "nobody", "schedule": "@every 1h"}]}, "jobs[1].task"),
        ({"jobs": [{"id": "a", **HOURLY, "owner": "blue"}]}, "jobs[0].owner"),
        ({"jobs": [{"id": "a", **HOURLY}, 1]}, "jobs[1]"),
        ({"jobs": [HOURLY]}, "jobs[0].id"),
        ({"jobs": {}}, "jobs"),
        ({}, "jobs"),
        ({"jobs": [], "prune": False}, "jobs"),
    ],
)
async def test_a_set_with_a_mistake_changes_nothing(body, key, s, admin):
    """The answer names the job and its key."""
    answer = await admin.put("/v1/sets/red", body)
    assert (answer.status, answer.json["key"]) == (422, key), answer
    assert s.jobs() == []


async def test_an_id_that_comes_twice(s, admin):
    """It cannot be known which of them is meant."""
    assert (await admin.put("/v1/sets/red", jobs("a", "a"))).status in {409, 422}
    assert s.jobs() == []


async def test_a_large_set(s, admin):
    """Is more than other bodies may be, and the same again touches nothing."""
    body = jobs(*(f"job-{number:05}" for number in range(2_000)), kwargs={"text": "x" * 600})
    assert len((await admin.put("/v1/sets/red", body)).json["added"]) == 2_000
    assert len((await admin.put("/v1/sets/red", body)).json["unchanged"]) == 2_000


async def test_a_spec_of_code_may_be_put(admin):
    """Its owner is null, as `to_json` writes it; any other value is refused."""
    job = to_json(JobSpec("a", "nothing", "@every 1h"))
    assert (await admin.put("/v1/sets/cmdb", {"jobs": [job]})).json["added"] == ["a"]
    for owner in ("other", [], {}, 3):
        answer = await admin.put("/v1/sets/cmdb", {"jobs": [{**job, "owner": owner}]})
        assert (answer.status, answer.json["key"]) == (422, "jobs[0].owner")


async def test_a_set_may_leave_other_jobs_alone(admin):
    """Without pruning it only adds and changes."""
    job = {"task": "nothing", "schedule": "@every 1h"}
    await admin.put("/v1/sets/cmdb", {"jobs": [{"id": "a", **job}]})
    found = (await admin.put("/v1/sets/cmdb?prune=0", {"jobs": [{"id": "b", **job}]})).json
    assert (found["added"], found["removed"]) == (["b"], [])
