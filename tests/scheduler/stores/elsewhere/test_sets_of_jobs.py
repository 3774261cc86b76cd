"""Sets of jobs in a shared store: any node takes them, whichever node has the jobs."""

import pytest

from kit import until
from scheduler import InvalidJob, JobSpec, Synced, WrongOwner


def spec(id, **options):
    """Make a spec of the task that every node knows."""
    return JobSpec(id, "work", options.pop("schedule", "@every 1h"), **options)


def ids(s):
    """Return the ids of all jobs that a node knows, parts included."""
    return sorted(job.id for job in s.jobs())


async def test_any_node_takes_the_set(fleet):
    """What one node has added is unchanged on another, a job in parts too, and each may change it."""
    async with fleet.agent("a") as a, fleet.agent("b") as b:
        first = [*(spec(f"job-{index}", tags=["x"]) for index in range(6)), spec("many", agents=2)]
        assert a.sync(first, owner="cmdb").added == tuple(each.id for each in first)
        await a.flush()
        known = sorted([*(each.id for each in first), "many#1", "many#2"])
        await until(lambda: ids(b) == known)
        await until(lambda: {job.is_ours for job in b.jobs()} == {True, False})
        assert b.sync(first, owner="cmdb") == Synced(unchanged=tuple(each.id for each in first))

        second = [*(spec(f"job-{index}", timeout="5s") for index in range(3)), spec("many", agents=2, name="Many")]
        done = b.sync(second, owner="cmdb")
        assert done.changed == ("job-0", "job-1", "job-2", "many")
        assert sorted(done.removed) == ["job-3", "job-4", "job-5"]
        await b.flush()
        await until(lambda: ids(a) == ["job-0", "job-1", "job-2", "many", "many#1", "many#2"])
        await until(lambda: {a.get(id).name for id in ("many", "many#1", "many#2")} == {"Many"})
        await until(lambda: a.sync(second, owner="cmdb", dry_run=True).unchanged == tuple(each.id for each in second))
        with pytest.raises(WrongOwner, match="'many#1' is a part of job 'many'"):
            a.sync([spec("many#1")], owner="cmdb")


async def test_a_job_may_become_one_of_several_nodes(fleet):
    """It is replaced, with all its parts, and back."""
    async with fleet.agent("a") as a:
        a.sync([spec("job")], owner="cmdb")
        assert a.sync([spec("job", agents=3)], owner="cmdb").changed == ("job",)
        await a.flush()
        assert ids(a) == ["job", "job#1", "job#2", "job#3"]
        assert a.sync([spec("job", agents=3)], owner="cmdb").unchanged == ("job",)
        assert a.sync([spec("job")], owner="cmdb").changed == ("job",)
        await a.flush()
        await until(lambda: ids(a) == ["job"])
        assert a.sync([], owner="cmdb").removed == ("job",)


async def test_a_part_that_cannot_be_stored_refuses_the_set_before_anything_changes(fleet):
    """The id of a part is longer than that of its job."""
    async with fleet.agent("a") as a:
        a.sync([spec("old")], owner="cmdb")
        with pytest.raises(InvalidJob, match=r"jobs\[1\]: .*id must be 1 to 512"):
            a.sync([spec("new"), spec("x" * 511, agents=2)], owner="cmdb")
        assert ids(a) == ["old"]
