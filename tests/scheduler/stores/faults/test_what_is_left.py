"""What agents leave in a store that they share, and nobody asks for any more, goes when history is pruned."""

from contextlib import closing
from itertools import count

import anyio

from kit import PATIENCE, no_hint, until
from schedule import Every
from scheduler import Retention, Scheduler
from scheduler.stores import Vote

HOUR_US = 3_600_000_000
COPY = """
    INSERT INTO job (id, task, schedule, options)
    SELECT %s, task, schedule, replace(options, %s, %s) FROM job WHERE id = %s
"""
COPY_STATE = """
    INSERT INTO job_state SELECT (jsonb_populate_record(job_state, jsonb_build_object(
        'job_id', %s::text, 'next_us', (extract(epoch FROM now()) - 3600 * %s)::bigint * 1000000
    ))).* FROM job_state WHERE job_id = %s
"""


def test_votes_that_were_counted_go_though_nobody_votes_any_more(fleet):
    """Who voted forgot them once in an hour of its own. Agents that lived for less left all of them."""
    now_us = 10 * HOUR_US
    with closing(fleet.store()) as store:
        store.open(now_us, no_hint)
        dues = [now_us - 2 * HOUR_US, now_us - HOUR_US // 2]
        store.voting.cast([Vote("a", due, store.epoch, "up") for due in dues])
        store.prune(Retention(), now_us)
        assert [vote.due_us for vote in store.voting.votes([("a", due) for due in dues])] == dues[1:]


def test_units_of_a_limit_that_nobody_knows_go_an_hour_after_their_end(fleet):
    """They went when the limit was asked for the next time, and that one was not. Those that are lent stay."""
    with closing(fleet.store()) as store:
        store.open(0, no_hint)
        unit = "INSERT INTO unit (\"limit\", number, epoch, until) VALUES ('gone', %s, 1, now() + %s::interval)"
        for number, left in enumerate([None, "1 hour", "-59 minutes", "-61 minutes"]):
            fleet.execute(unit, number, left)
        store.prune(Retention(), 0)
        left = fleet.execute("SELECT number FROM unit ORDER BY number").fetchall()
        assert left == [(0,), (1,), (2,)]


async def test_parts_for_processes_that_have_gone_go_a_day_after_they_were_due(fleet):
    """Each start of an agent without a name left one of each job that all agents run. A name of yours may come back."""
    s = Scheduler(store=fleet.store(None), poll="50ms")
    s.register("work", fleet.works_on("us"))
    async with s:
        s.add("work", Every("1d"), id="job", agents="all")
        await s.flush()
        (ours,) = [job.id for job in s.jobs() if job.id != "job"]
        assert ours.startswith("job@process ")
        names = ["process 1 on gone", "process 2 on gone", "web-1"]
        for name, hours in zip(names, [25, 23, 25], strict=True):
            fleet.execute(COPY, f"job@{name}", ours.removeprefix("job@"), name, ours)
            fleet.execute(COPY_STATE, f"job@{name}", hours, ours)
        stay = {"job", ours, *(f"job@{name}" for name in names[1:])}
        await until(lambda: {job.id for job in s.jobs()} >= stay)
        number = count()
        with anyio.fail_after(PATIENCE):
            while fleet.execute("SELECT FROM job WHERE id = %s", f"job@{names[0]}").rowcount:
                s.add_many("work", [(f"more {next(number)}", Every("1d")) for _ in range(1_000)])
                await s.flush()  # history is pruned after a thousand changes
        await until(lambda: {job.id for job in s.jobs() if job.id.startswith("job")} == stay)
