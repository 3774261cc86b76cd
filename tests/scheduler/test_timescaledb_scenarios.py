"""What TimescaleDB's tests say of its job scheduler, said of ours. A second here is a millisecond there.

| scenario of the notes on TimescaleDB, section 5 | where |
|---|---|
| S1-S6, S9, S10, S12, S16, S19, S20, S22, S24 | here |
| S7, S8: the fifth failure pauses, re-enabled the sixth does | resuming forgives here: test_retry.py |
| S11, S13-S15, S23: killed workers and schedulers, restarts | with a store |
| S17: a job that moves its own next start | `update(schedule=..., start=...)`: here |
| S18, S21: superusers, SQL's NULL | no counterpart |
| F1-F12, X1-X4 | tests/schedule: grids, calendars, zones |
"""

from datetime import timedelta

import pytest

from schedule import After, Every
from scheduler import JobState, MissedReason, Outcome, Retry, RunEnded, Scheduler
from timerqueue.testing import START

T0 = START.timestamp()


async def nothing():
    """Take no time."""


def relative(instants):
    """Give instants in seconds from the start."""
    return [round(at - T0, 6) for at in instants]


async def test_timescaledb_s1_without_jobs_nothing_happens(clock, events):
    """It waits, and ends when told to."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        await clock.travel(50)
        assert s.statistics().runs == 0
    assert len(events) == 1


@pytest.mark.parametrize(("schedule", "starts"), [(After(100), [50, 150]), (Every(100, anchor=START), [100])])
async def test_timescaledb_s2_a_paused_job_starts_when_it_is_resumed(clock, events, schedule, starts):
    """A drifting one from then on, a fixed one at its next slot; it has no counts before."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, schedule, start=START + timedelta(seconds=1))
        job.pause()
        await clock.travel(50)
        assert job.statistics().last_start is None
        job.resume()
        await clock.travel(110)
        begun = relative(events.starts())
        assert len(begun) == 1
        assert begun[0] in (150, 100, 101)


async def test_timescaledb_s3_a_sleeping_job_can_be_removed(clock, events):
    """It is gone at once."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, After(100), args=(10_000,))
        await clock.travel(1)
        job.remove()
        await clock.travel(0)
        assert events.outcomes() == [Outcome.CANCELLED]
        assert s.jobs() == []


async def test_timescaledb_s4_s5_runs_and_counts_at_each_window(clock, events):
    """At 0, 100 and 200: one, one, two and three runs."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, After(100))
        counts = []
        for window in (25, 25, 100, 120):
            await clock.travel(window)
            counts.append(job.statistics().runs)
        assert counts == [1, 1, 2, 3]
        assert relative(events.starts()) == [0, 100, 200]
        assert relative([job.next_start.timestamp()]) == [300]


async def test_timescaledb_s6_a_failing_job_waits_ever_longer(clock, events):
    """Its rule is linear: R, 2R, 3R ... after the last failure, and disabled in the end."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def fail():
            raise ValueError

        job = s.add(fail, After(100), retry=Retry.linear(100, max_retries=4))
        await clock.travel(1_400)
        assert relative(events.starts()) == [0, 100, 300, 600, 1_000]
        assert job.statistics().consecutive_failures == 5
        assert job.state is JobState.DISABLED


@pytest.mark.parametrize(("longest", "outcome"), [(20, Outcome.TIMED_OUT), (None, Outcome.SUCCEEDED)])
async def test_timescaledb_s9_s10_a_run_has_a_longest_time(clock, events, longest, outcome):
    """One run, one failure and no crash; without a timeout a success."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, After(1_000), args=(200,), timeout=longest)
        await clock.travel(300)
        assert events.outcomes() == [outcome]
        assert job.statistics().crashes == 0


async def test_timescaledb_s12_a_new_setting_is_seen_while_it_waits(clock, events):
    """A limit that is raised lets in what waits, without another event."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        for number in range(2):
            s.add(clock.sleep, After(1_000), id=f"{number}", args=(100,))
        await clock.travel(10)
        s.resize(2)
        await clock.travel(0)
        assert relative(events.starts()) == [0, 10]
        await clock.travel(200)


async def test_timescaledb_s16_with_exactly_enough_room_all_start_together(clock, events):
    """In the first pass."""
    async with Scheduler(limit=6, clock=clock) as s:
        s.listen(events)
        for number in range(6):
            s.add(clock.sleep, After(1_000), id=f"{number}", args=(10,))
        await clock.travel(0)
        assert relative(events.starts()) == [0] * 6
        await clock.travel(10)


async def test_timescaledb_s17_a_job_moves_its_own_next_start(clock, events):
    """It updates itself from within its run, and the run goes on."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def task():
            s.get("a").update(schedule=Every(200), start=clock.now() + timedelta(seconds=200))
            await clock.sleep(1)

        s.add(task, Every(100, anchor=START), id="a", start="now")
        await clock.travel(500)
        assert relative(events.starts()) == [0, 200, 400]
        assert set(events.outcomes()) == {Outcome.SUCCEEDED}


async def test_timescaledb_s19_the_list_is_what_was_added_and_not_removed(clock):
    """However often it is refreshed, emptied and replaced."""
    async with Scheduler(clock=clock) as s:
        for _ in range(2):
            for number in range(5):
                s.add(nothing, After(100), id=f"{number}", on_conflict="keep")
        assert [job.id for job in s.jobs()] == ["0", "1", "2", "3", "4"]
        for job in s.jobs():
            job.remove()
        assert s.jobs() == []
        for number in range(3):
            s.add(nothing, After(100), id=f"{number}")
            s.add(nothing, After(50), id=f"{number}", on_conflict="replace")
        assert [job.id for job in s.jobs()] == ["0", "1", "2"]


async def test_timescaledb_s20_jobs_come_and_go_live(clock, events):
    """Added at 50: 50 and 150; removed: no more; another at 450: 450 ... every ten. Old counts are gone."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        await clock.travel(50)
        job = s.add(nothing, After(100), id="a")
        await clock.travel(149)
        job.remove()
        await clock.travel(251)
        again = s.add(nothing, After(10), id="a")
        await clock.travel(35)
        assert relative(events.starts()) == [50, 150, 450, 460, 470, 480]
        assert again.statistics().runs == 4


async def test_timescaledb_s22_without_retries_one_failure_disables(clock, events):
    """For good."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def fail():
            raise ValueError

        job = s.add(fail, After(100), retry=Retry.constant(10, max_retries=0))
        await clock.travel(500)
        assert len(events.starts()) == 1
        assert job.state is JobState.DISABLED


async def test_timescaledb_s24_one_slot_is_shared_fairly(clock, events):
    """Five jobs of half a second each second: each has run; what found no room is counted."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        for number in range(5):
            s.add(clock.sleep, Every(1, anchor=START), id=f"{number}", args=(0.5,))
        await clock.travel(10)
        runs = [len(events.of(RunEnded, job_id=f"{number}")) for number in range(5)]
        assert min(runs) >= 3
        assert {reason for _, reason in events.missed()} <= {MissedReason.NO_ROOM, MissedReason.OVERLAP}
        s.stop(grace=0)
