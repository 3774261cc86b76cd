"""Each start that a rest after a crash or a pause costs has one record, whichever of them comes first or ends first."""

import pytest

from kit import at, check_every_slot, nothing
from schedule import Every
from scheduler import MissedReason, RunMissed, Scheduler
from scheduler._starts.slices import SLICE
from timerqueue.testing import START

TEN_S = 10_000_000
FLOOR = {"crash_floor": "25s"}


def records(processes):
    """Return the records of the missed ticks of "job": first, last (seconds from the start), count, reason."""
    start_us = int(START.timestamp() * 1e6)
    found = [tick for tick in processes.store.history("job", limit=10_000) if tick.outcome == "missed"]
    found.sort(key=lambda tick: tick.due_us)
    return [
        ((tick.due_us - start_us) / 1e6, (tick.last_due_us - start_us) / 1e6, tick.count, tick.reason) for tick in found
    ]


def add_a_slice(s):
    """Add jobs that a pause of many halts first, so that it comes to the next job a turn later."""
    for _ in range(SLICE):
        s.add(nothing, "@every 1h", durable=False)


async def crash(processes):
    """Let the first process die under the run of 10 s, at 12 s."""
    async with processes.one(7, dies=True) as s:
        s.add("work", Every(10, anchor=START), id="job", tags=["tag"], delivery="at_least_once")
        await processes.clock.travel(12)


async def rest_and_pause(processes):
    """Let the second process die at 44 s: the job rests until 37 s, and a pause leaves out its start at 40 s."""
    await crash(processes)
    async with processes.one(1, dies=True, **FLOOR) as s:
        await processes.clock.travel(21)
        s.pause("tag", reason="by the load")
        await processes.clock.travel(11)
        s.resume("tag")
        await s.flush()


async def test_a_pause_over_the_end_of_a_rest_is_recorded_after_it(processes, clock):
    """So the next process goes on after both. It began with the first start of the rest, and counted all again."""
    await rest_and_pause(processes)
    assert records(processes) == [(20, 30, 2, "after crash"), (40, 40, 1, "paused")]
    async with processes.one(1, **FLOOR):
        await clock.travel(60)
    check_every_slot(processes.store.history("job", limit=100), TEN_S)


async def test_a_pause_in_the_next_process_too_counts_no_start_twice(processes, clock):
    """Two records of it said that it was paused."""
    await rest_and_pause(processes)
    async with processes.one(1, **FLOOR) as s:
        s.pause("tag", reason="by the load")
        await clock.travel(20)
        s.resume("tag")
        await clock.travel(60)
    check_every_slot(processes.store.history("job", limit=100), TEN_S)


async def test_a_rest_has_one_record_though_a_pause_begins_and_ends_in_it(processes, clock):
    """What follows it is recorded when it is over."""
    await crash(processes)
    async with processes.one(1, **FLOOR) as s:
        await clock.travel(5)
        s.pause("tag")
        await clock.travel(5)
        s.resume("tag")
        await clock.travel(40)
    assert records(processes) == [(20, 30, 2, "after crash")]


@pytest.mark.parametrize("seconds", [0, 10])
async def test_a_start_that_is_skipped_while_the_job_rests_is_recorded_after_the_rest(processes, clock, seconds):
    """The next process took the first start of the rest for the one that the skip had left."""
    await crash(processes)
    async with processes.one(1, dies=True, **FLOOR) as s:
        await clock.travel(15)
        s.get("job").skip()
        await s.flush()
        await clock.travel(1)
    assert records(processes) == [(20, 30, 2, "after crash"), (40, 40, 1, "skipped")]
    await clock.travel(seconds)
    async with processes.one(1, **FLOOR):
        await clock.travel(60)
    check_every_slot(processes.store.history("job", limit=100), TEN_S)


@pytest.mark.parametrize("is_told_first", [True, False], ids=["halted", "not halted yet"])
async def test_a_rest_that_is_ended_under_a_pause_leaves_its_starts_to_the_pause(processes, clock, is_told_first):
    """They had no record: the pause began with the first start after the rest."""
    await crash(processes)
    async with processes.one(1, add=add_a_slice, **FLOOR) as s:
        job = s.get("job")
        s.pause()
        await clock.travel(1 if is_told_first else 0)
        job.resume()
        await clock.travel(41)
        s.resume()
        await clock.travel(20)
    assert records(processes) == [(20, 50, 4, "paused")]
    check_every_slot(processes.store.history("job", limit=100), TEN_S)


@pytest.mark.parametrize("verb", ["set", "update"])
async def test_a_start_that_comes_before_a_pause_of_many_is_carried_out_is_left_out(clock, events, verb):
    """A verb that replaced it then left no trace of it."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        add_a_slice(s)
        job = s.add(nothing, Every(10, anchor=START))
        await clock.travel(1)
        s.pause()
        clock.advance(20)
        if verb == "set":
            job.set_next_start(at(100))
        else:
            job.update(schedule=Every(40, anchor=START))
        await clock.travel(1)
        found = [event for event in events.of(RunMissed) if event.reason is MissedReason.PAUSED]
        assert [(event.first_due, event.last_due, event.count) for event in found] == [(at(10), at(20), 2)]
