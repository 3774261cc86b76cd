"""With delivery at least once, a tick that a death or a stop has cut off is owed until it has run, or was given up.

The floor of these schedulers is a minute, so that it ends before the next start of a job of each hour.
"""

import pytest

from kit import broken
from schedule import Every
from scheduler import JobState, Outcome, Overlap
from scheduler.stores import RUNNING
from timerqueue.testing import START

OWING = {"delivery": "at_least_once"}
HOURLY = "@every 1h"
FLOOR = {"crash_floor": "60s"}
LONG = 100_000
"""Seconds that a run takes which is to be cut off."""

HOW_IT_ENDS = pytest.mark.parametrize("dies", [True, False], ids=["death", "stop"])


async def test_a_tick_that_its_process_died_under_is_owed(processes):
    """Its record says so, from when the next process finds it until that tries it again."""
    (due,) = await processes.owe()
    assert not processes.record(due).owed
    assert processes.record(due).outcome == RUNNING
    async with processes.one(LONG, dies=True, **FLOOR) as s:
        await processes.clock.travel(59)
        assert processes.record(due) in processes.store.owed()
        assert processes.record(due).outcome == "crashed"
        await processes.clock.travel(2)
        assert processes.store.owed() == []
        assert s.get("job").state is JobState.RUNNING
    assert processes.summary([due]) == [(2, RUNNING)]


async def test_a_tick_that_a_stop_cut_off_is_owed_at_once(processes):
    """The next process tries it again as soon as it has begun."""
    (due,) = await processes.owe(dies=False)
    assert [(tick.outcome, tick.owed) for tick in processes.store.owed()] == [("cancelled", True)]
    async with processes.one(**FLOOR):
        await processes.clock.travel(2)
    assert processes.summary([due]) == [(2, "succeeded")]


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT])
async def test_a_tick_that_ended_by_itself_is_not_owed(processes, outcome):
    """However it ended: whether a failure is tried again is for `retry` to say."""
    takes = {Outcome.SUCCEEDED: 1, Outcome.FAILED: -1, Outcome.TIMED_OUT: 60}[outcome]
    async with processes.one(takes) as s:
        s.add("work", HOURLY, id="job", timeout="30s", **OWING)
        if outcome is Outcome.FAILED:
            s.register("broken", broken)
            s.get("job").update(func="broken")
        s.get("job").run_now()
        await processes.clock.travel(60)
        (record,) = await s.history("job")
        assert record.outcome is outcome
    assert processes.store.owed() == []


@HOW_IT_ENDS
async def test_at_most_once_owes_nothing(processes, dies):
    """That is what it says."""
    async with processes.one(LONG, dies=dies, **FLOOR) as s:
        s.add("work", HOURLY, id="job").run_now()
        await processes.clock.travel(1)
    async with processes.one(**FLOOR):
        await processes.clock.travel(7_200)
    assert processes.again() == []
    assert processes.store.owed() == []


# -- several of one job ------------------------------------------------------------------------------------------------


@HOW_IT_ENDS
@pytest.mark.parametrize(("seconds", "most"), [(10, 20), (60, 3)])
async def test_all_ticks_that_one_end_has_cut_off_are_tried_again_oldest_first(processes, dies, seconds, most):
    """Though the job is never without a run, and maybe runs as often as it may: it takes longer than to its next."""
    allow = {"overlap": Overlap.ALLOW, "max_running": most}
    owed = await processes.owe(dies=dies, schedule=f"@every {seconds}s", runs=3, **allow)
    async with processes.one(1.5 * seconds, **FLOOR):
        await processes.clock.travel(12 * seconds)
    assert processes.again() == owed
    assert processes.summary(owed) == [(2, "succeeded")] * 3


async def test_what_is_owed_runs_beside_each_other_as_the_overlap_rule_allows(processes):
    """Two at a time here: the third begins when the first has ended."""
    allow = {"overlap": Overlap.ALLOW, "max_running": 3}
    owed = await processes.owe(dies=False, runs=3, schedule="@every 10s", **allow)
    processes.edit(schedule=HOURLY, options='{"delivery": "at_least_once", "overlap": "allow", "max_running": 2}')
    async with processes.one(15):
        await processes.clock.travel(10)
        assert processes.again() == owed[:2]
        await processes.clock.travel(10)
        assert processes.again() == owed


async def test_what_is_owed_goes_before_regular_starts_where_both_wait_for_room(processes, clock):
    """Though a start that came in the downtime has waited for longer than the attempt is known."""
    every = Every("10s", anchor=START)
    async with processes.one(LONG, limits={"x": 1}) as s:
        options = {"overlap": Overlap.ALLOW, "max_running": 3, "delivery": "at_least_once", "needs": "x"}
        s.add("work", every, id="job", **options)
        await clock.travel(11)
    clock.advance(15)

    def hog(s):
        s.add(clock.sleep, "@every 1h", args=(3,), id="hog", needs="x", start="now", durable=False)

    async with processes.one(1, limits={"x": 1}, add=hog):
        await clock.travel(6)
    assert [(round(due.timestamp() - START.timestamp()), attempt) for due, attempt in processes.begun] == [
        (10, 1),
        (10, 2),
        (20, 1),
        (30, 1),
    ]


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE, Overlap.REPLACE])
async def test_what_is_owed_runs_one_after_another_if_only_one_may(processes, overlap):
    """The rule was another one when they were cut off."""
    owed = await processes.owe(dies=False, runs=3, schedule="@every 10s", overlap=Overlap.ALLOW, max_running=3)
    options = f'{{"delivery": "at_least_once", "overlap": "{overlap.value}"}}'
    processes.edit(schedule=HOURLY, options=options)
    async with processes.one(15):
        await processes.clock.travel(40)
    assert processes.again() == owed


@HOW_IT_ENDS
async def test_what_is_owed_goes_before_regular_starts(processes, dies):
    """Those that were due in the meantime too."""
    owed = await processes.owe(dies=dies, schedule="@every 10s", runs=3, overlap=Overlap.ALLOW, max_running=3)
    processes.clock.advance(1_000)
    processes.edit(options='{"delivery": "at_least_once"}')
    async with processes.one(25, **FLOOR):
        await processes.clock.travel(200)
    assert [due for due, _ in processes.begun][3:6] == owed


async def test_what_is_owed_goes_before_regular_starts_long_after_the_rest(processes):
    """Both are found due at once, by a process after the one that has found the crash."""
    (due,) = await processes.owe(schedule="@every 10s")
    async with processes.one(**FLOOR) as s:
        await s.flush()
    processes.clock.advance(1_000)
    async with processes.one(**FLOOR):
        await processes.clock.travel(5)
    assert processes.begun[:2] == [(due, 1), (due, 2)]
    assert processes.summary([due]) == [(2, "succeeded")]


@pytest.mark.parametrize("deaths", [1, 2])
async def test_what_is_owed_is_still_owed_after_one_more_death(processes, deaths):
    """Of whichever of them was being tried again, and of those that waited."""
    owed = await processes.owe(runs=3, schedule="@every 10s", overlap=Overlap.ALLOW, max_running=3)
    processes.edit(schedule=HOURLY, options='{"delivery": "at_least_once"}')
    for _ in range(deaths):
        async with processes.one(LONG, dies=True, **FLOOR) as s:
            s.get("job").resume()
            await processes.clock.travel(70)
    async with processes.one(**FLOOR) as s:
        s.get("job").resume()  # it may be in quarantine
        await processes.clock.travel(200)
    assert sorted(set(processes.again())) == owed
    assert {outcome for _, outcome in processes.summary(owed)} == {"succeeded"}
