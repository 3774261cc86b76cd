"""What is owed outlives all verbs but those that give it up, and those leave their reason in its record."""

from datetime import timedelta

import pytest

from kit import broken
from scheduler import Outcome, Overlap, Retry
from timerqueue.testing import START

OWING = {"delivery": "at_least_once"}
HOURLY = "@every 1h"
FLOOR = {"crash_floor": "60s"}
LONG = 100_000
"""Seconds that a run takes which is to be cut off."""

HOW_IT_ENDS = pytest.mark.parametrize("dies", [True, False], ids=["death", "stop"])


VERBS = {
    "run_now": lambda s: s.get("job").run_now(),
    "set_next_start": lambda s: s.get("job").set_next_start(START + timedelta(minutes=10)),
    "a schedule": lambda s: s.get("job").update(schedule="@every 30m"),
    "a schedule that counts from the end": lambda s: s.get("job").update(schedule="@after 30m"),
    "another overlap": lambda s: s.get("job").update(overlap=Overlap.REPLACE),
    "a retry": lambda s: s.get("job").update(retry=Retry.constant("1m", max_retries=1)),
    "added again": lambda s: s.add("work", "@every 30m", id="job", on_conflict="update", **OWING),
    "resume": lambda s: s.get("job").resume(),
}


@HOW_IT_ENDS
@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_loses_nothing_that_is_owed(processes, dies, verb):
    """Whether it is called while the job rests, or while it is paused."""
    (due,) = await processes.owe(dies=dies, before=lambda s: s.pause() if not dies else None)
    async with processes.one(2, **FLOOR) as s:
        await processes.clock.travel(1)
        VERBS[verb](s)
        await processes.clock.travel(1)
        s.resume()
        await processes.clock.travel(70)
    assert processes.attempts(due) == [1, 2]
    assert processes.summary([due]) == [(2, "succeeded")]


async def test_a_retry_beside_it_loses_nothing_that_is_owed(processes):
    """A run by hand fails while the job rests: its tick is tried again, and so is the owed one."""
    (due,) = await processes.owe(retry=Retry.constant("10s", max_retries=5))
    async with processes.one(**FLOOR) as s:
        await processes.clock.travel(5)
        s.register("broken", broken)
        s.get("job").update(func="broken")
        s.get("job").run_now()
        await processes.clock.travel(2)
        s.get("job").update(func="work")
        (failed,) = [record for record in await s.history("job") if record.outcome is Outcome.FAILED]
        await processes.clock.travel(70)
        records = {record.due: record for record in await s.history("job")}
    assert (records[failed.due].attempt, records[failed.due].outcome) == (2, Outcome.SUCCEEDED)
    assert processes.attempts(due) == [1, 2]


@HOW_IT_ENDS
async def test_it_is_tried_again_though_the_job_runs_by_hand_at_that_moment(processes, dies):
    """After that run."""
    (due,) = await processes.owe(dies=dies, before=lambda s: s.pause() if not dies else None)
    async with processes.one(90, **FLOOR) as s:
        s.get("job").run_now()
        await processes.clock.travel(1)
        s.resume()
        await processes.clock.travel(80)
        assert processes.attempts(due) == [1]
        await processes.clock.travel(100)
    assert processes.attempts(due) == [1, 2]


async def test_a_run_by_hand_does_not_end_the_rest(processes):
    """Nobody has said that what made the job crash is mended."""
    (due,) = await processes.owe()
    async with processes.one(**FLOOR) as s:
        await processes.clock.travel(5)
        s.get("job").run_now()
        await processes.clock.travel(54)
        assert (len(processes.begun), processes.attempts(due)) == (2, [1])
        await processes.clock.travel(2)
    assert processes.attempts(due) == [1, 2]


@pytest.mark.parametrize("schedule", ["@after 10m", HOURLY])
async def test_a_start_that_was_set_beside_what_is_owed_outlives_the_process(processes, schedule):
    """Also of a job that counts from the end of its runs, of which the owed attempt is one: it went silent for good."""
    (due,) = await processes.owe(schedule=schedule)
    wanted = START + timedelta(minutes=5)
    async with processes.one(dies=True, **FLOOR) as s:
        await processes.clock.travel(1)
        s.get("job").set_next_start(wanted)
        await processes.clock.travel(0)
    async with processes.one(**FLOOR) as s:
        await processes.clock.travel(7_200)
        assert s.get("job").next_start is not None
    assert processes.attempts(due)[-1] == 3  # the rest is over, so the second one was cut off
    assert processes.attempts(wanted) == [1]
    assert len(processes.ended) >= 3


# -- what is given up --------------------------------------------------------------------------------------------------


def replace(s):
    """Add another job in its place."""
    s.add("work", HOURLY, id="job", on_conflict="replace", **OWING)


GIVEN_UP = {
    "remove": lambda s: s.get("job").remove(),
    "replace": replace,
    "at most once": lambda s: s.get("job").update(delivery="at_most_once"),
    "added again, at most once": lambda s: s.add("work", HOURLY, id="job", on_conflict="update"),
}
WHY = {
    "remove": "its job has been removed",
    "replace": "its job has been re",  # removed, or replaced where the store had not been read
    "at most once": "its job's delivery is at most once now",
    "added again, at most once": "its job's delivery is at most once now",
}
BEFORE_THE_STORE_IS_READ = ("replace", "added again, at most once")
"""Verbs that need no handle."""


@HOW_IT_ENDS
@pytest.mark.parametrize(
    ("verb", "is_early"), [(verb, False) for verb in GIVEN_UP] + [(verb, True) for verb in BEFORE_THE_STORE_IS_READ]
)
async def test_a_verb_that_gives_up_what_is_owed_says_so(processes, dies, verb, is_early):
    """In the record's error. The tick is not tried again, by no later process either."""
    (due,) = await processes.owe(dies=dies, before=lambda s: s.pause() if not dies else None)
    if is_early:  # what is found only then is no debt yet
        async with processes.one(dies=True, **FLOOR):
            await processes.clock.travel(1)
    add = GIVEN_UP[verb] if is_early else None
    async with processes.one(add=add, **FLOOR) as s:
        if not is_early:
            await processes.clock.travel(1)
            GIVEN_UP[verb](s)
        s.resume()
        await processes.clock.travel(7_200)
    record = processes.record(due)
    assert (record.attempt, record.owed) == (1, False)
    assert f"; given up: {WHY[verb]}" in record.error
    assert processes.store.owed() == []
    async with processes.one(**FLOOR):
        await processes.clock.travel(7_200)
    assert processes.attempts(due) == [1]


@HOW_IT_ENDS
@pytest.mark.parametrize("how", ["deleted", "at most once"])
@pytest.mark.parametrize("is_running", [True, False], ids=["while an agent runs", "while none runs"])
async def test_a_row_that_gives_up_what_is_owed_says_so(processes, dies, how, is_running):
    """By hand in the table of jobs."""
    (due,) = await processes.owe(dies=dies, before=lambda s: s.pause() if not dies else None)
    async with processes.one(**FLOOR):
        await processes.clock.travel(1)
        assert [tick.due_us for tick in processes.store.owed()] == [processes.record(due).due_us]
        if is_running:
            change_by_hand(processes, how)
            await processes.clock.travel(1)
    if not is_running:
        change_by_hand(processes, how)
    async with processes.one(**FLOOR) as s:
        s.resume()
        await processes.clock.travel(7_200)
    assert processes.attempts(due) == [1]
    assert "; given up: " in processes.record(due).error
    assert processes.store.owed() == []


async def test_of_a_job_that_was_deleted_before_its_crash_was_found_nothing_is_owed(processes):
    """The record says of what the tick has died, and that its job is gone."""
    (due,) = await processes.owe()
    processes.store.delete("job")
    async with processes.one(**FLOOR):
        await processes.clock.travel(300)
    record = processes.record(due)
    assert (record.outcome, record.owed, processes.attempts(due)) == ("crashed", False, [1])
    assert "died" in record.error
    assert "its job has been removed since" in record.error


def change_by_hand(processes, how):
    """Delete the row, or let it say that its ticks run at most once."""
    if how == "deleted":
        processes.store.delete("job")
    else:
        processes.edit(options="{}")


@pytest.mark.parametrize("by_hand", [True, False])
async def test_a_job_that_counts_from_the_end_goes_on_when_it_owes_no_more(processes, by_hand):
    """It had no next start, because that is counted from the end of the attempt that was owed."""
    await processes.owe(schedule="@after 10m")
    async with processes.one(**FLOOR) as s:
        await processes.clock.travel(1)
        give_up_by_hand_or_not(processes, s, by_hand=by_hand)
        await processes.clock.travel(3_600)
    assert processes.again() == []
    assert len(processes.begun) == 6


@pytest.mark.parametrize("by_hand", [True, False])
async def test_a_one_shot_that_owes_no_more_leaves(processes, clock, by_hand):
    """It has no other start."""
    async with processes.one(LONG, dies=True, **FLOOR) as s:
        s.add("work", f"@at {clock.now() + timedelta(seconds=5):%Y-%m-%dT%H:%M:%SZ}", id="job", **OWING)
        await clock.travel(6)
    async with processes.one(**FLOOR) as s:
        await clock.travel(1)
        give_up_by_hand_or_not(processes, s, by_hand=by_hand)
        await clock.travel(1)
        assert s.jobs() == []
    assert processes.again() == []


def give_up_by_hand_or_not(processes, s, *, by_hand):
    """Let delivery be at most once: in the table, or by the verb."""
    if by_hand:
        processes.edit(options="{}")
    else:
        s.get("job").update(delivery="at_most_once")


async def test_what_was_given_up_stays_given_up(processes):
    """A change back to at least once does not bring it back."""
    (due,) = await processes.owe()
    async with processes.one(**FLOOR) as s:
        await processes.clock.travel(1)
        s.get("job").update(delivery="at_most_once")
        s.get("job").update(delivery="at_least_once")
        await processes.clock.travel(7_200)
    assert processes.attempts(due) == [1]


async def test_other_jobs_keep_what_they_owe(processes):
    """When one of them is removed."""
    async with processes.one(LONG, dies=True, **FLOOR) as s:
        for name in ("job", "other"):
            s.add("work", HOURLY, id=name, **OWING).run_now()
        await processes.clock.travel(1)
    async with processes.one(**FLOOR) as s:
        s.get("other").remove()
        await processes.clock.travel(70)
        assert len(processes.again()) == 1
        (record,) = await s.history("other")
    assert "; given up: " in record.error
