"""The list of jobs: pages, filters, orders and keys, while jobs come and go."""

import base64
import json

import pytest
from hypothesis import given, settings, strategies as st

from kit import examples, nothing
from scheduler import Scheduler
from scheduler.web import Access, app


@pytest.fixture
def store():
    """Jobs are listed out of memory."""
    return


async def listed(caller, query=""):
    """Return the ids of all pages, and how many pages there were."""
    ids, target, pages = [], f"?{query}", 0
    while target is not None:
        answer = await caller.get(f"/v1/jobs{target}")
        assert answer.status == 200, answer
        ids += [each["id"] for each in answer.json["jobs"]]
        target, pages = answer.json["next"], pages + 1
    return ids, pages


@pytest.fixture
def jobs(s):
    """Twenty jobs, every second one red, with names in the other direction."""
    for number in range(20):
        tags = ["red", "warm"] if number % 2 else ["blue"]
        s.add("nothing", f"@every {number + 1}h", id=f"job-{number:02}", tags=tags, name=f"Name {20 - number:02}")
    return [f"job-{number:02}" for number in range(20)]


@pytest.mark.parametrize("limit", [1, 3, 7, 19, 20, 21, 500])
async def test_pages_hold_each_job_once(limit, jobs, reader):
    """Whatever their size."""
    ids, pages = await listed(reader, f"limit={limit}")
    assert ids == jobs
    assert pages == -(-20 // limit)


@pytest.mark.parametrize("sort", ["id", "-id", "name", "-name", "next_start", "-next_start"])
async def test_each_order_has_each_job_once(sort, jobs, s, reader):
    """Also where some have no name or no next start."""
    s.add("nothing", "@every 1h", id="nameless").pause()
    ids, _ = await listed(reader, f"sort={sort}&limit=4")
    assert sorted(ids) == sorted([*jobs, "nameless"])
    whole, _ = await listed(reader, f"sort={sort}")
    assert whole == ids
    other, _ = await listed(reader, f"sort={sort.removeprefix('-') if sort.startswith('-') else f'-{sort}'}")
    assert other == ids[::-1]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=20), st.integers(1, 5))
@settings(max_examples=examples(100))
def test_pages_hold_what_stays_while_jobs_come_and_go(changes, limit):
    """A job that is there all the time is listed once, and none twice."""
    import anyio  # noqa: PLC0415 - a loop for each example

    from asgi import Caller  # noqa: PLC0415

    async def play():
        s = Scheduler()
        s.register("nothing", nothing)
        for number in range(0, 30, 2):
            s.add("nothing", "@every 1h", id=f"{number:02}")
        reader = Caller(app(s, access=lambda _: Access("r", "read")))
        stays, found, target, rest = {job.id for job in s.jobs()}, [], f"?limit={limit}", list(changes)
        while target is not None:
            page = (await reader.get(f"/v1/jobs{target}")).json
            found += [each["id"] for each in page["jobs"]]
            target = page["next"]
            if rest:
                is_new, number = rest.pop()
                id = f"{number:02}"
                if is_new:
                    s.add("nothing", "@every 1h", id=id, on_conflict="keep")
                elif id in s:
                    s.remove(id)
                    stays.discard(id)
        assert len(found) == len(set(found))
        assert stays <= set(found)

    anyio.run(play)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("tag=red", 10),
        ("tag=red&tag=warm", 10),
        ("tag=red&tag=blue", 0),
        ("q=NAME%2005", 1),
        ("q=job-1", 10),
        ("q=blu", 10),
        ("q=", 20),
        ("state=scheduled", 20),
        ("state=disabled", 0),
        ("state=disabled&state=scheduled", 20),
        ("owner=code", 20),
        ("owner=api", 0),
    ],
)
async def test_filters(query, count, jobs, reader):
    """Each narrows the list."""
    ids, _ = await listed(reader, f"{query}&limit=3")
    assert len(ids) == count


async def test_the_next_page_keeps_the_question(jobs, reader):
    """Its link is relative, so that it holds wherever the app is mounted."""
    answer = await reader.get("/v1/jobs?tag=red&limit=2&fields=id,state&sort=-id")
    assert answer.json["next"].startswith("?tag=red&limit=2&fields=id%2Cstate&sort=-id&cursor=")
    assert answer.json["jobs"] == [{"id": "job-19", "state": "scheduled"}, {"id": "job-17", "state": "scheduled"}]


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=-1", "limit"),
        ("limit=1e2", "limit"),
        ("limit=" + "9" * 900, "limit"),
        ("limit=\u0663", "limit"),
        ("limit=1&limit=2", "limit"),
        ("state=red", "state"),
        ("sort=func", "sort"),
        ("fields=id,secret", "fields"),
        ("cursor=x", "cursor"),
        ("cursor=" + base64.urlsafe_b64encode(json.dumps(["-id", "a"]).encode()).decode(), "cursor"),
        ("cursor=" + base64.urlsafe_b64encode(json.dumps(["id", 1]).encode()).decode(), "cursor"),
        ("cursor=" + base64.urlsafe_b64encode(b"[" * 600).decode(), "cursor"),
        ("cursor=" + base64.urlsafe_b64encode(b'{"id": 1}').decode(), "cursor"),
        ("q=" + "x" * 1001, "q"),
        ("cursor=" + "x" * 100_001, "cursor"),
        ("q=%00", "q"),
        ("colour=red", "colour"),
        ("%00=1", "\0"),
    ],
)
async def test_a_question_that_is_wrong_is_refused(query, key, reader):
    """The answer names the key."""
    answer = await reader.get(f"/v1/jobs?{query}")
    assert (answer.status, answer.json["key"]) == (422, key)


async def test_a_list_of_many_jobs_lets_the_loop_turn(s, reader):
    """Others go on between its pieces."""
    import anyio  # noqa: PLC0415 - of this test only

    s.add_many("nothing", [(f"{number:05}", "@every 1h") for number in range(5_000)])
    turns, is_done = 0, False

    async def count():
        nonlocal turns
        while not is_done:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        assert len((await reader.get("/v1/jobs?limit=100")).json["jobs"]) == 100
        is_done = True
    assert turns >= 3


@pytest.mark.parametrize("sort", ["id", "-id", "name"])
@pytest.mark.parametrize("letter", ["x", "任", "\U0001f469", "\ud800"])
async def test_long_ids_and_names_have_a_next_page(letter, sort, s, reader):
    """Whatever they are written in."""
    for number in range(3):
        s.add("nothing", "@every 1h", id=letter * 511 + str(number), name=letter * 2_000)
    ids, _ = await listed(reader, f"limit=1&sort={sort}&fields=id")
    assert sorted(ids) == [letter * 511 + str(number) for number in range(3)]


async def test_only_what_is_shown_is_copied(s, admin, reader, monkeypatch):
    """Arguments may be large, and `read` sees none."""
    from scheduler._jobs import told  # noqa: PLC0415 - what copies the arguments

    copied = []

    def spec_of(job, tasks):
        copied.append(job.args)
        return of(job, tasks)

    of = told.spec_of
    monkeypatch.setattr(told, "spec_of", spec_of)
    s.add("nothing", "@every 1h", id="a", args=(1, 2))
    found = (await reader.get("/v1/jobs")).json["jobs"][0]
    assert (found["spec"]["task"], "args" in found["spec"], copied) == ("nothing", False, [()])
    assert (await admin.get("/v1/jobs?fields=id,state")).json["jobs"] == [{"id": "a", "state": "scheduled"}]
    assert (await reader.get("/v1/jobs?fields=id,error")).json["jobs"] == [{"id": "a"}]
    assert (await admin.get("/v1/jobs?fields=func,id")).json["jobs"] == [{"func": "nothing", "id": "a"}]
    assert copied == [(), ()]
    assert (await admin.get("/v1/jobs")).json["jobs"][0]["spec"]["args"] == [1, 2]


async def test_each_key_is_the_same_alone(s, admin):
    """However it is made."""
    s.add("nothing", "@every 1h", id="a", args=(1, 2)).pause("x")
    whole = (await admin.get("/v1/jobs")).json["jobs"][0]
    for key, value in whole.items():
        assert (await admin.get(f"/v1/jobs?fields={key}")).json["jobs"] == [{key: value}]


async def test_a_page_of_large_jobs_ends_early(s, admin):
    """The next page goes on behind it."""
    for number in range(5):
        s.add("nothing", "@every 1h", id=f"job-{number}", args=("x" * 900_000,))
    ids, pages = await listed(admin)
    assert ids == [f"job-{number}" for number in range(5)]
    assert pages == 2
    assert await listed(admin, "fields=id") == (ids, 1)


async def test_the_loop_turns_between_views_of_jobs(s, admin):
    """A page of large jobs holds up nobody."""
    import anyio  # noqa: PLC0415 - of this test only

    for number in range(50):
        s.add("nothing", "@every 1h", id=f"{number:02}", args=(list(range(1_000)),))
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        await admin.get("/v1/jobs")
        group.cancel_scope.cancel()
    assert turns >= 50
