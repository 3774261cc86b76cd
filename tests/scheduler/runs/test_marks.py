"""Between room and begin: a run of a stored job waits until it is on record that it begins, and much may happen."""

import logging
import threading
from datetime import timedelta
from functools import partial

import pytest
from anyio.to_thread import run_sync

from schedule import Cron, Every, Missed
from scheduler import MissedReason, Outcome, Overlap, RunEnded, RunMissed, RunStarted, Scheduler, current_run
from scheduler._plan.timeline import instant_of
from scheduler.stores.memory import MemoryStore
from scheduler.testing import FlakyStore
from timerqueue.testing import START

EVERY_10_S = Every("10s", anchor=START)


def seconds(instant):
    """Tell how long after the start that was."""
    return round((instant if isinstance(instant, float) else instant.timestamp()) - START.timestamp(), 6)


def told(records):
    """Tell of each record, first due first: when it was due, how it ended or why not, of how many ticks."""
    return [(seconds(each.due), (each.reason or each.outcome).value, each.count) for each in reversed(records)]


class HeldUp:
    """A store whose next commit with a mark is held up until it is let go, as by another process that has it locked."""

    is_immediate = False

    def __init__(self, store=None):
        self._store = MemoryStore() if store is None else store
        self.has_come = threading.Event()
        self.may_go = threading.Event()

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, batch):
        if batch.marks:
            self.has_come.set()
            self.may_go.wait()
        return self._store.commit(batch)

    def another(self):
        return self._store.another()


def scheduler(store, clock, events, begun=None):
    s = Scheduler(store=store, clock=clock, blocked_after=None)
    s.listen(events)
    s.register("work", lambda: None if begun is None else begun.append(clock.now()), inline=True)
    return s


@pytest.mark.parametrize("grace", [0, 5])
async def test_nothing_begins_after_stop_though_its_mark_becomes_durable(clock, events, grace):
    """Its tick is on record as missed, since nobody knew whether the mark came through."""
    store, begun = HeldUp(), []
    async with scheduler(store, clock, events, begun) as s:
        s.add("work", EVERY_10_S, id="a")
        await s.flush()
        await clock.travel(10)
        await run_sync(store.has_come.wait)
        s.stop(grace)
        await clock.travel(1)
        store.may_go.set()
    assert begun == []
    assert events.missed() == [(1, MissedReason.STOPPED)]
    async with scheduler(store.another(), clock, events) as s:
        assert told(await s.history()) == [(10, "stopped", 1)]
        assert (s.get("a").statistics().runs, s.get("a").statistics().missed) == (0, 1)


async def test_an_attempt_that_must_not_be_lost_outlives_a_stop_while_it_is_being_recorded(clock, events):
    """It has not begun, and the next scheduler makes it."""
    memory, begun = MemoryStore(), []

    async def work():
        begun.append(current_run().attempt)
        await clock.sleep(1_000)

    def life(store):
        s = Scheduler(store=store, clock=clock, blocked_after=None)
        s.register("work", work)
        return s

    async with life(memory) as s:
        s.add("work", "@every 1d", id="a", start="now", delivery="at_least_once")
        await clock.travel(1)
        s.stop(0)  # cuts off the first attempt
    store = HeldUp(memory)
    async with life(store) as s:
        await clock.travel(1)
        await run_sync(store.has_come.wait)
        s.stop(5)
        await clock.travel(1)
        store.may_go.set()
    assert begun == [1]
    async with life(memory) as s:
        await clock.travel(1)
        assert begun == [1, 2]
        (record,) = await s.history("a")
        assert (record.attempt, s.get("a").statistics().runs) == (2, 2)
        s.stop(0)


async def test_a_tick_that_was_marked_and_not_begun_at_a_stop_is_owed_with_at_least_once(clock, events):
    """The next scheduler makes its next attempt at once, since nobody knew whether the mark came through."""
    store, begun = HeldUp(), []
    async with scheduler(store, clock, events, begun) as s:
        s.add("work", "@every 1h", id="a", delivery="at_least_once", start=clock.now() + timedelta(seconds=10))
        await s.flush()
        await clock.travel(10)
        await run_sync(store.has_come.wait)
        s.stop(5)
        await clock.travel(1)
        store.may_go.set()
    assert begun == []
    (owed,) = store.another().owed()
    async with scheduler(store.another(), clock, events, begun) as s:
        await clock.travel(1)
        (record,) = await s.history()
    assert len(begun) == 1
    assert (record.due, record.attempt, record.outcome) == (
        instant_of(owed.due_us),
        owed.attempt + 1,
        Outcome.SUCCEEDED,
    )


async def test_a_run_whose_name_is_taken_begins_under_one_that_is_its_own(processes, clock):
    """Not before the store has said so of the next name too: that may be taken as well."""
    for later in (10, 20, 30):
        async with processes.one(100) as s:
            s.add("work", "@every 1d", id="job", overlap=Overlap.ALLOW, on_conflict="keep")
            for _ in range(3):
                s.get("job").run_now()
                await clock.travel(0)
            await clock.travel(later)
            s.get("job").run_now()
            await clock.travel(0)
        clock.step(-later)
    dues = [due for due, _ in processes.begun]
    assert len(dues) == len(set(dues)) == 12
    assert {instant_of(tick.due_us) for tick in processes.store.history() if tick.attempt} == set(dues)


def break_down(store, s):
    """From the next commit on nothing is stored; what is noted first keeps all later marks waiting unsent."""
    store.fail_on = range(store.counted + 1, store.counted + 10_000)
    s.get("other").pause()


OVERLAPS = [
    {},
    {"overlap": Overlap.QUEUE},
    {"overlap": Overlap.REPLACE},
    {"overlap": Overlap.ALLOW, "max_running": 2},
    {"missed": Missed.ALL, "catch_up": 2},
    {"missed": Missed.SKIP, "grace": "1h"},
]


@pytest.mark.parametrize("options", OVERLAPS)
@pytest.mark.parametrize("ticks", [1, 2, 3, 4, 7])
async def test_what_waits_for_the_store_at_a_stop_is_counted_once(clock, events, options, ticks):
    """However many ticks have come meanwhile: each of them has one record, or is due at the next start."""
    memory = MemoryStore()
    store = FlakyStore(memory)
    async with scheduler(store, clock, events) as s:
        s.add("work", EVERY_10_S, id="a", **options)
        s.add("work", "@every 1d", id="other")
        await clock.travel(15)
        break_down(store, s)
        await clock.travel(10 * ticks)
        store.fail_on = ()
    await clock.travel(35)
    async with scheduler(memory, clock, events) as s:
        await clock.travel(12)
        slots = [due + 10 * n for due, _, count in told(await s.history("a")) for n in range(count)]
        statistics = s.get("a").statistics()
    assert slots == [10 * n for n in range(1, len(slots) + 1)]
    assert len(slots) == (15 + 10 * ticks + 35 + 12) // 10
    assert statistics.runs + statistics.missed == len(slots)
    assert sum(event.count for event in events.of(RunMissed)) == statistics.missed


async def test_a_tick_that_goes_because_of_the_store_says_so(clock, events):
    """Nothing was full, and no run went on: it had room, and waited to be on record."""
    store = FlakyStore(MemoryStore())
    async with scheduler(store, clock, events) as s:
        s.add("work", EVERY_10_S, id="a")
        s.add("work", "@every 1d", id="other")
        await clock.travel(15)
        break_down(store, s)
        await clock.travel(25)
        store.fail_on = ()
        await clock.travel(6)
        assert told(await s.history("a")) == [(10, "succeeded", 1), (20, "store", 2), (40, "succeeded", 1)]
    assert events.missed() == [(1, MissedReason.STORE)] * 2


async def test_a_tick_that_is_being_recorded_keeps_its_name(clock, events):
    """The commit may come through at any moment; those that come meanwhile go, because of the store."""
    store = FlakyStore(MemoryStore())
    async with scheduler(store, clock, events) as s:
        s.add("work", EVERY_10_S, id="a")
        await clock.travel(15)
        store.fail_on = range(store.counted + 1, store.counted + 10_000)
        await clock.travel(25)
        store.fail_on = ()
        await clock.travel(6)
        assert told(await s.history("a")) == [(10, "succeeded", 1), (20, "succeeded", 1), (30, "store", 2)]


async def test_a_run_that_waits_for_the_store_needs_what_its_job_needs_by_then(clock, events):
    """It stepped aside under a limit that others have filled since; its job needs that no more."""
    store = FlakyStore(MemoryStore())
    async with Scheduler(store=store, clock=clock, limits={"full": 1}) as s:
        s.listen(events)
        s.register("work", lambda: None, inline=True)
        s.add("work", EVERY_10_S, id="a", needs="full")
        s.add("work", "@every 1d", id="other")
        await clock.travel(15)
        break_down(store, s)
        await clock.travel(6)
        s.add(partial(clock.sleep, 1_000), "@every 1d", needs="full", id="hog", start="now", durable=False)
        await clock.travel(0)
        s.get("a").update(needs=())
        store.fail_on = ()
        await clock.travel(6)
        assert told(await s.history("a")) == [(10, "succeeded", 1), (20, "succeeded", 1)]
        s.stop(grace=0)


async def test_an_impatient_tick_that_waited_for_the_store_was_not_left_out_for_want_of_room(clock, events):
    """It had room in time."""
    store = FlakyStore(MemoryStore())
    async with scheduler(store, clock, events) as s:
        s.add("work", EVERY_10_S, id="a", missed=Missed.SKIP, grace="1s")
        await clock.travel(15)
        store.fail_on = range(store.counted + 1, store.counted + 10_000)
        await clock.travel(8)
        store.fail_on = ()
        await clock.travel(6)
        assert told(await s.history("a")) == [(10, "succeeded", 1), (20, "store", 1)]
        assert s.get("a").statistics().runs == 1
    assert events.missed() == [(1, MissedReason.STORE)]


async def test_an_impatient_tick_that_had_no_room_in_time_is_not_recorded_first(clock, events):
    """It is missed for want of room, which is what it waited for, and costs one record."""
    store = FlakyStore(MemoryStore())
    s = Scheduler(store=store, clock=clock, limit=1)
    s.listen(events)
    s.register("work", clock.sleep)
    async with s:
        s.add("work", EVERY_10_S, id="long", args=(13,), priority=1)
        s.add("work", EVERY_10_S, id="a", args=(0,), missed=Missed.SKIP, grace="1s")
        await clock.travel(15)
        s.get("long").pause()
        await clock.travel(9)
        assert told(await s.history("a")) == [(10, "no room", 1), (20, "no room", 1)]
        assert events.of(RunStarted, job_id="a") == []
        await clock.travel(10)
        assert [event.outcome for event in events.of(RunEnded, job_id="a")] == [Outcome.SUCCEEDED]


EVERY_10_S_BY_THE_WALL = Cron("*/10 * * * * *")


@pytest.fixture
def errors(caplog):
    """What was logged as an error."""
    return lambda: [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


async def lose_ground(clock, s, seconds=25):
    """Let a job start at 10, 20 and 30 s, then set the clock back."""
    s.add("work", EVERY_10_S_BY_THE_WALL, id="a")
    s.add("work", "@every 1d", id="other")
    await clock.travel(31)
    clock.step(-seconds)
    await clock.travel(0)


VERBS = {
    "pause": lambda s: s.get("a").pause(),
    "pause all": lambda s: s.pause(),
    "remove": lambda s: s.get("a").remove(),
    "stop": lambda s: s.stop(5),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("answer", ["before", "after"])
async def test_what_is_dropped_while_the_store_is_about_to_refuse_it_has_a_record(clock, events, errors, verb, answer):
    """The clock was set back, so that the name of its tick is taken: it gets the next one, and nobody is alarmed."""
    memory = MemoryStore()
    store = FlakyStore(memory, before_or_after=answer)
    async with scheduler(store, clock, events) as s:
        await lose_ground(clock, s)
        store.fail_on = store.counted + 1
        await clock.travel(4.01)
        VERBS[verb](s)
        await clock.travel(0)
    async with scheduler(memory.another(), clock, events) as s:
        records = told(await s.history("a"))
    (missed,) = events.of(RunMissed)
    assert records == [
        (10, "succeeded", 1), (10.000001, missed.reason.value, 1), (20, "succeeded", 1), (30, "succeeded", 1)
    ]  # fmt: skip
    assert errors() == []


async def test_what_is_owed_because_of_a_stop_has_a_name_of_its_own_after_the_clock_was_set_back(clock, errors, events):
    """The store did not work, so that nobody knew yet that its mark would be refused."""
    memory = MemoryStore()
    store = FlakyStore(memory)
    async with scheduler(store, clock, events) as s:
        s.add("work", EVERY_10_S, id="a", delivery="at_least_once")
        await clock.travel(14)
        store.fail_on = range(store.counted + 1, store.counted + 10_000)
        clock.step(-10)
        await clock.travel(9)
        store.fail_on = ()
        s.stop(grace=0)
    async with scheduler(memory.another(), clock, events) as s:
        await clock.travel(1)
        assert told(await s.history("a")) == [(10, "succeeded", 1), (10.000001, "succeeded", 1)]
    assert errors() == []


async def test_what_is_missed_after_the_clock_was_set_back_has_records_beside_those_of_before(clock, events, errors):
    """As many as are counted: they lie a microsecond beside what has been at these instants the first time."""
    s = Scheduler(store=MemoryStore(), clock=clock)
    s.listen(events)
    s.register("work", clock.sleep)
    async with s:
        s.add("work", EVERY_10_S_BY_THE_WALL, id="a", args=(15,))
        await clock.travel(45)
        clock.step(-38)
        await clock.travel(200)
        await s.flush()
        records = await s.history("a")
        statistics = s.get("a").statistics()
        s.stop(0)
    assert statistics.runs == len([each for each in records if each.attempt])
    assert statistics.missed == sum(each.count for each in records if not each.attempt)
    assert statistics.missed == sum(event.count for event in events.of(RunMissed))
    assert statistics.runs + statistics.missed == (45 + 200) // 10
    assert errors() == []


class Choosy(FlakyStore):
    """It can store no mark of a job, and says nothing that anybody could make something of."""

    def commit(self, batch):
        if any(tick.job_id == "a" for tick in batch.marks):
            raise ValueError(batch)
        return super().commit(batch)


async def test_a_run_that_the_store_cannot_record_is_missed_because_of_the_store(clock, events, caplog):
    """It has not run before, and nobody says so."""
    async with scheduler(Choosy(MemoryStore()), clock, events) as s:
        s.add("work", EVERY_10_S, id="a")
        await clock.travel(11)
        assert told(await s.history("a")) == [(10, "store", 1)]
        assert s.get("a").statistics().runs == 0
    assert events.missed() == [(1, MissedReason.STORE)]
    assert "record already" not in caplog.text


async def test_after_the_clock_was_set_back_too_nothing_begins_before_it_is_on_record(clock, events):
    """The store refuses the name of the tick. With the next one it is asked again, and the run waits for the answer."""
    store, begun = FlakyStore(MemoryStore()), []

    async def work():
        due_us = round(current_run().due.timestamp() * 1e6)
        records = {record.due_us: record.outcome for record in store.history("a")}
        begun.append((due_us - int(START.timestamp()) * 1_000_000, records.get(due_us)))

    s = Scheduler(store=store, clock=clock)
    s.register("work", work)
    async with s:
        s.add("work", EVERY_10_S_BY_THE_WALL, id="a")
        await clock.travel(31)
        clock.step(-31)
        await clock.travel(11)
        clock.step(-12)
        await clock.travel(12)
        assert [due for due, _ in begun] == [10_000_000, 20_000_000, 30_000_000, 10_000_001, 0, 10_000_002]
        assert {outcome for _, outcome in begun} == {"running"}
        assert [record.outcome for record in await s.history("a")] == [Outcome.SUCCEEDED] * 6


async def test_what_is_due_after_the_end_is_the_next_schedulers(clock, events):
    """A verb that comes too late tells of nothing that it cannot change."""
    memory = MemoryStore()
    store = FlakyStore(memory)
    s = scheduler(store, clock, events)
    async with s:
        s.add("work", EVERY_10_S, id="a")
        s.add("work", "@every 1d", id="other")
        await clock.travel(5)
        break_down(store, s)
        await clock.travel(6)
        store.fail_on = ()
    s.pause()
    s.get("a").remove()
    assert events.of(RunMissed) == []
    async with scheduler(memory, clock, events) as s:
        await clock.travel(1)
        assert told(await s.history("a")) == [(10, "succeeded", 1)]


@pytest.mark.parametrize("schedule", ["@every 10s anchor=2026-01-01T00:00:00Z", "*/10 * * * * *", "@after 10s"])
@pytest.mark.parametrize("verb", ["run_now", "set_next_start"])
@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_start_by_hand_in_the_microsecond_of_a_tick_is_a_run_of_its_own(
    clock, events, schedule, verb, is_stored
):
    """It has the next microsecond for its name."""
    s = scheduler(MemoryStore() if is_stored else None, clock, events)
    async with s:
        job = s.add("work", schedule, id="a", start=START + timedelta(seconds=10))
        await clock.travel(10)
        assert len(events.of(RunEnded)) == 1
        job.run_now() if verb == "run_now" else job.set_next_start(clock.now())
        await clock.travel(1)
    assert [seconds(event.due) for event in events.of(RunEnded)] == [10, 10.000001]
    assert events.missed() == []


async def test_a_run_by_hand_just_before_a_tick_does_not_take_its_name(clock, events):
    """Both have a record, the one as a run and the other as what it is by the overlap rule."""
    async with scheduler(MemoryStore(), clock, events) as s:
        job = s.add("work", EVERY_10_S, id="a", overlap=Overlap.QUEUE)
        clock.advance(10)
        job.run_now()
        await clock.travel(1)
        assert told(await s.history("a")) == [(10, "succeeded", 1), (10.000001, "succeeded", 1)]


async def test_a_run_that_was_asked_for_just_before_the_stop_is_told_as_missed(clock, events):
    """In another thread, so that the loop comes to it only after the stop."""
    memory = MemoryStore()
    async with scheduler(memory, clock, events) as s:
        job = s.add("work", "@every 1d", id="a")
        await clock.travel(5)

        def both():
            job.run_now()
            s.stop()

        thread = threading.Thread(target=both)
        thread.start()
        thread.join()
    assert events.missed() == [(1, MissedReason.STOPPED)]
    async with scheduler(memory, clock, events) as s:
        assert [record.reason for record in await s.history("a")] == [MissedReason.STOPPED]


@pytest.mark.parametrize("waits_for", ["the store", "the end of a run"])
@pytest.mark.parametrize("how", ["the clock was set", "by hand"])
async def test_a_waiting_tick_that_the_next_scheduler_could_not_find_is_missed_at_the_stop(
    clock, events, waits_for, how
):
    """It lies beside the grid, from which the next start follows: nothing else would tell of it."""
    memory = MemoryStore()
    store = FlakyStore(memory)
    s = Scheduler(store=store, clock=clock)
    s.listen(events)
    s.register("work", clock.sleep)
    async with s:
        s.add("work", EVERY_10_S, id="a", overlap=Overlap.QUEUE, args=(0 if waits_for == "the store" else 30,))
        s.add("work", "@every 1d", id="other", args=(0,))
        await clock.travel(11)
        if waits_for == "the store":
            break_down(store, s)
        if how == "by hand":
            s.get("a").run_now()
            await clock.travel(1)
        else:
            await clock.travel(10)
            clock.step(-7.5)
            await clock.travel(0)
        store.fail_on = ()
        s.stop(0)
    async with scheduler(memory, clock, events) as s:
        records = told(await s.history("a"))
    assert records[1:] == [(11 if how == "by hand" else 20, "stopped", 1)]
    assert events.missed("a") == [(1, MissedReason.STOPPED)]


async def test_a_run_by_hand_that_must_not_be_lost_is_owed_after_a_stop_and_is_no_crash(clock, events):
    """Its mark had not been sent: it is taken back, and only the record that it is owed is stored."""
    memory = MemoryStore()
    store = FlakyStore(memory)
    async with scheduler(store, clock, events) as s:
        s.add("work", EVERY_10_S, id="a", delivery="at_least_once")
        s.add("work", "@every 1d", id="other")
        await clock.travel(5)
        break_down(store, s)
        s.get("a").run_now()
        await clock.travel(1)
        store.fail_on = ()
        s.stop(0)
    async with scheduler(memory, clock, events) as s:
        await clock.travel(1)
        assert told(await s.history("a")) == [(5, "succeeded", 1)]
    assert events.outcomes("a") == [Outcome.SUCCEEDED]
