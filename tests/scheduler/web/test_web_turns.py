"""Writes that take long: others wait their turn, none waits for ever, and the log says what has become of each."""

import logging
from threading import Event, get_ident

import anyio
import pytest
from anyio.to_thread import run_sync

from asgi import Caller
from kit import PATIENCE, nothing
from scheduler import Scheduler
from scheduler.web import Access, app
from scheduler.web._resources import writes

HOURLY = {"task": "nothing", "schedule": "@every 1h"}


@pytest.fixture
def store():
    """Changes that are made in memory."""
    return


@pytest.fixture
def logged(caplog):
    """The lines in the log of changes."""
    caplog.set_level(logging.INFO, "scheduler.web.changes")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "scheduler.web.changes"]


@pytest.fixture
def hold(s, monkeypatch):
    """Hold up every change of the scheduler until it is set, or the test ends."""
    go = Event()
    sync = s.sync

    def held(*args, **kwargs):
        go.wait(PATIENCE)
        return sync(*args, **kwargs)

    monkeypatch.setattr(s, "sync", held)
    yield go
    go.set()


async def test_a_change_that_waits_for_others_is_given_up(s, admin, hold, monkeypatch, logged):
    """Its wait counts for its bound, and it holds no thread that the program needs."""
    monkeypatch.setattr(writes, "WITHIN_S", 0.2)
    answers, all_others = {}, anyio.Event()

    async def put(number):
        answers[number] = await admin.put(f"/v1/jobs/job-{number}", HOURLY)
        if len(answers) == 59:
            all_others.set()

    async with anyio.create_task_group() as group:
        group.start_soon(put, 0)
        await anyio.sleep(0.05)
        for number in range(1, 60):
            group.start_soon(put, number)
        await anyio.sleep(0.05)
        with anyio.fail_after(PATIENCE):
            await run_sync(lambda: None)
            await all_others.wait()
        assert {answer.status for answer in answers.values()} == {503}
        assert "nothing has changed" in answers[1].json["detail"]
        hold.set()
    assert answers[0].status in {201, 503}
    assert [job.id for job in s.jobs()] == ["job-0"]
    assert ": refused: other changes have not ended for 0.2 s: nothing has changed" in logged()[0]


async def test_a_change_on_another_loop_is_waited_for_within_the_bound(s, admin, hold, monkeypatch):
    """Then it is given up, and its thread with it."""
    monkeypatch.setattr(writes, "WITHIN_S", 0.2)

    async def put(id):
        return await admin.put(f"/v1/jobs/{id}", HOURLY)

    async with anyio.create_task_group() as group:
        group.start_soon(put, "a")
        await anyio.sleep(0.05)
        with anyio.fail_after(PATIENCE):
            answer = await run_sync(anyio.run, put, "b")
        assert answer.status == 503
        hold.set()
    assert "b" not in s


async def test_one_scheduler_does_not_wait_for_another(admin, hold):
    """Each has its own turns."""
    async with Scheduler() as other, anyio.create_task_group() as group:
        other.register("nothing", nothing)
        group.start_soon(admin.put, "/v1/jobs/a", HOURLY)
        await anyio.sleep(0.05)
        beside = Caller(app(other, access=lambda _: Access("ann", "admin")))
        with anyio.fail_after(PATIENCE):
            assert (await beside.put("/v1/jobs/a", HOURLY)).status == 201
        hold.set()


async def test_a_change_whose_request_is_cancelled_is_logged_as_made(s, admin, hold, logged):
    """It has been made."""
    async with anyio.create_task_group() as group:
        group.start_soon(admin.put, "/v1/jobs/a", HOURLY)
        await anyio.sleep(0.05)
        group.cancel_scope.cancel()
        hold.set()
    assert "a" in s
    assert logged() == ["put by 'ann': id 'a': made, not durable, cancelled"]


async def test_a_request_that_is_cancelled_before_its_change(s, admin, hold, logged):
    """It waits for another, and leaves."""
    async with anyio.create_task_group() as group:
        group.start_soon(admin.put, "/v1/jobs/a", HOURLY)
        await anyio.sleep(0.05)
        with anyio.move_on_after(0.05):
            await admin.put("/v1/jobs/b", HOURLY)
        hold.set()
    assert logged() == ["put by 'ann': id 'b': not made, cancelled", "put by 'ann': id 'a': 201"]
    assert "b" not in s


@pytest.mark.parametrize(
    ("method", "target"), [("PUT", "/v1/jobs/b"), ("POST", "/v1/jobs/a/pause"), ("PUT", "/v1/sets/red")]
)
async def test_a_change_that_is_not_durable_in_time_is_logged_as_made(method, target, s, admin, monkeypatch, logged):
    """It is no refusal: the change holds."""
    s.add("nothing", "@every 1h", id="a")
    monkeypatch.setattr(writes, "WITHIN_S", 0.2)
    monkeypatch.setattr(s, "flush", anyio.sleep_forever)
    bodies = {"/v1/jobs/b": HOURLY, "/v1/sets/red": {"jobs": []}}
    assert (await admin(method, target, bodies.get(target))).status == 503
    assert ": made, not durable: the change is not durable after 0.2 s" in logged()[0]


async def test_a_defect_in_a_change_is_logged_as_unknown(s, admin, monkeypatch, logged):
    """It may have happened in part."""

    def broken(*_, **__):
        raise RuntimeError("x")

    monkeypatch.setattr(s, "sync", broken)
    assert (await admin.put("/v1/jobs/a", HOURLY)).status == 500
    assert logged() == ["put by 'ann': id 'a': unknown, failed"]


async def test_a_set_that_is_only_asked_for_changes_nothing_in_the_log(s, admin, hold, logged):
    """A client that leaves has made no change."""
    async with anyio.create_task_group() as group:
        group.start_soon(admin.put, "/v1/sets/red?dry_run=1", {"jobs": []})
        await anyio.sleep(0.05)
        group.cancel_scope.cancel()
        hold.set()
    assert logged() in (["put-set by 'ann': owner 'red': not made, cancelled"], ["put-set by 'ann': owner 'red': 200"])


async def test_a_definition_is_read_and_shown_aside(s, admin, monkeypatch):
    """A large one would hold up the event loop."""
    from scheduler.web._resources import jobs  # noqa: PLC0415 - whose threads are looked at

    here, threads = get_ident(), []

    def noting(name):
        of = getattr(jobs, name)

        def noted(*args):
            threads.append(get_ident())
            return of(*args)

        monkeypatch.setattr(jobs, name, noted)

    for name in ("from_json", "job_view", "tag_of", "etag_of"):
        noting(name)
    assert (await admin.put("/v1/jobs/a", HOURLY)).status == 201
    assert (await admin.patch("/v1/jobs/a", {"timeout": 1})).status == 200
    assert (await admin.get("/v1/jobs/a")).status == 200
    assert len(threads) == 10
    assert here not in threads


async def test_a_log_line_cannot_be_forged(s, admin, logged):
    """Whatever a query or a body says is on one line."""
    s.add("nothing", "@every 1h", id="a")
    forged = "x%0Aput%20by%20%27root%27:%20id%20%27a%27:%20200"
    for answer in (
        await admin.post(f"/v1/jobs/a/run?{forged}=1&{forged}=2"),
        await admin.post(f"/v1/jobs/a/run?{forged}={'y' * 2000}"),
        await admin.put(f"/v1/jobs/a?owner=x&owner={forged}", HOURLY),
        await admin.post("/v1/jobs/a/pause", {"x\nput by": 1}),
        await admin.put("/v1/jobs/b", {**HOURLY, "x\nput by": 1}),
    ):
        assert answer.status == 422
    lines = logged()
    assert len(lines) == 5
    assert all(line.isprintable() for line in lines)


async def test_a_job_that_is_over_before_the_answer_was_created(s, admin, monkeypatch):
    """201, with what it was: no 404 for a job that has run."""
    flush = s.flush

    async def and_gone():
        s.get("a").remove()
        await flush()

    monkeypatch.setattr(s, "flush", and_gone)
    answer = await admin.put("/v1/jobs/a", HOURLY)
    assert (answer.status, answer.json["state"], answer.json["spec"]["task"]) == (201, "gone", "nothing")
    assert "etag" in answer.headers
    sync = s.sync

    def and_over(*args, **kwargs):
        synced = sync(*args, **kwargs)
        s.get("b").remove()
        return synced

    monkeypatch.setattr(s, "flush", flush)
    monkeypatch.setattr(s, "sync", and_over)
    answer = await admin.put("/v1/jobs/b", HOURLY)
    assert (answer.status, answer.json["state"], answer.json["id"]) == (201, "gone", "b")
