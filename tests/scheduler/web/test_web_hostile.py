"""Hostile requests: whatever one does ends that request alone, and the jobs go on."""

import json
from urllib.parse import quote

import anyio
import pytest
from hypothesis import given, settings, strategies as st

from asgi import Caller
from kit import PATIENCE, examples, nothing
from scheduler import Scheduler
from scheduler.stores.memory import MemoryStore
from scheduler.web import Access, app

HOURLY = {"task": "nothing", "schedule": "@every 1h"}


@pytest.fixture
def store():
    """What is refused before it comes to a store."""
    return


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"task":"nothing","schedule":"@every 1h","args":' + b"[" * 101 + b"]" * 101 + b"}",
        b'{"task":"nothing","schedule":"@every 1h","args":[' + b"1," * 100_001 + b"1]}",
        b'{"args":[' + b"9" * 100_000 + b"]}",
        b'{"args":[1e999]}',
        b'{"args":[NaN]}',
        b'{"args":["\\u0000"]}',
        b'{"args":["\\ud800"]}',
        b'{"task":"a","task":"b"}',
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"{",
        b"nothing",
        b" ",
        b"{} {}",
    ],
)
async def test_a_body_that_is_not_our_json(body, s, admin):
    """Too deep, too many, too large, not finite, not Unicode, or not JSON at all."""
    answer = await admin.put("/v1/jobs/a", body)
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert "a" not in s


@pytest.mark.parametrize("body", [b"1", b"null", b"[]", b'"x"', b"true"])
async def test_a_body_that_is_no_object(body, s, admin):
    """On each route that takes one."""
    s.add("nothing", "@every 1h", id="a")
    for method, target in (
        ("PUT", "/v1/jobs/a"),
        ("PATCH", "/v1/jobs/a"),
        ("POST", "/v1/jobs/a/pause"),
        ("POST", "/v1/jobs/a/run"),
        ("PUT", "/v1/sets/me"),
        ("PATCH", "/v1/limits"),
    ):
        assert (await admin(method, target, body)).status == 422, target


async def test_a_body_is_bounded(s, admin):
    """By what it says of its length, and by what comes."""
    assert (await admin.put("/v1/jobs/a", b"{}", content_length=str(1024 * 1024 + 1))).status == 413
    assert (await admin.put("/v1/jobs/a", b"{}", content_length="9" * 5_000)).status == 413
    taken = []

    def pieces():
        for _ in range(1_000):
            taken.append(1)
            yield b" " * 64 * 1024

    class Endless(list):
        def __init__(self):
            self.pieces = pieces()

        def __iter__(self):
            return iter(next(self.pieces) for _ in range(40))

    answer = await admin("PUT", "/v1/jobs/a", chunks=Endless(), content_type="application/json")
    assert answer.status == 413


async def test_a_body_that_never_ends_is_given_up(s, monkeypatch):
    """A slow sender does not hold the request for ever."""
    from scheduler.web._protocol import request  # noqa: PLC0415 - whose patience is too long for a test

    monkeypatch.setattr(request, "WITHIN_S", 0.01)
    caller, sent = Caller(app(s, access=lambda _: Access("ann", "admin"))), []

    async def receive():
        await anyio.sleep_forever()

    async def send(message):
        sent.append(message)

    await caller.app(caller.scope("PUT", "/v1/jobs/a", {"content-type": "application/json"}), receive, send)
    assert sent[0]["status"] == 408


async def test_a_client_that_leaves_gets_no_answer(s, admin):
    """And nothing has changed."""
    assert await admin("PUT", "/v1/jobs/a", chunks=[]) is None
    assert s.jobs() == []


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_a_body_of_another_kind(kind, s, admin):
    """A form of another site's page is none of ours."""
    assert (await admin.put("/v1/jobs/a", HOURLY, content_type=kind)).status == 415
    assert (await admin.put("/v1/jobs/a", HOURLY, content_type="Application/JSON; charset=utf-8")).status == 201


@pytest.mark.parametrize(
    "id",
    [
        "a/b",
        "a/run",
        "/",
        "//",
        "a?b",
        "a#b",
        "a b",
        "a%2Fb",
        "ä",
        "\u202egpj",
        "👩‍👩‍👧",
        "a\nb",
        '"',
        "'",
        "\\",
        "-",
    ],
)
async def test_an_id_may_hold_anything(id, s, admin, operator):
    """Slashes and all, when it is written as one part of the path."""
    target = f"/v1/jobs/{quote(id, safe='')}"
    created = await admin.put(target, HOURLY)
    assert (created.status, created.json["id"]) == (201, id)
    assert created.headers["location"] == quote(id, safe="")
    assert [job.id for job in s.jobs()] == [id]
    assert (await operator.post(f"{target}/pause")).status == 204
    assert (await admin.get(f"{target}/runs")).status == 200
    assert [each["id"] for each in (await admin.get("/v1/jobs")).json["jobs"]] == [id]
    assert (await admin.delete(target)).status == 204


@pytest.mark.parametrize("id", [".", "..", "x" * 513])
async def test_an_id_that_no_client_can_ask_for(id, s, admin):
    """Clients take dots out of a path, and stores hold no longer ids."""
    answer = await admin.put(f"/v1/jobs/{id.replace('.', '%2E')}", HOURLY)
    assert (answer.status, answer.json["key"]) == (422, "id")
    answer = await admin.put("/v1/sets/me", {"jobs": [{**HOURLY, "id": id}]})
    assert (answer.status, answer.json["key"]) == (422, "jobs[0].id")
    assert s.jobs() == []


@pytest.mark.parametrize("id", ["%00", "a%00b", "%ff", "%ed%a0%80", "%c0%af"])
async def test_an_id_that_is_no_text(id, s, admin):
    """NUL and what is not UTF-8 are in no store."""
    assert (await admin.put(f"/v1/jobs/{id}", HOURLY)).status == 404
    assert s.jobs() == []


@pytest.mark.parametrize(
    "schedule",
    [
        "* " * 100_000,
        " | ".join(["@every 1s"] * 10_000),
        "0 0 1--100000000 * *",
        "0-59/" + "9" * 10_000 + " * * * *",
        "@every " + "9" * 10_000 + "h",
        "@every 1e400s",
        "0 0 30 2 *",
        "\0",
        "@at 9999-12-31T23:59:59Z",
        "",
    ],
)
async def test_a_schedule_that_would_cost_much(schedule, s, admin):
    """It is refused, or cheap."""
    with anyio.fail_after(PATIENCE):
        answer = await admin.put("/v1/jobs/a", {**HOURLY, "schedule": schedule})
        assert answer.status in {201, 400, 422}, answer
        assert (await admin.get("/v1/jobs/a/next?count=100")).status in {200, 404}


async def test_a_rare_schedule_is_foreseen_quickly(s, admin):
    """Each start is a leap day on a Monday, decades apart."""
    await admin.put("/v1/jobs/a", {**HOURLY, "schedule": "0 0 29 2 *"})
    with anyio.fail_after(PATIENCE):
        assert len((await admin.get("/v1/jobs/a/next?count=100")).json["starts"]) > 1


async def test_a_defect_ends_one_request(s, admin, monkeypatch, caplog):
    """The client learns nothing of it; the log does."""

    def broken():
        raise RuntimeError("the secret")

    monkeypatch.setattr(s, "jobs", broken)
    answer = await admin.get("/v1/jobs")
    assert (answer.status, answer.headers["content-type"]) == (500, "application/problem+json")
    assert b"secret" not in answer.body
    assert "the secret" in caplog.text
    monkeypatch.undo()
    assert (await admin.get("/v1/jobs")).status == 200


async def test_what_is_not_http_is_refused(s, api):
    """A WebSocket is closed, and a lifespan is not ours."""
    sent = []

    async def send(message):
        sent.append(message)

    await api({"type": "websocket"}, None, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    with pytest.raises(RuntimeError, match="knows no lifespan"):
        await api({"type": "lifespan"}, None, send)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    "id task schedule args kwargs needs priority timeout retry overlap max_running missed grace catch_up delivery "
    "place where agents apart inline tags name owner until reason at jobs limit limits units".split()
)
TARGETS = st.sampled_from(
    ["/v1/jobs/a", "/v1/jobs/a/pause", "/v1/jobs/a/set-next-start", "/v1/jobs/a/run", "/v1/sets/me", "/v1/limits"]
)
METHODS = st.sampled_from(["PUT", "PATCH", "POST"])


@given(st.lists(st.tuples(METHODS, TARGETS, st.dictionaries(KEYS, JSON | KEYS, max_size=4)), max_size=8))
@settings(max_examples=examples(200))
def test_no_json_is_a_defect(requests):
    """Any body is accepted or refused with a reason, and never a 500."""

    async def play():
        async with Scheduler(limits={"http": 2}) as s:
            s.register("nothing", nothing)
            s.add("nothing", "@every 1h", id="a", owner="api")
            admin = Caller(app(s, access=lambda _: Access("ann", "admin")))
            for method, target, body in requests:
                data = json.dumps({**HOURLY, **body} if method == "PUT" and "jobs" in target else body).encode()
                answer = await admin(method, target, data)
                assert answer.status < 500, (method, target, body, answer)
            assert (await admin.get("/v1/jobs")).status == 200

    anyio.run(play)


async def test_jobs_that_no_json_can_hold_are_listed(s, admin, reader):
    """What code adds may be anything; it hides no other job."""

    def odd(*_, **__): ...

    s.add(odd, "@every 1h", id="\ud800", args=(object(), float("nan"), {1: 2}), name="\udfff", tags=["\0"])
    s.add("nothing", "@every 1h", id="z")
    for caller in (admin, reader):
        for sort in ("id", "-id", "name", "next_start"):
            ids, target = [], f"?limit=1&sort={sort}"
            while target is not None:
                page = (await caller.get(f"/v1/jobs{target}")).json
                ids += [each["id"] for each in page["jobs"]]
                target = page["next"]
            assert sorted(ids) == ["z", "\ud800"]
    assert (await admin.get("/v1/summary")).status == 200


async def test_a_row_that_cannot_be_read_is_shown_as_it_is():
    """The job is parked; it can be read and removed, and it hides no other."""
    store = MemoryStore()
    async with Scheduler(store=store) as s:
        s.register("nothing", nothing)
        for id in ("a", "b"):
            s.add("nothing", "@every 1h", id=id, owner="api")
        await s.flush()
    store._data.jobs["a"] = store._data.jobs["a"]._replace(schedule="never", options="{")
    s = Scheduler(store=store)
    s.register("nothing", nothing)
    async with s:
        admin = Caller(app(s, access=lambda _: Access("ann", "admin")))
        assert [each["id"] for each in (await admin.get("/v1/jobs")).json["jobs"]] == ["a", "b"]
        found = (await admin.get("/v1/jobs/a")).json
        assert found["spec"] is None
        assert found["state"] == "disabled"
        for answer in (
            await admin.get("/v1/jobs/a/next"),
            await admin.get("/v1/jobs/a/runs"),
            await admin.get("/v1/summary"),
        ):
            assert answer.status == 200
        for answer in (
            await admin.patch("/v1/jobs/a", {"timeout": 1}),
            await admin.put("/v1/jobs/a", HOURLY),
            await admin.post("/v1/jobs/a/pause"),
            await admin.post("/v1/jobs/a/run"),
        ):
            assert answer.status < 500, answer
        assert (await admin.get("/v1/jobs/b")).status == 200
