"""One job over HTTP: created, replaced, changed, removed and read, with conditions and owners."""

import anyio
import pytest
from anyio.to_thread import run_sync

from kit import nothing
from scheduler import JobSpec, Scheduler, from_json, to_json

HOURLY = {"task": "nothing", "schedule": "@every 1h"}


async def test_put_creates_then_leaves_then_replaces(s, admin):
    """201, 204 and 200 tell what has happened."""
    body = {**HOURLY, "timeout": "10s", "tags": ["x"]}
    created = await admin.put("/v1/jobs/a", body)
    assert (created.status, created.headers["location"]) == (201, "a")
    assert created.json["spec"]["timeout"] == 10
    again = await admin.put("/v1/jobs/a", body)
    assert (again.status, again.body) == (204, b"")
    assert again.headers["etag"] == created.headers["etag"]
    replaced = await admin.put("/v1/jobs/a", {**HOURLY, "timeout": 20})
    assert replaced.status == 200
    assert replaced.json["spec"]["timeout"] == 20
    assert replaced.json["spec"]["tags"] == []
    assert replaced.headers["etag"] != created.headers["etag"]
    assert s.get("a").owner == "api"


async def test_the_same_body_leads_to_the_same_job(s, admin):
    """However often it comes, and in whatever order of keys."""
    body = {**HOURLY, "args": [1, {"b": 2, "a": None}], "needs": {"http": 1}, "retry": None}
    await admin.put("/v1/jobs/a", body)
    before = s.get("a").spec
    await admin.put("/v1/jobs/a", dict(reversed(body.items())))
    assert s.get("a").spec == before
    assert from_json(JobSpec, (await admin.get("/v1/jobs/a")).json["spec"]) == before


async def test_what_is_read_can_be_put(s, admin):
    """A definition that was read is the body of the next put."""
    await admin.put("/v1/jobs/a", HOURLY)
    spec = (await admin.get("/v1/jobs/a")).json["spec"]
    assert (await admin.put("/v1/jobs/a", spec)).status == 204
    assert (await admin.put("/v1/jobs/a", spec | {"priority": 5})).status == 200
    assert s.get("a").priority == 5


async def test_a_replaced_job_keeps_its_place_and_its_counts(s, admin):
    """A put of a new timeout neither causes nor loses a run."""
    await admin.put("/v1/jobs/a", HOURLY)
    await s.get("a").run_now()
    start = s.get("a").next_start
    await admin.put("/v1/jobs/a", {**HOURLY, "timeout": 20})
    assert (s.get("a").next_start, s.get("a").statistics().runs) == (start, 1)


async def test_a_patch_changes_what_it_names(s, admin):
    """A null takes a key back to its default."""
    await admin.put("/v1/jobs/a", {**HOURLY, "timeout": 10, "kwargs": {"x": 1, "y": {"z": 2}}})
    answer = await admin.patch(
        "/v1/jobs/a", {"timeout": None, "kwargs": {"y": {"w": 3}}}, content_type="application/merge-patch+json"
    )
    assert answer.status == 200
    assert answer.json["spec"]["timeout"] is None
    assert answer.json["spec"]["kwargs"] == {"x": 1, "y": {"z": 2, "w": 3}}
    assert (await admin.patch("/v1/jobs/a", {"timeout": None})).status == 204
    assert (await admin.patch("/v1/jobs/b", {"timeout": None})).status == 404


async def test_a_job_is_removed_once(s, admin):
    """The second time there is none."""
    await admin.put("/v1/jobs/a", HOURLY)
    gone = await admin.delete("/v1/jobs/a")
    assert (gone.status, gone.body) == (204, b"")
    assert "a" not in s
    again = await admin.delete("/v1/jobs/a")
    assert (again.status, again.headers["content-type"]) == (404, "application/problem+json")
    assert again.json["detail"] == "there is no job 'a': it was never added, was removed, or its schedule has ended"


async def test_if_none_match_creates_only(s, admin):
    """Two clients that create the same id do not overwrite each other."""
    assert (await admin.put("/v1/jobs/a", HOURLY, if_none_match="*")).status == 201
    second = await admin.put("/v1/jobs/a", {**HOURLY, "timeout": 1}, if_none_match="*")
    assert second.status == 412
    assert s.get("a").timeout is None


async def test_if_match_guards_a_change(s, admin):
    """Who has read an older definition changes nothing."""
    tag = (await admin.put("/v1/jobs/a", HOURLY)).headers["etag"]
    assert (await admin.put("/v1/jobs/a", {**HOURLY, "timeout": 1}, if_match=tag)).status == 200
    for answer in (
        await admin.put("/v1/jobs/a", HOURLY, if_match=tag),
        await admin.patch("/v1/jobs/a", {"timeout": 5}, if_match=tag),
        await admin.delete("/v1/jobs/a", if_match=tag),
        await admin.put("/v1/jobs/b", HOURLY, if_match="*"),
        await admin.put("/v1/jobs/b", HOURLY, if_match=tag),
    ):
        assert answer.status == 412
    now = (await admin.get("/v1/jobs/a")).headers["etag"]
    assert s.get("a").timeout.total_seconds() == 1
    assert (await admin.delete("/v1/jobs/a", if_match=f'"x", {now}')).status == 204


async def test_a_run_leaves_the_tag(s, admin):
    """It names the definition."""
    tag = (await admin.put("/v1/jobs/a", HOURLY)).headers["etag"]
    await s.get("a").run_now()
    assert (await admin.get("/v1/jobs/a")).headers["etag"] == tag


async def test_the_api_does_not_edit_what_code_owns(s, admin, operator):
    """409 names the owner; but it can be run, paused, resumed, skipped and given a next start."""
    s.add("nothing", "@every 1h", id="a")
    for answer in (
        await admin.put("/v1/jobs/a", HOURLY),
        await admin.patch("/v1/jobs/a", {"timeout": 1}),
        await admin.delete("/v1/jobs/a"),
    ):
        assert (answer.status, answer.json["owner"]) == (409, "code")
        assert "belongs to 'code', not to 'api'" in answer.json["detail"]
    for act, status in (("pause", 204), ("resume", 204), ("skip", 204), ("run", 202)):
        assert (await operator.post(f"/v1/jobs/a/{act}")).status == status
    at = {"at": "2100-01-01T00:00:00Z"}
    assert (await operator.post("/v1/jobs/a/set-next-start", at)).status == 204


async def test_each_owner_has_its_own_jobs(s, admin):
    """Whose they are is said in the query or in the body."""
    await admin.put("/v1/jobs/a?owner=red", HOURLY)
    await admin.put("/v1/jobs/b", {**HOURLY, "owner": "red"})
    assert {s.get("a").owner, s.get("b").owner} == {"red"}
    for answer in (
        await admin.put("/v1/jobs/a?owner=blue", HOURLY),
        await admin.patch("/v1/jobs/a?owner=blue", {"timeout": 1}),
        await admin.delete("/v1/jobs/a?owner=blue"),
        await admin.delete("/v1/jobs/a"),
    ):
        assert (answer.status, answer.json["owner"]) == (409, "red")
    assert (await admin.put("/v1/jobs/a?owner=blue", {**HOURLY, "owner": "red"})).json["key"] == "owner"
    assert (await admin.delete("/v1/jobs/a?owner=red")).status == 204


@pytest.mark.parametrize("owner", ["code", "", "agent.toml:12", "a/b", "-x", "x" * 129, "ä"])
async def test_an_owner_that_no_client_can_be(owner, admin):
    """Code and files own what they say."""
    answer = await admin.put("/v1/jobs/a", {**HOURLY, "owner": owner})
    assert (answer.status, answer.json["key"]) == (422, "owner")


@pytest.mark.parametrize(
    ("body", "key", "words"),
    [
        ({"task": "nothing", "schedule": "never"}, "schedule", "never"),
        ({"task": "nothing"}, "schedule", "a job must have one"),
        ({"schedule": "@every 1h"}, "task", "a job must have one"),
        ({"task": "nothin", "schedule": "@every 1h"}, "task", "did you mean 'nothing'?"),
        ({"task": "os.system", "schedule": "@every 1h"}, "task", "there is no task 'os.system'"),
        ({**HOURLY, "timeout": -1}, "timeout", "timeout"),
        ({**HOURLY, "overlap": "sometimes"}, "overlap", "overlap"),
        ({**HOURLY, "needs": {"http": 0}}, "needs", "needs"),
        ({**HOURLY, "needs": "no-such-limit"}, "needs", "no-such-limit"),
        ({**HOURLY, "retry": {"growth": "linear", "base": "x"}}, "retry.base", "retry.base"),
        ({**HOURLY, "id": "b"}, "id", "the id in the path"),
        ({**HOURLY, "colour": "red"}, "colour", "colour"),
        ({**HOURLY, "args": "x"}, "args", "args"),
    ],
)
async def test_what_is_wrong_is_refused_in_the_words_of_add(body, key, words, s, admin):
    """The answer names the key."""
    answer = await admin.put("/v1/jobs/a", body)
    assert (answer.status, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json.get("key") == key
    assert words in answer.json["detail"]
    assert (answer.json["type"], answer.json["title"]) == ("urn:timerqueue:problem:invalid", "Unprocessable Entity")
    assert "a" not in s


async def test_a_change_is_durable_when_it_is_answered(tmp_path):
    """The next process finds it, though this one dies at once."""
    from asgi import Caller  # noqa: PLC0415 - of this test only
    from scheduler.stores.sqlite import SQLiteStore  # noqa: PLC0415
    from scheduler.web import Access, app  # noqa: PLC0415

    url = f"{tmp_path}/jobs.db"
    async with Scheduler(store=SQLiteStore(url)) as s:
        s.register("nothing", nothing)
        admin = Caller(app(s, access=lambda _: Access("ann", "admin")))
        assert (await admin.put("/v1/jobs/a", HOURLY)).status == 201
        assert s.statistics().store.unsaved == 0
        assert (await admin.post("/v1/jobs/a/pause", {"reason": "x"})).status == 204
        assert s.statistics().store.unsaved == 0
        spec = to_json(s.get("a").spec)
    s = Scheduler(store=SQLiteStore(url))
    s.register("nothing", nothing)
    async with s:
        assert to_json(s.get("a").spec) == spec
        assert s.get("a").error == "x"


async def test_a_scheduler_that_does_not_run_changes_nothing(store, admin, s):
    """503 says why, and that a client may ask again."""
    s.stop()
    answer = await admin.put("/v1/jobs/a", HOURLY)
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert "not running" in answer.json["detail"]


async def test_a_reader_sees_no_argument_no_result_and_no_error(s, admin, reader):
    """On no route a canary that stands in them."""

    async def broken(*_, **__):
        raise ValueError("canary")

    s.register("broken", broken)
    body = {"task": "broken", "schedule": "@every 1h", "args": ["canary"], "kwargs": {"k": ["canary"]}}
    await admin.put("/v1/jobs/a", body)
    await s.get("a").run_now()
    for target in ("/v1/jobs/a", "/v1/jobs", "/v1/jobs/a/runs", "/v1/jobs/a/next", "/v1/summary", "/v1/limits"):
        answer = await reader.get(target)
        assert answer.status == 200
        assert b"canary" not in answer.body, target
        assert "etag" not in answer.headers
    assert b"canary" in (await admin.get("/v1/jobs/a")).body


@pytest.mark.parametrize("is_elsewhere", [False, True])
async def test_of_many_who_have_read_the_same_one_changes_it(is_elsewhere, s, admin):
    """Also on the event loop of another thread, where a change is carried out a little later."""

    async def race():
        tag = (await admin.put("/v1/jobs/a", HOURLY)).headers["etag"]
        answers = []

        async def change(number):
            answers.append(await admin.put("/v1/jobs/a", {**HOURLY, "timeout": number}, if_match=tag))

        async with anyio.create_task_group() as group:
            for number in range(1, 11):
                group.start_soon(change, number)
        won = [answer for answer in answers if answer.status == 200]
        assert sorted(answer.status for answer in answers) == [200, *[412] * 9]
        assert (await admin.get("/v1/jobs/a")).json["spec"]["timeout"] == won[0].json["spec"]["timeout"]

    await (run_sync(anyio.run, race) if is_elsewhere else race())


async def test_of_many_who_create_one_does(s, admin):
    """The others are told that it is there."""
    answers = []

    async def create(number):
        answers.append(await admin.put("/v1/jobs/a", {**HOURLY, "timeout": number}, if_none_match="*"))

    async with anyio.create_task_group() as group:
        for number in range(1, 11):
            group.start_soon(create, number)
    assert sorted(answer.status for answer in answers) == [201, *[412] * 9]
