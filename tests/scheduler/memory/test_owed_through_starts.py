"""Programs that start in between lose nothing that is owed, and no rest after a crash, whatever they know."""

from datetime import timedelta

import pytest

from kit import at, check_every_slot
from schedule import Every
from scheduler.testing import FlakyStore
from timerqueue.testing import START

OWING = {"delivery": "at_least_once"}
HOURLY = "@every 1h"
FLOOR = {"crash_floor": "60s"}
LONG = 100_000
"""Seconds that a run takes which is to be cut off."""

HOW_IT_ENDS = pytest.mark.parametrize("dies", [True, False], ids=["death", "stop"])


@HOW_IT_ENDS
@pytest.mark.parametrize(
    "how", ["the same program", "another schedule", "without the task", "a row that cannot be read", "changed by hand"]
)
@pytest.mark.parametrize("seconds", [0, 5, 4_000])
async def test_a_start_in_between_loses_neither_the_tick_nor_the_rest(processes, dies, how, seconds):
    """Whatever that program knows of the job. What it tries again itself needs no other."""
    (due,) = await processes.owe(dies=dies)
    found = processes.clock.now()
    row = processes.row()
    if how == "a row that cannot be read":
        processes.edit(options="{")
    elif how == "changed by hand":
        processes.edit(schedule="@every 50m", kwargs="{}", name="renamed")
    async with processes.one(0, knows_task=how != "without the task", **FLOOR) as s:
        if how == "another schedule":
            s.add("work", "@every 2h", id="job", on_conflict="update", **OWING)
        await processes.clock.travel(seconds)
    is_parked = how in {"without the task", "a row that cannot be read"}
    if is_parked:
        assert processes.attempts(due) == [1]
        processes.store.edit(row)
    async with processes.one(**FLOOR):
        await processes.clock.travel(1)
        has_rested = not dies or seconds > 60
        assert processes.attempts(due) == ([1, 2] if has_rested else [1])
        if not has_rested:
            await processes.clock.travel(60 - (processes.clock.now() - found).total_seconds() - 1)
            assert processes.attempts(due) == [1]
            await processes.clock.travel(2)
        assert processes.attempts(due) == [1, 2]
        await processes.clock.travel(2)
    assert processes.summary([due]) == [(2, "succeeded")]


@HOW_IT_ENDS
async def test_processes_that_stop_as_soon_as_they_have_started_lose_nothing_that_is_owed(processes, dies):
    """One of them tries it again, and only one."""
    (due,) = await processes.owe(dies=dies)
    for seconds in (1, 10, 10):
        async with processes.one(0, **FLOOR):
            pass
        processes.clock.advance(seconds)
    async with processes.one(0, **FLOOR):
        await processes.clock.travel(60)
    assert processes.attempts(due)[-1] == len(processes.attempts(due)) >= 2
    assert processes.ended == [(due, processes.attempts(due)[-1])]
    assert processes.store.owed() == []


@pytest.mark.parametrize("schedule", [HOURLY, "@every 2h", "0 * * * *", "@after 90m"])
@HOW_IT_ENDS
async def test_a_program_that_adds_its_jobs_at_each_start_may_change_the_schedule(processes, dies, schedule):
    """That is every deployment: `on_conflict="update"`."""
    (due,) = await processes.owe(dies=dies)
    async with processes.one(**FLOOR) as s:
        s.add("work", schedule, id="job", on_conflict="update", **OWING)
        await processes.clock.travel(70)
    assert processes.attempts(due) == [1, 2]


async def test_a_one_shot_that_is_owed_is_tried_again_and_then_leaves(processes, clock):
    """It has no other start."""
    async with processes.one(LONG, dies=True, **FLOOR) as s:
        s.add("work", f"@at {clock.now() + timedelta(seconds=5):%Y-%m-%dT%H:%M:%SZ}", id="job", **OWING)
        await clock.travel(6)
    (due,) = [due for due, _ in processes.begun]
    async with processes.one(**FLOOR) as s:
        await clock.travel(30)
        s.get("job").pause()
        await clock.travel(60)
        s.get("job").resume()
        await clock.travel(5)
        assert processes.attempts(due) == [1, 2]
        assert s.jobs() == []


async def test_a_tick_that_is_owed_and_never_began_gives_way_to_no_newer_one(processes, clock):
    """Its run was given to the newest late start: that one was lost, and the owed tick was missed and tried again."""
    store = processes.store
    processes.store = FlakyStore(store, before_or_after="after")
    async with processes.one() as s:
        s.add("work", Every(10, anchor=START), id="job", delivery="at_least_once")
        await s.flush()
        processes.store.fail_on = range(10**6)
        await clock.travel(10.5)
        processes.store.fail_on = ()
    assert [tick.attempt for tick in store.owed()] == [0]
    processes.store = store
    clock.advance(40)
    async with processes.one():
        await clock.travel(20)
    assert processes.begun[0] == (at(10), 1)
    assert processes.summary([at(10)]) == [(1, "succeeded")]
    check_every_slot(store.history("job", limit=100), 10_000_000)
