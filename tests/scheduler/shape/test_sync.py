"""A whole set of jobs in one call: exactly that set afterwards, and nothing touched that is the same."""

from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel
import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from schedule import At
from scheduler import (
    DuplicateJob,
    InvalidJob,
    JobSpec,
    LifecycleError,
    Scheduler,
    Synced,
    UnknownLimit,
    UnknownTask,
    WrongOwner,
    from_json,
    to_json,
)
from scheduler.stores.memory import MemoryStore
from spec_material import probe, scheduler, specs

IDS = st.sampled_from([f"job-{letter}" for letter in "abcdef"])
SETS = st.lists(specs(IDS, st.none()), max_size=5, unique_by=lambda spec: spec.id)


def spec(id="web", **options):
    """Make a spec of the task that the scheduler knows."""
    return JobSpec(id, "probe", options.pop("schedule", "@every 1m"), **options)


def told(s, owner="cmdb"):
    """Return the specs of an owner's jobs by id."""
    return {job.id: job.spec for job in s.jobs() if job.owner == owner}


def wanted(specs, owner="cmdb"):
    """Return the specs as the owner's jobs have them. `probe` is async, so that inline changes nothing."""
    return {each.id: evolve(each, owner=owner, inline=False) for each in specs}


def fitting(specs):
    """Leave out what a scheduler without these limits refuses."""
    return [evolve(each, needs={}) for each in specs]


@given(SETS, SETS)
def test_a_set_follows_another(first, second):
    """Whatever the sets: exactly the second is left, and the second call changes nothing."""
    s = scheduler()
    s.add(probe, "@every 1h", id="ours")
    first, second = fitting(first), fitting(second)
    s.sync(first, owner="cmdb")
    assert told(s) == wanted(first)
    done = s.sync(second, owner="cmdb")
    assert told(s) == wanted(second)
    assert {*done.added, *done.changed, *done.unchanged} == set(wanted(second))
    assert set(done.removed) == set(wanted(first)) - set(wanted(second))
    again = s.sync(reversed(second), owner="cmdb")
    assert again == Synced(unchanged=tuple(each.id for each in reversed(second)))
    assert s.get("ours").owner is None


def test_an_unchanged_job_is_not_touched():
    """It is the same object, with its counts and its next start."""
    s = scheduler()
    s.sync([spec("a"), spec("b")], owner="cmdb")
    before = {id: s.get(id) for id in "ab"}
    assert s.sync([spec("a"), spec("b", timeout="5s")], owner="cmdb") == Synced(changed=("b",), unchanged=("a",))
    assert {id: s.get(id) for id in "ab"} == before
    assert s.get("b").timeout == timedelta(seconds=5)


def test_true_is_another_argument_than_1():
    """Python calls them equal, JSON does not, and the task sees the difference."""
    s = scheduler()
    s.sync([spec(args=(1,))], owner="cmdb")
    assert s.sync([spec(args=(True,))], owner="cmdb").changed == ("web",)
    assert s.get("web").args[0] is True


def test_a_dry_run_says_what_would_change_and_changes_nothing():
    """The same answer as the call that does it."""
    s = scheduler()
    s.sync([spec("a"), spec("b"), spec("c")], owner="cmdb")
    before = told(s)
    new = [spec("a"), spec("b", name="B"), spec("d")]
    foreseen = s.sync(new, owner="cmdb", dry_run=True)
    assert told(s) == before
    assert foreseen == Synced(added=("d",), changed=("b",), unchanged=("a",), removed=("c",))
    assert s.sync(new, owner="cmdb") == foreseen


def test_without_prune_the_others_stay():
    """So that a set may come in pieces."""
    s = scheduler()
    s.sync([spec("a")], owner="cmdb")
    assert s.sync([spec("b")], owner="cmdb", prune=False) == Synced(added=("b",))
    assert set(told(s)) == {"a", "b"}


def test_the_jobs_of_others_are_neither_changed_nor_removed():
    """The error names the owner, and nothing has changed."""
    s = scheduler()
    s.add(probe, "@every 1h", id="ours")
    s.sync([spec("theirs")], owner="file")
    for id, owner, shown in [("ours", None, "code"), ("theirs", "file", "'file'")]:
        with pytest.raises(WrongOwner, match=rf"jobs\[1\]: job '{id}' belongs to {shown}, not to") as caught:
            s.sync([spec("new"), spec(id)], owner="cmdb")
        assert caught.value.owner == owner
    assert {job.id for job in s.jobs()} == {"ours", "theirs"}
    assert s.sync([], owner="cmdb") == Synced()


def test_an_owner_may_give_up_a_job_to_another():
    """By an update of the job."""
    s = scheduler()
    s.sync([spec("a")], owner="file")
    s.get("a").update(owner="cmdb")
    assert s.sync([spec("a")], owner="cmdb").unchanged == ("a",)


@pytest.mark.parametrize(
    ("wrong", "error", "text", "path"),
    [
        (spec(needs="ftp"), UnknownLimit, r"jobs\[1\]: there is no limit 'ftp'", None),
        (JobSpec("web", "prob", "@every 1m"), UnknownTask, r"did you mean 'probe'", None),
        (JobSpec("web", None, "@every 1m"), InvalidJob, "must name one", "jobs[1].task"),
        (spec("a"), DuplicateJob, r"its id 'a' is that of jobs\[0\] too", None),
        (spec(owner="file"), InvalidJob, "this is the set of 'cmdb'", "jobs[1].owner"),
        (spec(where="region=eu"), InvalidJob, "there is no choice", "jobs[1].where"),
        ("web", InvalidJob, "must be a JobSpec", "jobs[1]"),
    ],
)
def test_one_wrong_job_refuses_the_whole_set(wrong, error, text, path):
    """Everything is checked before anything changes."""
    s = scheduler()
    with pytest.raises(error, match=text) as caught:
        s.sync([spec("a"), wrong], owner="cmdb")
    assert s.jobs() == []
    if path is not None:
        assert caught.value.path == path


@pytest.mark.parametrize("owner", [None, "", 3, "a\n"])
def test_a_set_has_an_owner(owner):
    """The jobs of code are no set."""
    with pytest.raises(InvalidJob, match="owner must be"):
        scheduler().sync([], owner=owner)


@pytest.mark.parametrize("specs", [None, "web", 3])
def test_a_set_is_a_list(specs):
    """A single text is no list of jobs."""
    with pytest.raises(InvalidJob, match="specs must be a list"):
        scheduler().sync(specs, owner="cmdb")


def test_a_job_whose_schedule_has_ended_is_not_added_again():
    """A set may keep what has run once."""
    s = scheduler()
    past = spec("once", schedule=At(datetime(2020, 1, 1, tzinfo=UTC)))
    assert s.sync([past, spec("a")], owner="cmdb") == Synced(added=("a",), ended=("once",))
    with pytest.raises(InvalidJob, match="has no start after now"):
        s.sync([evolve(past, id="a")], owner="cmdb")
    assert set(told(s)) == {"a"}


def test_a_task_that_is_inline_makes_no_difference():
    """The option of the task is none of the job's."""
    s = Scheduler()
    s.register("probe", print, inline=True)
    s.sync([spec("a"), spec("b", inline=True)], owner="cmdb")
    assert s.sync([spec("a"), spec("b", inline=True)], owner="cmdb").unchanged == ("a", "b")


def test_a_changed_place_replaces_the_job():
    """Another node might have it then."""
    s = scheduler()
    s.sync([spec(place="a")], owner="cmdb")
    before = s.get("web")
    assert s.sync([spec(place="b")], owner="cmdb").changed == ("web",)
    assert s.get("web") is not before
    assert s.get("web").spec.place == "b"


async def test_a_stored_set_is_the_same_after_a_restart():
    """And a second sync commits nothing."""
    store = MemoryStore()
    options = {"retry": None, "args": (True, 1, {"deep": [1.5]}), "tags": ["x"], "timeout": "90s", "owner": "cmdb"}
    new = [from_json(JobSpec, to_json(spec("a", **options))), spec("b", schedule="H * * * *"), spec("c", needs="http")]
    for expected in (Synced(added=("a", "b", "c")), Synced(unchanged=("a", "b", "c"))):
        s = Scheduler(store=store, limits={"http": 3})
        s.register("probe", probe)
        with pytest.raises(LifecycleError, match="cannot sync yet"):
            s.sync(new, owner="cmdb")
        async with s:
            assert s.sync(new, owner="cmdb") == expected
            assert bool(s.statistics().store.unsaved) == bool(expected.added)
            await s.flush()
            assert s.sync(new, owner="cmdb").unchanged == ("a", "b", "c")
            assert s.statistics().store.unsaved == 0
            assert told(s) == wanted(new)


async def test_a_change_of_a_stored_set_is_durable():
    """With the present jobs' counts, and without the removed ones."""
    store = MemoryStore()
    new = [spec("a"), spec("b")]
    for expected in (Synced(added=("a", "b")), Synced(changed=("a",), removed=("b",)), Synced(unchanged=("a",))):
        s = Scheduler(store=store)
        s.register("probe", probe)
        async with s:
            assert s.sync(new, owner="cmdb") == expected
            await s.flush()
            new = [spec("a", kwargs={"x": 1}, schedule="@every 2m")]


async def test_another_thread_may_sync():
    """An HTTP server has threads of its own."""
    s = scheduler()
    async with s:
        done = await anyio.to_thread.run_sync(lambda: s.sync([spec("a"), spec("b")], owner="cmdb"))
        assert done.added == ("a", "b")
        done = await anyio.to_thread.run_sync(lambda: s.sync([spec("b", priority=3)], owner="cmdb"))
        assert (done.changed, done.removed) == (("b",), ("a",))
        await anyio.lowlevel.checkpoint()
        assert set(told(s)) == {"b"}
