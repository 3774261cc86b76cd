"""Who changed what: verbs that somebody calls, and pauses, noted with the values before and after."""

from datetime import timedelta
from threading import Thread

import pytest

from kit import nothing
from scheduler import InvalidJob, JobSpec, Scheduler, acting_as, rate, to_json
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore

STORES = ["none", "memory", "sqlite", "postgres"]


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    """Each kind of store, and none."""
    match request.param:
        case "none":
            return None
        case "memory":
            return MemoryStore()
        case "sqlite":
            return f"sqlite:///{tmp_path}/jobs.db"
        case _:
            server, schema = map(request.getfixturevalue, ("postgres_server", "postgres_schema"))
            return PostgresStore(server.dsn, schema=schema)


@pytest.fixture
async def s(store):
    """A scheduler that runs, with one job."""
    async with Scheduler(store=store, limits={"http": 2, "pace": rate(2, "1s")}) as s:
        s.register("nothing", nothing)
        s.add("nothing", "@every 1h", id="a", args=["x"])
        yield s


async def made(s, *args, **kwargs):
    """Return what is noted, the earliest first, once it is durable."""
    await s.flush()
    return (await s.changes(*args, **kwargs))[::-1]


def summary(changes):
    """Return the acts and scopes."""
    return [(each.act, each.scope) for each in changes]


async def test_what_code_adds_changes_and_removes_is_not_noted(s):
    """A program that adds 50,000 jobs at its start pays nothing for it."""
    job = s.add("nothing", "@every 1h", id="b")
    s.add_many("nothing", [("c", "@every 1h")])
    job.update(schedule="@every 2h")
    job.run_now()
    job.skip()
    job.remove()
    s.sync([JobSpec("d", "nothing", "@every 1h")], owner="me")
    assert await made(s) == []


async def test_pauses_are_always_noted(s):
    """The first question after an outage is who paused it."""
    s.get("a").pause("new disks")
    s.get("a").resume()
    s.pause("shop", reason="a sale")
    s.resume("shop")
    s.pause()
    found = await made(s)
    assert summary(found) == [
        ("pause", "job:a"),
        ("resume", "job:a"),
        ("pause", "tag:shop"),
        ("resume", "tag:shop"),
        ("pause", "*"),
    ]
    assert {each.actor for each in found} == {None}
    first, second, *_ = found
    assert (first.reason, first.before, first.after) == ("new disks", None, {"reason": "new disks", "until": None})
    assert (second.before, second.after, second.job_id) == ({"reason": "new disks", "until": None}, None, "a")


async def test_a_resume_without_a_pause_is_noted_only_with_an_actor(s):
    """It changes nothing that anybody could ask about."""
    s.get("a").resume()
    s.resume("shop")
    assert await made(s) == []
    with acting_as("ann"):
        s.get("a").resume()
    assert summary(await made(s)) == [("resume", "job:a")]


async def test_each_verb_is_noted_with_its_actor(s):
    """And with the reason that the actor gave."""
    with acting_as("ann", reason="ticket 12"):
        job = s.add("nothing", "@every 1h", id="b")
        job.update(schedule="@every 2h", name="shop")
        job.set_next_start(job.next_start + timedelta(minutes=1))
        job.skip()
        job.run_now()
        job.remove()
        s.resize(5, {"http": 7, "pace": rate(3, "1s")})
    job = s.add("nothing", "@every 1h", id="b")
    found = await made(s)
    assert summary(found) == [
        ("add", "job:b"),
        ("update", "job:b"),
        ("set-next-start", "job:b"),
        ("skip", "job:b"),
        ("run", "job:b"),
        ("remove", "job:b"),
        ("resize", "limits"),
    ]
    assert {(each.actor, each.reason) for each in found} == {("ann", "ticket 12")}
    add, update, start, *_, remove, resize = found
    assert (add.before, add.after["schedule"], add.after["task"]) == (None, "@every 1h", "nothing")
    assert update.before == {"schedule": "@every 1h", "name": None}
    assert update.after == {"schedule": "@every 2h", "name": "shop"}
    assert start.before != start.after
    assert (remove.before["name"], remove.after) == ("shop", None)
    assert resize.before == {"limit": 500, "http": 2, "pace": 2}
    assert resize.after == {"limit": 5, "http": 7, "pace": {"units": 3, "window": 1.0}}


async def test_a_job_added_again_is_noted_as_what_it_becomes(s):
    """One that stays as it is leaves no note."""
    with acting_as("ann"):
        s.add("nothing", "@every 1h", id="a", args=["x"], on_conflict="update")
        s.add("nothing", "@every 2h", id="a", args=["x"], on_conflict="update")
        s.add("nothing", "@every 3h", id="a", args=["x"], on_conflict="replace")
        s.add("nothing", "@every 4h", id="a", args=["x"], on_conflict="keep")
    found = await made(s)
    assert summary(found) == [("update", "job:a"), ("replace", "job:a")]
    assert (found[0].before, found[0].after) == ({"schedule": "@every 1h"}, {"schedule": "@every 2h"})
    assert (found[1].before["schedule"], found[1].after["schedule"]) == ("@every 2h", "@every 3h")


async def test_many_jobs_and_sets_are_noted_job_by_job(s):
    """A set has a note of its own, too. The same set again changes nothing."""
    specs = [JobSpec("d", "nothing", "@every 1h"), JobSpec("e", "nothing", "@every 1h")]
    with acting_as("ann"):
        s.add_many("nothing", [("b", "@every 1h"), ("c", "@every 1h")])
        s.sync(specs, owner="me")
        s.sync(specs, owner="me")
        s.sync(specs[:1], owner="me")
        s.sync([], owner="me", dry_run=True)
    found = await made(s)
    assert summary(found) == [
        ("add", "job:b"),
        ("add", "job:c"),
        ("add", "job:d"),
        ("add", "job:e"),
        ("sync", "set:me"),
        ("remove", "job:e"),
        ("sync", "set:me"),
    ]
    assert [each.after for each in found if each.act == "sync"] == [
        {"added": 2, "changed": 0, "removed": 0},
        {"added": 0, "changed": 0, "removed": 1},
    ]


async def test_a_verb_that_is_refused_leaves_no_note(s):
    """Nothing has changed."""
    with acting_as("ann"):
        with pytest.raises(InvalidJob):
            s.get("a").update(priority="high")
        with pytest.raises(InvalidJob):
            s.resize(0)
        with pytest.raises(InvalidJob):
            s.add("nothing", "@every 1h", id="")
    assert await made(s) == []


async def test_changes_are_found_by_job_actor_and_instant(s):
    """Pages end between two instants: each change of a process has its own."""
    for actor in ("ann", "bob"):
        for id in ("a", "b"):
            with acting_as(actor):
                s.add("nothing", "@every 1h", id=id, on_conflict="replace")
    found = await made(s)
    assert len({each.at for each in found}) == len(found) == 4
    assert [each.actor for each in await made(s, "b")] == ["ann", "bob"]
    assert summary(await made(s, actor="bob")) == [("replace", "job:a"), ("replace", "job:b")]
    assert await made(s, before=found[2].at) == found[:2]
    assert await made(s, limit=1) == found[3:]
    assert await made(s, "nobody") == []


async def test_another_thread_has_its_own_actor(s):
    """Its changes are carried out on the loop, in their order."""

    def act():
        with acting_as("worker"):
            s.add("nothing", "@every 1h", id="b")
            s.get("b").update(schedule="@every 2h")
            s.get("a").remove()

    thread = Thread(target=act)
    with acting_as("ann"):
        thread.start()
        thread.join()
    found = await made(s)
    assert summary(found) == [("add", "job:b"), ("update", "job:b"), ("remove", "job:a")]
    assert {each.actor for each in found} == {"worker"}
    assert found[1].after == {"schedule": "@every 2h"}


async def test_an_actor_within_an_actor_ends_with_its_block(s):
    """As any context variable."""
    with acting_as("ann"):
        with acting_as("bob"):
            s.get("a").pause()
        s.get("a").resume()
    s.get("a").pause()
    assert [each.actor for each in await made(s)] == ["bob", "ann", None]


async def test_the_code_of_a_run_acts_for_nobody(s):
    """Whoever has it run is not whoever wrote it."""

    async def pauses():
        s.get("a").pause("by the run")

    s.register("pauses", pauses)
    job = s.add("pauses", "@every 1h", id="b")
    with acting_as("ann"):
        await job.run_now()
    assert [(each.act, each.actor) for each in await made(s)] == [("run", "ann"), ("pause", None)]


async def test_large_values_are_cut(s):
    """A note is short, whatever the arguments are."""
    with acting_as("ann"):
        s.add("nothing", "@every 1h", id="b", args=["x" * 100_000], tags=[f"tag {number}" for number in range(1_000)])
    (found,) = await made(s)
    assert len(str(to_json(found))) < 8_000
    assert found.after["args"].startswith("... (")
    assert found.after["schedule"] == "@every 1h"


@pytest.mark.parametrize("name", ["", "x" * 501, None, 12, "a\0b", "\ud800"])
def test_an_actor_has_a_name(name):
    """One that a store can hold."""
    with pytest.raises(InvalidJob, match="name must be"), acting_as(name):
        pass


async def test_a_long_reason_is_cut(s):
    """A page of changes would repeat it 500 times."""
    s.get("a").pause("x" * 100_000)
    (found,) = await made(s)
    assert found.reason == "x" * 500
    assert found.after["reason"] == "... (100002 characters)"


async def test_without_a_store_the_last_thousand_are_kept():
    """Memory stays bounded."""
    async with Scheduler() as s:
        for number in range(1_010):
            s.pause(f"tag {number}")
        found = await s.changes(limit=2_000)
    assert len(found) == 1_000
    assert found[0].scope == "tag:tag 1009"


async def test_changes_outlive_the_process(tmp_path):
    """Also those made before the store was read."""
    store = f"sqlite:///{tmp_path}/jobs.db"
    s = Scheduler(store=store)
    s.register("nothing", nothing)
    with acting_as("ann"):
        s.add("nothing", "@every 1h", id="a").pause("early")
    async with s:
        await s.flush()
    async with Scheduler(store=store) as s:
        assert summary(await made(s)) == [("add", "job:a"), ("pause", "job:a")]
