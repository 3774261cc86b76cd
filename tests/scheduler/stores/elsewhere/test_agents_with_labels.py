"""Jobs that are for agents with some labels: they run where these are, move among such agents, and wait else."""

import logging
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from anyio.to_thread import run_sync

from kit import no_hint, until
from schedule import At, Every
from scheduler import InvalidJob, MissedReason, RunEnded, RunMissed, Scheduler, audit_store, current_run
from scheduler.stores import RUNNING, Batch, StoredJob, StoredTick
from scheduler.stores.postgres import PostgresStore

EU = "region=eu"
IDS = [f"job {number}" for number in range(12)]


def add(s, ids=IDS, where=EU, every="100ms"):
    return [s.add("work", Every(every), id=id, where=where) for id in ids]


async def test_jobs_run_where_their_labels_are(fleet):
    """Whoever adds them. Those that ask for none run on both."""
    async with fleet.agent("us", region="us") as us, fleet.agent("eu", region="eu", zone="a") as eu:
        add(us)
        add(eu, ["two labels"], "zone=a, region=eu")
        add(us, [f"any {number}" for number in range(20)], None)
        assert await fleet.all_run([*IDS, "two labels"]) == {"eu"}
        await until(lambda: {job.agent for job in us.jobs() if job.policy.where is None} == {"us", "eu"})
        assert {us.get(id).agent for id in IDS} == {"eu"}
        assert {job.error for job in us.jobs()} == {None}
    assert {id for name, id, _ in fleet.runs if name == "us"}.isdisjoint({*IDS, "two labels"})
    assert len({(id, due) for _, id, due in fleet.runs}) == len(fleet.runs)


async def test_jobs_that_nobody_may_have_wait_and_say_so(fleet, caplog):
    """They are told of once, and go on as soon as an agent fits."""
    caplog.set_level(logging.INFO, "scheduler")
    async with fleet.agent("us", region="us") as us:
        jobs = add(us)
        await us.flush()
        await until(lambda: us.statistics().fleet.waiting == {EU: len(IDS)})
        assert {(job.error, job.agent, job.next_start) for job in jobs} == {("no node has region=eu", None, None)}
        await until(lambda: "no node has region=eu" in caplog.text)
        assert fleet.store().fleet().waiting == {EU: len(IDS)}
        assert fleet.runs == []
        async with fleet.agent("eu", region="eu"):
            assert await fleet.all_run(IDS) == {"eu"}
            await until(lambda: us.statistics().fleet.waiting == {})
            assert {(job.error, job.agent) for job in jobs} == {(None, "eu")}
            assert None not in {job.next_start for job in jobs}
            await until(lambda: "not so any more that no node has region=eu" in caplog.text)
            assert caplog.text.count("no node has region=eu: jobs for such nodes wait") == 1


async def test_what_was_due_while_nobody_fitted_is_planned_by_missed(fleet):
    """As after any other gap: by default the newest runs at once, and the others have one record. A job that starts
    once starts late.
    """
    missed = []
    async with fleet.agent("us", region="us") as us:
        async with fleet.agent("eu", region="eu"):
            job = us.add("work", Every("50ms"), id="job", where=EU)
            assert await fleet.all_run(["job"]) == {"eu"}
        await until(lambda: job.error is not None)
        once = us.add("work", At(datetime.now(UTC) + timedelta(milliseconds=200)), id="once", where=EU)
        await us.flush()
        await until(lambda: datetime.now(UTC) - fleet.runs[-1][2] > timedelta(milliseconds=500))
        fit, since = fleet.scheduler("eu again", region="eu"), len(fleet.runs)
        fit.listen(missed.append, RunMissed)
        async with fit:
            assert await fleet.all_run(["job", "once"], since) == {"eu again"}
            await until(lambda: MissedReason.LATE in {each.reason for each in missed})
            fit.stop(grace=0)
        await until(lambda: once.id not in us)
    assert {each.job_id for each in missed} == {"job"}
    assert sum(each.count for each in missed if each.reason is MissedReason.LATE) >= 5


async def test_an_audit_finds_nothing_wrong_with_jobs_that_wait(fleet):
    """Though they are late: nothing could be mended. Those that somebody has are looked at."""
    async with fleet.agent("us", region="us") as us:
        jobs = add(us, every="1h")
        await us.flush()
        await until(lambda: us.statistics().fleet.waiting)
        fleet.execute("UPDATE job_state SET next_us = 1000000")
        found = await run_sync(lambda: audit_store(fleet.store()))
        assert (found.jobs, found.mended, found.left) == (len(IDS), 0, 0)
        assert (await us.audit()).failed == 0
        async with fleet.agent("eu", region="eu") as eu:
            assert await fleet.all_run(IDS, since=0) == {"eu"}
            await eu.flush()
            fleet.execute("UPDATE job_state SET next_us = 1000000 WHERE job_id = %s", jobs[0].id)
            found = await run_sync(lambda: audit_store(fleet.store()))
            assert [each.job_id for each in found.findings] == [jobs[0].id]


async def test_jobs_go_to_another_agent_that_fits(fleet):
    """To one that joins some, and to the one that is left all. Never to one that does not fit."""
    async with fleet.agent("us", region="us") as us, fleet.agent("one", region="eu") as one:
        jobs = add(one)
        assert await fleet.all_run(IDS) == {"one"}
        async with fleet.agent("two", region="eu"):
            await until(lambda: {job.agent for job in jobs} == {"one", "two"})
            await until(lambda: {us.get(id).agent for id in IDS} == {"one", "two"})
            await until(lambda: "two" in fleet.runners())
        await until(lambda: {job.agent for job in jobs} == {"one"})
        assert await fleet.all_run(IDS) == {"one"}
    assert fleet.runners() == {"one", "two"}


async def test_any_agent_may_ask_for_a_run(fleet):
    """The one that has the job runs it, or the first that fits."""
    async with fleet.agent("us", region="us") as us:
        [job] = add(us, ["job"], every="1h")
        await us.flush()
        asked = job.run_now()
        await us.flush()
        async with fleet.agent("eu", region="eu"):
            assert isinstance(await asked, RunEnded)
            assert isinstance(await job.run_now(), RunEnded)
            job.pause("by hand")
            await until(lambda: job.error == "by hand")
    assert [(name, id) for name, id, _ in fleet.runs] == [("eu", "job")] * 2


async def test_a_job_that_is_written_by_hand_is_placed(fleet):
    """So is one whose labels somebody changes by hand."""
    async with fleet.agent("us", region="us") as us, fleet.agent("eu", region="eu") as eu:
        fleet.execute(
            "INSERT INTO job (id, task, schedule, options) VALUES ('job', 'work', '@every 100ms', %s)",
            '{"where": "region=eu"}',
        )
        assert await fleet.all_run(["job"]) == {"eu"}
        for where, name in (('{"where": "region=us"}', "us"), ('{"where": "region=eu"}', "eu")):
            fleet.execute("UPDATE job SET options = %s", where)
            await until(lambda name=name: {s.get("job").agent for s in (us, eu) if "job" in s} == {name})
            await until(lambda name=name: fleet.runs[-1][0] == name)
            assert await fleet.all_run(["job"]) == {name}
    assert len({due for *_, due in fleet.runs}) == len(fleet.runs)


async def test_what_runs_of_a_job_that_gets_other_labels_is_cancelled_and_no_crash(fleet):
    """Its agent is there, and ends it. It was taken for a crash where the new one came first, and the job rested."""
    begun = []

    async def long():
        begun.append(current_run().attempt)
        await anyio.sleep_forever()

    async with fleet.agent("us", region="us") as us, fleet.agent("eu", region="eu") as eu:
        for s in (us, eu):
            s.register("long", long)
        for turn in range(1, 4):
            s, here, there = (eu, "eu", "us") if turn % 2 else (us, "us", "eu")
            s.add("long", "@every 100ms", id=f"job {turn}", where=f"region={here}")
            await until(lambda turn=turn: len(begun) == 2 * turn - 1)
            await s.flush()
            fleet.execute("UPDATE job SET options = %s", f'{{"where": "region={there}"}}')
            await until(lambda turn=turn: len(begun) == 2 * turn)
            await us.flush()
            fleet.execute("DELETE FROM job")
            await until(lambda: not us.jobs() and not eu.jobs())
        await eu.flush()
        ends = fleet.execute("SELECT DISTINCT outcome FROM tick WHERE outcome <> 'missed'").fetchall()
    assert set(ends) <= {("cancelled",), ("running",)}


async def test_jobs_come_and_go_beside_the_removal_of_their_shards(fleet, monkeypatch):
    """Each runs. What nobody asks for any more is not there for long."""
    monkeypatch.setattr("scheduler._fleet.shards.handoff.FORGETS", 0.0)
    async with fleet.agent("eu", region="eu") as eu, fleet.agent("also eu", region="eu"):
        for turn in range(4):
            ids = [f"job {turn} {number}" for number in range(8)]
            jobs = add(eu, ids)
            await fleet.all_run(ids, since=0)
            for job in jobs:
                job.remove()
            await eu.flush()
            if turn % 2:
                await until(lambda: fleet.execute("SELECT count(*) FROM labelled_shard").fetchone() == (0,))


async def test_a_run_whose_agent_dies_before_it_has_ended_it_is_recorded_as_cut_off(fleet):
    """Its job got other labels by hand, so another agent has that by now. It left the record to who was still there."""
    us = fleet.store("us", region="us")
    us.open(0, no_hint)
    us.sharing.renew()
    row = StoredJob("job", "work", "@every 1h", options='{"where": "region=eu"}')
    us.commit(Batch(jobs={"job": row}, marks=[StoredTick("job", 5, 1, us.epoch << 32 | 1, RUNNING, 6)]))
    async with fleet.agent("eu", region="eu") as eu:
        await until(lambda: eu.get("job").agent == "eu")
        await eu.flush()
        outcome = "SELECT outcome FROM tick WHERE job_id = 'job' AND due_us = 5"
        assert fleet.execute(outcome).fetchone() == ("running",)
        us.close()
        await until(lambda: fleet.execute(outcome).fetchone() == ("crashed",))


async def test_a_row_whose_labels_are_none_costs_its_own_job(fleet):
    """It is parked, and says what is wrong."""
    async with fleet.agent("eu", region="eu") as eu:
        fleet.execute(
            "INSERT INTO job (id, task, schedule, options) VALUES ('job', 'work', '@every 100ms', %s)",
            '{"where": "region"}',
        )
        await until(lambda: "job" in eu)
        assert "where must be labels such as" in eu.get("job").error
        add(eu)
        assert await fleet.all_run(IDS) == {"eu"}
    assert "job" not in {id for _, id, _ in fleet.runs}


@pytest.mark.parametrize("where", ["region", "", "region=eu,region=us", 5, {"region": "eu"}, "x" * 1_001])
async def test_what_is_no_text_of_labels_is_refused(fleet, where):
    """At once, with what it was and what to write."""
    s = fleet.scheduler("eu")
    with pytest.raises(InvalidJob, match="where must be"):
        s.add("work", Every(1), id="job", where=where)
    with pytest.raises(InvalidJob, match="where must be"):
        s.add_many("work", [("job", Every(1))], where=where)
    assert s.jobs() == []


def test_a_job_keeps_its_labels(fleet):
    """Its agent may be at work on it."""
    s = fleet.scheduler("eu")
    job = s.add("work", Every(1), id="job", where=EU)
    with pytest.raises(InvalidJob, match=r"job 'job' keeps its where, 'region=eu'.*replace"):
        job.update(where="region=us")
    with pytest.raises(InvalidJob, match=r"keeps its where"):
        s.add("work", Every(1), id="job", on_conflict="update")
    job.update(where=EU, priority=3)
    assert s.add("work", Every(1), id="job", where="region=us", on_conflict="replace").policy.where == "region=us"


@pytest.mark.parametrize("kind", ["none", "memory", "sqlite", "postgres", "not stored"])
def test_labels_need_agents_that_share_a_store(fleet, tmp_path, kind):
    """Where nobody else could have the job it would run without them, or never."""
    s = Scheduler(store=fleet.store_of(kind, tmp_path))
    s.register("work", work)
    durable = {} if kind == "none" else {"durable": kind != "not stored"}
    func = "work" if durable.get("durable", True) else work
    with pytest.raises(InvalidJob, match=r"where='region=eu' chooses among nodes.*PostgresStore\(dsn, shared=True, "):
        s.add(func, Every(1), id="job", where=EU, **durable)
    with pytest.raises(InvalidJob, match="where='region=eu' chooses among nodes"):
        s.add_many(func, [("job", Every(1))], where=EU, **durable)
    assert s.jobs() == []


async def work():
    """Do nothing."""


async def test_a_store_that_is_not_shared_any_more_parks_such_jobs(fleet):
    """Their row stays, and they go on once nodes share it again."""
    async with fleet.agent("eu", region="eu") as eu:
        add(eu, ["job"])
        await eu.flush()
    alone = Scheduler(store=PostgresStore(fleet.dsn, schema=fleet.schema))
    alone.register("work", work)
    async with alone:
        assert "chooses among nodes" in alone.get("job").error
    async with fleet.agent("eu", region="eu"):
        assert await fleet.all_run(["job"]) == {"eu"}
