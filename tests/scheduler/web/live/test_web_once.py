"""Idempotency-Key: who asks again gets the same answer, and nothing happens twice."""

from http import HTTPStatus

import anyio
import pytest
from anyio import wait_all_tasks_blocked

from asgi import Caller
from scheduler import JobState
from scheduler.web import Access, Answer, Problem
from scheduler.web._app import App
from scheduler.web._once import MOST, MOST_OF_CALLER, Once
from scheduler.web._protocol import Trace
from timerqueue.testing import ManualClock


@pytest.fixture
def store():
    """Keys do not depend on a store."""
    return


@pytest.fixture
def job(s):
    """A job that counts its runs."""
    runs = []

    async def count():
        runs.append(1)

    job = s.add(count, "@every 1h", id="a")
    return job, runs


@pytest.fixture
def clock():
    """The clock of the app."""
    return ManualClock()


@pytest.fixture
def own(s, clock):
    """An app with that clock."""

    def access(scope):
        return Access(dict(scope["headers"]).get(b"authorization", b"otto").decode(), "operate")

    return App(s, access, clock=clock)


async def test_the_same_key_runs_a_job_once(s, job, operator):
    """The answer says that it is an old one."""
    first = await operator.post("/v1/jobs/a/run", idempotency_key="k")
    again = await operator.post("/v1/jobs/a/run", idempotency_key="k")
    assert (first.status, first.json) == (again.status, again.json)
    assert (first.status, first.json["job_id"]) == (202, "a")
    assert ("idempotency-replayed" in first.headers, again.headers["idempotency-replayed"]) == (False, "true")
    other = await operator.post("/v1/jobs/a/run", idempotency_key="other")
    assert other.status == 202
    handle, runs = job
    await handle.run_now()
    assert len(runs) <= 3
    assert [each.act for each in await s.changes(actor="otto")] == ["run", "run"]


async def test_another_request_with_that_key_is_refused(s, job, operator):
    """Another body, another path: it cannot be the same act."""
    assert (await operator.post("/v1/jobs/a/pause", {"reason": "x"}, idempotency_key="k")).status == 204
    others = (("a/pause", {"reason": "y"}), ("a/resume", None), ("b/pause", {"reason": "x"}))
    for target, body in others:
        answer = await operator.post(f"/v1/jobs/{target}", body, idempotency_key="k")
        assert (answer.status, answer.json["type"]) == (422, "urn:timerqueue:problem:key-reused")
    assert s.get("a").state is JobState.DISABLED
    assert (await operator.post("/v1/jobs/a/pause", {"reason": "x"}, idempotency_key="k")).status == 204


async def test_callers_do_not_see_the_keys_of_others(s, job, operator, admin):
    """The same key of another caller is another one."""
    await operator.post("/v1/jobs/a/pause", idempotency_key="k")
    answer = await admin.post("/v1/jobs/a/resume", idempotency_key="k")
    assert (answer.status, "idempotency-replayed" in answer.headers) == (204, False)


async def test_a_caller_without_the_scope_gets_no_old_answer(s, job, operator, api):
    """Access is asked each time."""
    await operator.post("/v1/jobs/a/pause", idempotency_key="k")
    reduced = Caller(api, headers={"authorization": "otto:read"})
    assert (await reduced.post("/v1/jobs/a/pause", idempotency_key="k")).status == 403


async def test_a_request_that_changed_nothing_may_come_again(s, operator):
    """With its key: the job may be there by then."""
    assert (await operator.post("/v1/jobs/a/pause", idempotency_key="k")).status == 404
    s.add("nothing", "@every 1h", id="a")
    assert (await operator.post("/v1/jobs/a/pause", idempotency_key="k")).status == 204


async def test_a_run_that_did_not_begin_is_answered_so_again(s, operator):
    """The act was made, and its answer is a refusal."""
    goes_on, begun = anyio.Event(), anyio.Event()

    async def wait():
        begun.set()
        await goes_on.wait()

    job = s.add(wait, "@every 1h", id="a")
    first = job.run_now()
    await begun.wait()
    refused = await operator.post("/v1/jobs/a/run", idempotency_key="k")
    goes_on.set()
    await first
    again = await operator.post("/v1/jobs/a/run", idempotency_key="k")
    assert (refused.status, refused.json) == (again.status, again.json)
    assert (refused.status, again.headers["content-type"]) == (409, "application/problem+json")


async def test_a_key_holds_for_a_day(s, job, own, clock):
    """Then it is a new one."""
    caller = Caller(own)
    await caller.post("/v1/jobs/a/pause", idempotency_key="k")
    await clock.travel(86_000)
    assert "idempotency-replayed" in (await caller.post("/v1/jobs/a/pause", idempotency_key="k")).headers
    await clock.travel(1_000)
    assert "idempotency-replayed" not in (await caller.post("/v1/jobs/a/pause", idempotency_key="k")).headers


async def test_thousands_of_keys_are_bounded(s, job, own):
    """Who takes many loses the oldest of its own."""
    caller, other = Caller(own), Caller(own, headers={"authorization": "ann"})
    await other.post("/v1/jobs/a/pause", idempotency_key="k")
    for number in range(MOST_OF_CALLER + 5):
        await caller.post("/v1/jobs/a/resume", idempotency_key=f"{number}")
    assert len(own._once) == MOST_OF_CALLER + 1 < MOST
    assert "idempotency-replayed" in (await other.post("/v1/jobs/a/pause", idempotency_key="k")).headers
    assert "idempotency-replayed" not in (await caller.post("/v1/jobs/a/resume", idempotency_key="0")).headers
    assert sum(own._once._of_caller.values()) == len(own._once)


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "a\x7fb"])
async def test_a_key_is_a_short_word(key, s, job, operator):
    """Nothing else is kept."""
    answer = await operator.post("/v1/jobs/a/pause", idempotency_key=key)
    assert (answer.status, answer.json["key"]) == (422, "Idempotency-Key")
    assert s.get("a").state is JobState.SCHEDULED


async def test_a_second_request_while_the_first_goes_on_is_refused(s, job, own):
    """It may ask again when that one has ended."""
    answers = []

    async def ask(caller):
        answers.append((await caller.post("/v1/jobs/a/run", idempotency_key="k")).status)

    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(ask, Caller(own))
    assert sorted(answers) in ([202, 202], [202, 409])
    assert len(await s.changes()) == 1


async def test_an_act_that_goes_on_keeps_its_key(clock):
    """However many others come meanwhile: the same key would act again. Only if all go on, no other key is taken."""
    once, goes_on, begun = Once(clock), anyio.Event(), []

    async def slow():
        begun.append(1)
        await goes_on.wait()
        return Answer(HTTPStatus.OK)

    async def quick():
        return Answer(HTTPStatus.OK)

    async with anyio.create_task_group() as group:
        group.start_soon(once.answer, "ann", "0", b"", slow, Trace())
        await wait_all_tasks_blocked()
        for number in range(1, MOST_OF_CALLER + 5):
            await once.answer("ann", f"{number}", b"", quick, Trace())
        with pytest.raises(Problem, match="is still going on"):
            await once.answer("ann", "0", b"", slow, Trace())
        assert len(begun) == 1
        for number in range(1, MOST_OF_CALLER):
            group.start_soon(once.answer, "ann", f"slow {number}", b"", slow, Trace())
        await wait_all_tasks_blocked()
        with pytest.raises(Problem, match="nothing has changed") as refused:
            await once.answer("ann", "another", b"", slow, Trace())
        assert (refused.value.status, len(begun), len(once)) == (503, MOST_OF_CALLER, MOST_OF_CALLER)
        goes_on.set()
