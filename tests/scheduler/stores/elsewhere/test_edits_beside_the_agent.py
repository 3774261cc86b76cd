"""A row that somebody edits or deletes while the agent writes it for another reason is not overwritten."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from kit import until
from schedule import At
from scheduler import JobRemoved, Retry, Scheduler
from scheduler.stores.sqlite import SQLiteStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "jobs.sqlite"


@pytest.fixture
def by_hand(path):
    """Carry out a statement as anybody does who has a client for SQLite."""

    def by_hand(statement, *values):
        with closing(sqlite3.connect(path)) as connection, connection:
            return connection.execute(statement, values).fetchall()

    return by_hand


@pytest.fixture
def agent(path, events):
    """Make an agent that looks for changes when it is told to: all is within the second between two looks."""
    s = Scheduler(store=SQLiteStore(path, durability="fast"), poll="1h")
    s.listen(events)

    def fail():
        raise ValueError

    s.register("work", lambda: None, inline=True)
    s.register("fail", fail, inline=True)
    return s


async def look(agent):
    """Look for changes now."""
    agent._memory.polling.poll()
    await agent.flush()


@pytest.mark.parametrize("how", ["by a verb", "by the agent itself"])
async def test_an_edit_outlives_a_pause_and_is_followed(agent, by_hand, how):
    """The whole row was written for it, and the edit was lost without a word."""
    async with agent as s:
        job = s.add("fail", "@every 100d", id="a", retry=Retry.constant("1h", max_retries=0))
        await s.flush()
        by_hand("UPDATE job SET schedule = '@every 5m', args = '[1]' WHERE id = 'a'")
        if how == "by a verb":
            job.pause("moving")
        else:
            job.run_now()
            await until(lambda: job.error is not None)
        reason = job.error
        await s.flush()
        assert by_hand("SELECT schedule, args, paused FROM job") == [("@every 5m", "[1]", reason)]
        await look(s)
        assert (str(job.schedule), job.args, job.error) == ("@every 5m", (1,), reason)
        job.resume()
        await s.flush()
        assert by_hand("SELECT schedule, args, paused FROM job") == [("@every 5m", "[1]", None)]


async def test_an_edit_that_is_seen_while_the_pause_is_on_its_way_is_followed(agent, by_hand):
    """With the pause: what the row said of that is older."""
    async with agent as s:
        job = s.add("work", "@every 100d", id="a")
        await s.flush()
        by_hand("UPDATE job SET schedule = '@every 5m' WHERE id = 'a'")
        s._memory.polling.poll()
        job.pause("moving")
        await s.flush()
        assert (str(job.schedule), job.error) == ("@every 5m", "moving")
        assert by_hand("SELECT schedule, paused FROM job") == [("@every 5m", "moving")]


async def test_a_deleted_row_stays_deleted_though_its_job_is_paused(agent, by_hand, events):
    """Nor does a pause of what could not be read bring its row back."""
    async with agent as s:
        job = s.add("work", "@every 100d", id="a")
        await s.flush()
        by_hand("DELETE FROM job")
        job.pause("moving")
        await s.flush()
        assert by_hand("SELECT * FROM job") == []
        await look(s)
        assert s.jobs() == []
        assert [event.job_id for event in events.of(JobRemoved)] == ["a"]


async def test_a_row_that_cannot_be_read_keeps_its_text_when_it_is_paused(agent, by_hand):
    """What is wrong in it may be mended meanwhile."""
    async with agent as s:
        s.add("work", "@every 100d", id="a")
        await s.flush()
        by_hand("UPDATE job SET args = '['")
        await look(s)
        assert "args" in s.get("a").error
        by_hand("UPDATE job SET args = '[7]'")
        s.get("a").pause("moving")
        await s.flush()
        assert by_hand("SELECT args, paused FROM job") == [("[7]", "moving")]
        await look(s)
        assert (s.get("a").args, s.get("a").error) == ((7,), "moving")


async def test_a_job_whose_schedule_is_over_stays_if_somebody_has_given_it_another(agent, by_hand):
    """It was removed by its id alone, and the edit of that very second was lost."""
    async with agent as s:
        at = datetime.now(UTC) + timedelta(seconds=0.5)
        for id in ("a", "b"):
            s.add("work", At(at), id=id)
        await s.flush()
        by_hand("UPDATE job SET schedule = '@every 5m' WHERE id = 'a'")
        await until(lambda: "a" not in [job.id for job in s.jobs()])
        await s.flush()
        assert by_hand("SELECT id, schedule FROM job") == [("a", "@every 5m")]
        await look(s)
        await until(lambda: [str(job.schedule) for job in s.jobs()] == ["@every 5m"])
