"""Pauses of a job, of its tag and of everything only hold what is owed, whenever they begin and end."""

from datetime import timedelta

import pytest

from scheduler import Overlap

FLOOR = {"crash_floor": "60s"}
HOW_IT_ENDS = pytest.mark.parametrize("dies", [True, False], ids=["death", "stop"])


def pause(s, scope):
    """Pause the job, its tag or everything."""
    match scope:
        case "job":
            s.get("job").pause("for a test")
        case "tag":
            s.pause("tag")
        case "all":
            s.pause()


def resume(s, scope):
    """End that pause."""
    match scope:
        case "job":
            s.get("job").resume()
        case "tag":
            s.resume("tag")
        case "all":
            s.resume()


SCOPES = pytest.mark.parametrize("scope", ["job", "tag", "all"])


@SCOPES
@HOW_IT_ENDS
@pytest.mark.parametrize("length", [0, 10, 600])
async def test_a_pause_after_the_end_only_holds_what_is_owed(processes, dies, scope, length):
    """However short it is. Once the floor is over and nothing holds the job, the tick is tried again at once."""
    (due,) = await processes.owe(dies=dies, before=lambda s: pause(s, scope) if not dies else None)
    async with processes.one(**FLOOR) as s:
        await processes.clock.travel(1)
        pause(s, scope)
        await processes.clock.travel(length)
        assert processes.attempts(due) == [1]
        resume(s, scope)
        await processes.clock.travel(61)
    assert processes.attempts(due) == [1, 2]
    assert processes.summary([due]) == [(2, "succeeded")]
    assert processes.store.owed() == []


@SCOPES
@HOW_IT_ENDS
async def test_a_pause_before_the_end_only_holds_what_is_owed(processes, dies, scope):
    """As for maintenance: everything is paused, the process ended, started again, and later resumed."""
    (due,) = await processes.owe(dies=dies, before=lambda s: pause(s, scope))
    async with processes.one(**FLOOR) as s:
        await processes.clock.travel(600)
        assert processes.attempts(due) == [1]
        resume(s, scope)
        await processes.clock.travel(2)
        assert processes.attempts(due) == [1, 2]
    assert processes.summary([due]) == [(2, "succeeded")]


@SCOPES
@HOW_IT_ENDS
async def test_a_pause_outlives_processes_without_losing_what_is_owed(processes, dies, scope):
    """One that begins before the end and ends two processes later."""
    (due,) = await processes.owe(dies=dies, before=lambda s: pause(s, scope))
    for _ in range(2):
        async with processes.one(**FLOOR):
            await processes.clock.travel(100)
    async with processes.one(**FLOOR) as s:
        resume(s, scope)
        await processes.clock.travel(2)
    assert processes.attempts(due) == [1, 2]


async def test_a_pause_that_ends_by_itself_lets_what_is_owed_go(processes, clock):
    """Nobody has to resume it."""
    (due,) = await processes.owe()
    async with processes.one(**FLOOR) as s:
        s.get("job").pause("for a while", until=clock.now() + timedelta(seconds=200))
        await clock.travel(199)
        assert processes.attempts(due) == [1]
        await clock.travel(2)
        assert processes.attempts(due) == [1, 2]


async def test_a_job_in_quarantine_still_owes(processes):
    """It is tried again once somebody has resumed it."""
    (due,) = await processes.owe()
    for _ in range(2):
        async with processes.one(100_000, dies=True, **FLOOR):
            await processes.clock.travel(61)
    async with processes.one(**FLOOR) as s:
        await processes.clock.travel(7_200)
        assert "quarantined" in s.get("job").error
        assert processes.attempts(due) == [1, 2, 3]
        s.get("job").resume()
        await processes.clock.travel(2)
    assert processes.attempts(due) == [1, 2, 3, 4]
    assert processes.summary([due]) == [(4, "succeeded")]


@SCOPES
@HOW_IT_ENDS
async def test_a_short_pause_loses_none_of_several(processes, dies, scope):
    """Of a job that is never without a run: it starts each 10 s and takes 15."""
    allow = {"overlap": Overlap.ALLOW, "max_running": 20}
    owed = await processes.owe(dies=dies, schedule="@every 10s", runs=3, **allow)
    async with processes.one(15, **FLOOR) as s:
        await processes.clock.travel(2)
        pause(s, scope)
        await processes.clock.travel(2)
        resume(s, scope)
        await processes.clock.travel(120)
    assert processes.again() == owed
    assert processes.summary(owed) == [(2, "succeeded")] * 3
