"""Jobs that several agents run: each of the chosen runs every tick at the same instant, once, whoever comes or goes."""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

import pytest

from kit import until
from schedule import At, Every, Missed
from scheduler import DuplicateJob, InvalidJob, Outcome, Overlap, RunEnded, Scheduler
from scheduler.queues.local import LocalQueue
from scheduler.stores.postgres import PostgresStore


def by_tick(fleet, since=0):
    """Map each instant to the agents that have run a part then, in the order of their names."""
    found = defaultdict(list)
    for name, _, due in fleet.runs[since:]:
        found[due].append(name)
    return {due: sorted(names) for due, names in found.items()}


async def all_at_once(fleet, names, ticks=3):
    """Wait until each of these agents has run the same tick, some times. `names`: or what says who these are by now."""
    since, now = len(fleet.runs), names if callable(names) else lambda: names
    await until(lambda: list(by_tick(fleet, since).values()).count(sorted(now())) >= ticks)


def none_twice(fleet):
    """Whether no tick of a part has run twice."""
    return max(Counter((id, due) for _, id, due in fleet.runs).values()) == 1


async def test_each_of_a_number_of_agents_runs_each_tick(fleet):
    """Of four three do, at the same instants, and the history of the whole is that of its parts."""
    async with fleet.agent("a") as a, fleet.agent("b") as b, fleet.agent("c"), fleet.agent("d"):
        job = a.add("work", Every("200ms"), id="job", agents=3)
        await until(lambda: all(part.agent for part in b.jobs() if part.id != "job") and len(b.jobs()) == 4)

        def owners():  # they are others once the fourth agent has read all jobs, too
            return {part.agent for part in b.jobs() if part.id != "job" and part.agent}

        await all_at_once(fleet, owners)
        assert len(owners()) == 3
        assert (job.agent, job.is_ours, job.error) == (None, False, None)
        assert sorted(part.id for part in b.jobs()) == ["job", "job#1", "job#2", "job#3"]
        await a.flush()
        records = await b.history("job", limit=1_000)
        assert {record.job_id for record in records} == {"job#1", "job#2", "job#3"}
        assert (await a.audit()).failed == 0
    assert none_twice(fleet)


async def test_every_agent_runs_each_tick(fleet):
    """Also one that comes later. The part of one that leaves waits for it."""
    async with fleet.agent("a", region="eu") as a, fleet.agent("b", region="eu"), fleet.agent("us", region="us") as us:
        us.add("work", Every("200ms"), id="job", agents="all", where="region=eu")
        await all_at_once(fleet, ["a", "b"])
        async with fleet.agent("c", region="eu"):
            await all_at_once(fleet, ["a", "b", "c"])
        await all_at_once(fleet, ["a", "b"])
        await until(lambda: a.get("job@c").error == "no node 'c' has region=eu")
        assert a.get("job").error == "no node 'c' has region=eu"
        async with fleet.agent("c", region="eu"):
            await all_at_once(fleet, ["a", "b", "c"])
            await until(lambda: a.get("job@c").error is None)
        assert {id for _, id, _ in fleet.runs} == {"job@a", "job@b", "job@c"}
    assert none_twice(fleet)


async def test_they_stand_in_different_zones(fleet):
    """One in each as long as there is a choice; also when one of them leaves."""
    async with fleet.agent("a1", zone="a") as s, fleet.agent("a2", zone="a"), fleet.agent("b", zone="b"):
        s.add("work", Every("200ms"), id="job", agents=2, apart="zone")
        async with fleet.agent("c", zone="c"):
            await until(lambda: len(by_zone(s)) == 2 and len(owners(s)) == 2)
        await until(lambda: by_zone(s) == {"a", "b"} and len(owners(s)) == 2)
        await all_at_once(fleet, lambda: owners(s))  # in zone a it may be the other one, once that has read all jobs
    assert none_twice(fleet)


def owners(s):
    return {part.agent for part in s.jobs() if part.id != "job" and part.agent}


def by_zone(s):
    return {name[0] for name in owners(s)}


async def test_another_takes_the_part_of_one_that_leaves(fleet):
    """The others keep theirs. If there is no other it waits, and says so, for as long as the agents are too few."""
    async with fleet.agent("a") as a, fleet.agent("b"):
        job = a.add("work", Every("200ms"), id="job", agents=3)
        await until(lambda: job.error == "fewer than 3 nodes are there")
        await all_at_once(fleet, ["a", "b"])
        await until(lambda: sum(a.statistics().fleet.waiting.values()) == 1)
        assert sorted(a.get(f"job#{number}").error is None for number in (1, 2, 3)) == [False, True, True]
        async with fleet.agent("c"):
            await all_at_once(fleet, ["a", "b", "c"])
            assert job.error is None
            before = {part.id: part.agent for part in a.jobs()}
        async with fleet.agent("d"):
            await all_at_once(fleet, ["a", "b", "d"])
            await until(lambda: {part.id: part.agent for part in a.jobs()} == before | {lost(before, "c"): "d"})
    assert none_twice(fleet)


def lost(agents, name):
    return next(id for id, agent in agents.items() if agent == name)


@pytest.mark.parametrize("agents", [2, "all"])
async def test_what_is_asked_of_the_whole_is_asked_of_its_parts(fleet, agents):
    """By any agent, whoever has them."""
    async with fleet.agent("a") as a, fleet.agent("b") as b:
        a.add("work", "@every 400d", id="job", agents=agents)
        await a.flush()
        await until(lambda: len(b.jobs()) == 3 and all(part.agent for part in b.jobs() if part.id != "job"))
        parts = sorted(part.id for part in b.jobs())[1:]
        answer = await b.get("job").run_now()
        assert isinstance(answer, RunEnded)
        assert answer.outcome is Outcome.SUCCEEDED
        assert (
            sorted((name, id) for name, id, _ in fleet.runs) == [(b.get(id).agent, id) for id in parts] or agents == 2
        )
        assert {name for name, *_ in fleet.runs} == {"a", "b"}

        b.get("job").pause("for a while")
        await until(lambda: {s.get(id).error for s in (a, b) for id in ("job", *parts)} == {"for a while"})
        a.get("job").resume()
        await until(lambda: {s.get(id).error for s in (a, b) for id in ("job", *parts)} == {None})

        b.get("job").update(schedule="@every 200ms", priority=3)
        await until(lambda: {str(s.get(id).schedule) for s in (a, b) for id in parts} == {"@every 200ms"})
        await all_at_once(fleet, ["a", "b"])
        assert {s.get(id).policy.priority for s in (a, b) for id in ("job", *parts)} == {3}
        b.add("work", "@every 200ms", id="job", agents=agents, priority=4, on_conflict="update")
        await until(lambda: {s.get(id).policy.priority for s in (a, b) for id in ("job", *parts)} == {4})
        assert len(b.jobs()) == 3

        b.get("job").update(schedule="@every 400d")
        await until(lambda: {str(s.get(id).schedule) for s in (a, b) for id in parts} == {"@every 400d"})
        soon = datetime.now(UTC) + timedelta(milliseconds=500)
        a.get("job").set_next_start(soon)
        await until(lambda: by_tick(fleet).get(soon) == ["a", "b"])

        b.remove("job")
        await b.flush()
        await until(lambda: (a.jobs(), b.jobs()) == ([], []))
        assert fleet.execute("SELECT count(*) FROM job").fetchone() == (0,)
    assert none_twice(fleet)


async def test_a_part_that_comes_beside_a_change_follows_the_whole(fleet):
    """It was made from what its agent knew. So is one whose whole has been removed meanwhile."""
    async with fleet.agent("a") as a, fleet.agent("b") as b:
        a.add("work", "@every 1h", id="job", agents="all")
        await a.flush()
        await until(lambda: "job@a" in b and "job@b" in a and b.get("job@b").is_ours)
        fleet.execute("""UPDATE job SET schedule = '@every 2h', paused = 'by hand' WHERE id = 'job'""")
        await until(lambda: {str(s.get(id).schedule) for s in (a, b) for id in ("job@a", "job@b")} == {"@every 2h"})
        await until(lambda: {s.get(id).error for s in (a, b) for id in ("job@a", "job@b")} == {"by hand"})
        fleet.execute("DELETE FROM job WHERE id = 'job'")
        await until(lambda: (a.jobs(), b.jobs()) == ([], []))
        await a.flush()
        await b.flush()
        assert fleet.execute("SELECT count(*) FROM job").fetchone() == (0,)


async def test_a_part_without_a_whole_is_removed_by_who_takes_it_up(fleet):
    """Its agent made it as the whole was removed, and died. So is one that nobody has, and no other part is touched."""
    async with fleet.agent("a") as a, fleet.agent("b"):
        for id, agents in (("all", "all"), ("some", 2), ("kept", "all")):
            a.add("work", "@every 1h", id=id, agents=agents)
        await a.flush()
    fleet.execute("DELETE FROM job WHERE id IN ('all', 'some')")
    async with fleet.agent("b") as b:
        await until(lambda: ids(b) == ["kept", "kept@a", "kept@b"])
        await b.flush()
        assert fleet.execute("SELECT id FROM job ORDER BY id").fetchall() == [("kept",), ("kept@a",), ("kept@b",)]


async def test_a_part_whose_agent_died_before_its_whole_was_gone_goes_with_it(fleet):
    """Whoever is there sees the part of a dead agent come, knows no whole, and takes the part out."""
    async with fleet.agent("a") as a:
        a.add("work", "@every 1h", id="all", agents="all")
        await a.flush()
        fleet.execute(
            "INSERT INTO job (id, task, schedule, options) SELECT 'gone@b', task, schedule,"
            " replace(replace(options, 'agent a', 'agent b'), '\"all\"', '\"gone\"') FROM job WHERE id = 'all@a'"
        )
        await until(lambda: fleet.execute("SELECT count(*) FROM job").fetchone() == (2,))
        await until(lambda: ids(a) == ["all", "all@a"])


@pytest.mark.parametrize("is_early", [True, False])
async def test_a_part_makes_up_for_what_was_due_before_its_agent_came(fleet, is_early):
    """From the first start on, as `missed` says, also where the job was added before the first agent had started."""
    a, ticks = fleet.scheduler("a"), {"missed": Missed.ALL, "catch_up": 100, "overlap": Overlap.QUEUE}
    if is_early:
        a.add("work", "@every 1s", id="job", agents=2, **ticks)
    async with a:
        if not is_early:
            a.add("work", "@every 1s", id="job", agents=2, **ticks)
        await fleet.all_run(["job#1"])
        async with fleet.agent("b"):
            await fleet.all_run(["job#2"])
            firsts = {name: min(due for _, id, due in fleet.runs if id == name) for name in ("job#1", "job#2")}
        a.stop(grace=0)
    assert firsts["job#1"] == firsts["job#2"]


@pytest.mark.parametrize("numbers", [(2, 1), (1, 2)])
async def test_two_agents_that_add_it_at_once_have_one(fleet, numbers):
    """With the parts of the one that was first, whose number of agents counts."""
    async with fleet.agent("a") as a, fleet.agent("b") as b:
        for s, agents in zip((a, b), numbers, strict=True):
            s.add("work", "@every 200ms", id="some", agents=agents, on_conflict="keep")
            s.add("work", "@every 200ms", id="all", agents="all", on_conflict="keep")
        await a.flush()
        await b.flush()
        await until(lambda: a.get("some").policy == b.get("some").policy)
        number = a.get("some").policy.agents
        await until(lambda: {"all", "all@a", "all@b", "some"} <= {*ids(a)} & {*ids(b)})
        wheres = {f"any | {n} of {number} apart by zone" for n in range(1, number + 1)}
        await until(lambda: {j.policy.where for s in (a, b) for j in s.jobs() if j.id.startswith("some#")} == wheres)
        await fleet.all_run(["all@a", "all@b", "some#1"])
    assert none_twice(fleet)


async def test_a_job_whose_parts_have_all_ended_is_gone(fleet):
    """So it may start once on each agent."""
    async with fleet.agent("a") as a, fleet.agent("b") as b:
        at = datetime.now(UTC) + timedelta(seconds=1)
        a.add("work", At(at), id="job", agents=2)
        await until(lambda: by_tick(fleet).get(at) == ["a", "b"])
        await until(lambda: (a.jobs(), b.jobs()) == ([], []))
    assert none_twice(fleet)


async def test_a_program_adds_its_jobs_again_when_it_starts(fleet):
    """With what it says now. Runs go on where they stood."""
    async with fleet.agent("a") as a, fleet.agent("b"):
        a.add("work", "@every 200ms", id="some", agents=2)
        a.add("work", "@every 200ms", id="all", agents="all")
        assert await fleet.all_run(["all@a", "all@b", "some#1", "some#2"]) == {"a", "b"}
    second = [fleet.scheduler(name) for name in ("a", "b")]
    for s in second:
        s.add("work", "@every 100ms", id="some", agents=2, on_conflict="update")
        s.add("work", "@every 100ms", id="all", agents="all", on_conflict="update")
        s.add("work", "@every 100ms", id="fresh", agents=2, on_conflict="keep")
    async with second[0] as a, second[1] as b:
        parts = ["all@a", "all@b", "fresh#1", "fresh#2", "some#1", "some#2"]
        await until(lambda: [sorted(set(ids(s)) & set(parts)) for s in second] == [parts] * 2)
        await until(lambda: {str(s.get(id).schedule) for s in second for id in parts} == {"@every 100ms"})
        assert await fleet.all_run(parts) == {"a", "b"}
        assert len(a.jobs()) == 9
        a.stop(grace=0)
        b.stop(grace=0)
    fewer = fleet.scheduler("a")
    fewer.add("work", "@every 100ms", id="some", agents=1, on_conflict="replace")
    async with fewer:
        await until(lambda: [id for id in ids(fewer) if id.startswith("some")] == ["some", "some#1"])
        await fewer.flush()
        stored = fleet.execute("SELECT id FROM job WHERE id LIKE 'some%' ORDER BY id").fetchall()
        assert stored == [("some",), ("some#1",)]
        fewer.stop(grace=0)
    assert none_twice(fleet)


def ids(s):
    return sorted(job.id for job in s.jobs())


def test_they_have_one_phase():
    """That of the whole: they are due at the same instants, whatever their own ids are."""
    s = Scheduler(store=PostgresStore("host=nowhere", shared=True))
    s.register("work", work)
    for schedule in ("@every 1h", "@every 1h jitter=5m", "@hourly", "@every 1h anchor=2026-01-01T00:00:07+00:00"):
        s.add("work", schedule, id="job", agents=3, on_conflict="replace")
        whole, *parts = s.jobs()
        assert len(parts) == 3
        for part in parts:
            assert (part.schedule, part.planner.first(part.key, 10**15)) == (
                whole.schedule,
                whole.planner.first(whole.id, 10**15),
            )


async def work():
    """Do nothing."""


@pytest.mark.parametrize("agents", [0, -1, 1.5, True, "some", "3", 1_001, []])
def test_what_is_no_number_of_agents_is_refused(fleet, agents):
    """At once, with what it was and what to write."""
    s = fleet.scheduler("a")
    with pytest.raises(InvalidJob, match=r'agents must be a whole number from 1 to 1,000, or "all", not '):
        s.add("work", "@every 1s", id="job", agents=agents)
    assert s.jobs() == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"agents": 3, "apart": "no name"}, 'apart must be the name of a label such as "zone"'),
        ({"agents": "all", "apart": "zone"}, "is for a number of agents, such as agents=3"),
        ({"apart": "zone"}, "is for a number of agents, such as agents=3"),
        ({"agents": 3, "place": "here"}, "asks for several: leave one of them out"),
        ({"agents": 3, "where": "region"}, "where must be labels such as"),
        ({"agents": 3, "id": None}, "a stored job needs an id"),
        ({"agents": 3, "id": ""}, "id must be a text"),
        ({"agents": 3, "id": "x" * 511}, "id must be 1 to 512"),
        ({"where": "any | 1 of 3 apart by zone"}, "not the text of a part"),
    ],
)
def test_what_does_not_fit_together_is_refused(fleet, options, error):
    """Nothing of it is added."""
    s = fleet.scheduler("a")
    with pytest.raises(InvalidJob, match=error):
        s.add("work", "@every 1s", **{"id": "job"} | options)
    assert s.jobs() == []


def test_a_job_with_the_id_of_a_part_is_in_the_way(fleet):
    """It says which."""
    s = fleet.scheduler("a")
    s.add("work", "@every 1s", id="job#2")
    with pytest.raises(DuplicateJob, match="job#2"):
        s.add("work", "@every 1s", id="job", agents=3, on_conflict="replace")
    assert [job.id for job in s.jobs()] == ["job#2"]


def test_a_job_keeps_its_number_of_agents(fleet):
    """As it keeps its labels. With another row in its place it gets another."""
    s = fleet.scheduler("a")
    job = s.add("work", "@every 1s", id="job", agents=3)
    with pytest.raises(InvalidJob, match=r"job 'job' keeps its agents, 3.*replace"):
        job.update(agents=2)
    with pytest.raises(InvalidJob, match=r"job 'job' keeps its agents, 3"):
        s.add("work", "@every 1s", id="job", agents=2, on_conflict="update")
    s.add("work", "@every 1s", id="job", agents=2, apart="rack", on_conflict="replace")
    assert sorted(part.id for part in s.jobs()) == ["job", "job#1", "job#2"]
    assert s.get("job#1").policy.where == "any | 1 of 2 apart by rack"


@pytest.mark.parametrize("kind", ["none", "memory", "sqlite", "postgres", "not stored", "queue"])
def test_several_agents_need_a_store_that_they_share(fleet, tmp_path, kind):
    """Elsewhere, and with a queue, it is an error."""
    s = Scheduler(store=fleet.store_of(kind, tmp_path), queue=LocalQueue() if kind == "queue" else None)
    s.register("work", work)
    func, durable = (work, {"durable": False}) if kind == "not stored" else ("work", {})
    with pytest.raises(InvalidJob, match="agents=3 chooses among nodes, and there is no choice"):
        s.add(func, "@every 1s", id="job", agents=3, **durable)
    assert s.jobs() == []
