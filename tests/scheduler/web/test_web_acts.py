"""Acts on a job over HTTP: run, pause, resume, skip, a next start by hand; its records and its next starts."""

from datetime import UTC, datetime, timedelta

import anyio
import pytest

from asgi import Caller
from scheduler import JobState, Scheduler, to_json
from scheduler.stores.memory import MemoryStore
from scheduler.web import Access, app


@pytest.fixture
def job(s):
    """A job that code has added."""
    return s.add("nothing", "@every 1h", id="a")


def in_an_hour():
    """Return an instant to come."""
    return to_json(datetime.now(UTC) + timedelta(hours=1))


async def test_a_run_is_accepted_and_happens(s, job, operator):
    """The answer does not wait for its end."""
    answer = await operator.post("/v1/jobs/a/run")
    assert (answer.status, answer.json["job_id"], answer.json["after"]) == (202, "a", None)
    assert answer.json["due"].endswith("Z")
    await job.run_now()
    assert job.statistics().runs >= 1


async def test_a_run_that_does_not_begin_says_why(s, operator):
    """The overlap rule leaves it out while another one goes on."""
    goes_on = anyio.Event()

    async def wait():
        await goes_on.wait()

    s.register("wait", wait)
    job = s.add("wait", "@every 1h", id="a")
    first = job.run_now()
    while job.state is not JobState.RUNNING:  # noqa: ASYNC110 - a run begins with its commit
        await anyio.sleep(0.001)
    answer = await operator.post("/v1/jobs/a/run")
    goes_on.set()
    await first
    assert (answer.status, answer.json["reason"]) == (409, "overlap")


async def test_a_pause_has_a_reason_and_an_end(s, job, operator):
    """Both are shown until it is resumed."""
    until = in_an_hour()
    assert (await operator.post("/v1/jobs/a/pause", {"reason": "new disks", "until": until})).status == 204
    found = (await operator.get("/v1/jobs/a")).json
    assert found["state"] == "disabled"
    assert [(each["reason"], each["until"]) for each in found["pauses"]] == [("new disks", until)]
    assert (await operator.post("/v1/jobs/a/resume")).status == 204
    found = (await operator.get("/v1/jobs/a")).json
    assert (found["state"], found["pauses"]) == ("scheduled", [])


async def test_a_pause_needs_no_body(s, job, operator):
    """It goes on until it is resumed."""
    assert (await operator.post("/v1/jobs/a/pause")).status == 204
    assert job.state is JobState.DISABLED


@pytest.mark.parametrize(
    ("act", "body", "key"),
    [
        ("pause", {"until": "2001-01-01T00:00:00Z"}, "until"),
        ("pause", {"until": "tomorrow"}, "until"),
        ("pause", {"until": "2051-01-01T00:00:00"}, "until"),
        ("pause", {"until": 12}, "until"),
        ("pause", {"reason": 12}, "reason"),
        ("pause", {"reasons": "x"}, "reasons"),
        ("set-next-start", {}, "at"),
        ("set-next-start", {"at": None}, "at"),
        ("set-next-start", {"at": "9999-12-31T23:59:59-14:00"}, "at"),
        ("set-next-start", {"at": "0001-01-01T00:00:00+14:00"}, "at"),
        ("run", {"now": True}, "now"),
        ("resume", {"x": 1}, "x"),
        ("skip", [], None),
    ],
)
async def test_what_is_wrong_with_an_act_is_told(act, body, key, s, job, operator):
    """The job stays as it is."""
    before = job.next_start
    answer = await operator.post(f"/v1/jobs/a/{act}", body)
    assert (answer.status, answer.json.get("key")) == (422, key)
    assert (job.state, job.next_start) == (JobState.SCHEDULED, before)


async def test_a_skipped_start_is_left_out(s, job, operator):
    """The next one comes in its place."""
    first, second = job.next_starts(2)
    assert (await operator.post("/v1/jobs/a/skip")).status == 204
    assert job.next_start == second > first


async def test_a_next_start_by_hand(s, job, operator):
    """It replaces the regular one."""
    at = in_an_hour()
    assert (await operator.post("/v1/jobs/a/set-next-start", {"at": at})).status == 204
    assert to_json(job.next_start) == at


@pytest.mark.parametrize("act", ["run", "pause", "resume", "skip"])
async def test_an_act_on_a_job_that_is_not_there(act, operator):
    """404 says so."""
    assert (await operator.post(f"/v1/jobs/none/{act}")).status == 404


async def test_next_starts_are_listed(s, job, reader):
    """As many as are wanted."""
    answer = await reader.get("/v1/jobs/a/next?count=3")
    assert answer.json == {"job_id": "a", "starts": to_json(job.next_starts(3))}
    assert (await reader.get("/v1/jobs/a/next?count=101")).status == 422
    assert (await reader.get("/v1/jobs/none/next")).status == 404


async def test_records_come_in_pages(s, job, has_store, operator):
    """The latest first, each once."""
    for _ in range(5):
        await job.run_now()
    await s.flush()
    found, target = [], "?limit=2"
    while target is not None:
        page = (await operator.get(f"/v1/jobs/a/runs{target}")).json
        found += page["runs"]
        target = page["next"]
    assert [each["outcome"] for each in found] == (["succeeded"] * 5 if has_store else [])
    dues = [each["due"] for each in found]
    assert dues == sorted(set(dues), reverse=True)


async def test_records_of_one_instant_stay_together():
    """Parts of a job are due together; a page does not end between them."""

    class Twins(Scheduler):
        async def history(self, job_id=None, *, limit=100, before=None):
            dues = [datetime(2026, 1, day, tzinfo=UTC) for day in (4, 3, 3, 3, 2)]
            found = [each for each in dues if before is None or each < before][:limit]
            return [Due(each) for each in found]

    class Due:
        def __init__(self, due):
            self.due = due

    from scheduler.web._resources.jobs import _whole_instants  # noqa: PLC0415 - the pages of a store with such records

    class Ask:
        id = "a"
        s = Twins()

    pages, before, has_more = [], None, True
    while has_more:
        page, has_more = await _whole_instants(Ask, 2, before)
        before = page[-1].due
        pages.append([each.due.day for each in page])
    assert pages == [[4], [3, 3, 3, 2]]


async def test_a_store_that_does_not_answer_is_told(monkeypatch):
    """The change holds here, and the client knows that it is not durable yet."""
    from scheduler.web._resources import writes  # noqa: PLC0415 - whose patience is too long for a test

    monkeypatch.setattr(writes, "WITHIN_S", 0.01)
    async with Scheduler(store=MemoryStore()) as s:
        s.add(print, "@every 1h", id="a", durable=False)
        flushed = anyio.Event()
        monkeypatch.setattr(s, "flush", flushed.wait)
        answer = await Caller(app(s, access=lambda _: Access("ann", "admin"))).post("/v1/jobs/a/pause")
        assert answer.status == 503
        assert "the store does not answer" in answer.json["detail"]
        assert s.get("a").state is JobState.DISABLED
