"""How many ticks were missed is true, or it is said that there were at least so many: wherever it is shown."""

import pytest

from schedule import Calendar, Cron, Every
from scheduler import RunMissed, Scheduler
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

HOUR = 3_600
COUNTED = {
    "an interval": (Every("1m", anchor=START), 479),
    "a jittered interval": (Every("1m", anchor=START, jitter="1us"), 479),
    "cron": (Cron("* * * * *"), 479),
    "cron in a zone": (Cron("* * * * *", tz="Europe/Berlin"), 479),
    "seconds": (Cron("*/2 * * * * *"), 479 * 30 + 29),
    "a calendar": (Calendar("1 day", origin=START), 0),
}
UNION = Cron("* * * * *") | Every("7m", anchor=START)


@pytest.fixture
def store():
    """A store that all schedulers of a test share."""
    return MemoryStore()


def make(clock, store, events):
    """Make a scheduler on that store."""
    s = Scheduler(clock=clock, store=store)
    s.register("work", lambda: None, inline=True)
    s.listen(events)
    return s


@pytest.mark.parametrize(("schedule", "missed"), COUNTED.values(), ids=COUNTED)
async def test_a_downtime_of_eight_hours_costs_as_many_ticks_as_there_were(clock, store, events, schedule, missed):
    """A cron each minute had missed 32."""
    async with make(clock, store, events) as s:
        s.add("work", schedule, id="a")
        await clock.travel(90)
        await s.flush()
    clock.advance(8 * HOUR)
    async with make(clock, store, events) as s:
        await clock.travel(1)
        counts = s.get("a").statistics()
        assert (counts.missed, counts.missed_is_exact) == (missed, True)
        assert (s.statistics().missed, s.statistics().missed_is_exact) == (missed, True)
        assert [(e.count, e.is_exact) for e in events.of(RunMissed)] == ([(missed, True)] if missed else [])
        await s.flush()
        records = [record for record in await s.history("a") if record.reason is not None]
        assert [(record.count, record.is_exact) for record in records] == ([(missed, True)] if missed else [])


async def test_where_nobody_counts_them_it_is_said_that_there_were_at_least_so_many(clock, store, events):
    """In the event, in the statistics, in the history, and in all that the next process tells."""
    async with make(clock, store, events) as s:
        s.add("work", UNION, id="a")
        s.add("work", "* * * * *", id="b")
        await clock.travel(90)
        await s.flush()
    clock.advance(8 * HOUR)
    async with make(clock, store, events) as s:
        await clock.travel(1)
        assert {e.job_id: (e.count, e.is_exact) for e in events.of(RunMissed)} == {"a": (479, False), "b": (479, True)}
        assert s.get("a").statistics().missed_is_exact is False
        assert s.get("b").statistics().missed_is_exact is True
        assert s.statistics().missed_is_exact is False
        await s.flush()
    async with make(clock, store, events) as s:
        records = {record.job_id: record for record in await s.history() if record.reason is not None}
        assert (records["a"].count, records["a"].is_exact, records["a"].error) == (479, False, None)
        assert (records["b"].count, records["b"].is_exact, records["b"].error) == (479, True, None)
        assert s.get("a").statistics().missed_is_exact is False
        assert s.get("b").statistics().missed_is_exact is True


async def test_a_record_of_several_gaps_is_exact_if_all_of_them_are(clock, store, events):
    """Ticks that follow one another for one reason are one record."""
    async with make(clock, store, events) as s:
        s.add("work", UNION, id="a")
        await clock.travel(90)
        s.get("a").pause()
        s.get("a").resume()
        clock.advance(8 * HOUR)
        await clock.travel(0.001)
        await clock.travel(60)
        await s.flush()
        assert not s.get("a").statistics().missed_is_exact
        records = [record for record in await s.history("a") if record.reason is not None]
        assert [record.is_exact for record in records] == [False]


async def test_without_a_store_a_sleep_of_the_machine_says_the_same(clock, events):
    """The loop finds a gap behind it."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        union = s.add(lambda: None, UNION, id="a", inline=True)
        cron = s.add(lambda: None, "* * * * *", id="b", inline=True)
        await clock.travel(90)
        clock.advance(8 * HOUR)
        await clock.travel(1)
        assert {e.job_id: (e.count, e.is_exact) for e in events.of(RunMissed)} == {"a": (479, False), "b": (479, True)}
        assert (union.statistics().missed_is_exact, cron.statistics().missed_is_exact) == (False, True)
        assert s.statistics().missed_is_exact is False
