"""The verbs that change a job while it lives."""

from datetime import timedelta

import pytest

from kit import T0, nothing, relative
from schedule import After, At, Cron, Every, ScheduleError
from scheduler import (
    InvalidJob,
    JobChanged,
    JobNotFound,
    JobState,
    MissedReason,
    Outcome,
    Overlap,
    RunEnded,
    RunStarted,
    Scheduler,
)
from timerqueue.testing import START

EVERY_MINUTE = Every("1m", anchor=START)


async def test_a_paused_job_does_not_start(clock, events):
    """Until it is resumed; what it missed stays missed, and is told."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY_MINUTE, id="a")
        await clock.travel(60)
        job.pause("maintenance")
        assert (job.state, job.next_start, job.error) == (JobState.DISABLED, None, "maintenance")
        await clock.travel(180)
        job.resume()
        assert job.state is JobState.SCHEDULED
        await clock.travel(60)
        assert relative(events.starts()) == [60, 300]
        assert events.missed() == [(3, MissedReason.PAUSED)]
        assert events.of(JobChanged) == [
            JobChanged("a", JobState.DISABLED, "maintenance"),
            JobChanged("a", JobState.SCHEDULED, "resumed"),
        ]


async def test_pausing_lets_the_run_that_goes_on_end(clock, events):
    """Then the job is DISABLED."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, EVERY_MINUTE, args=(10,))
        await clock.travel(65)
        job.pause()
        assert job.state is JobState.RUNNING
        await clock.travel(10)
        assert job.state is JobState.DISABLED
        assert events.outcomes() == [Outcome.SUCCEEDED]


async def test_pausing_twice_and_resuming_twice_change_nothing_more(clock, events):
    """No start is lost or doubled."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY_MINUTE)
        for verb in (job.pause, job.pause, job.resume, job.resume):
            verb()
        await clock.travel(125)
        assert relative(events.starts()) == [60, 120]


async def test_resuming_while_its_run_goes_on_keeps_to_the_schedule(clock, events):
    """A job that was paused and resumed within one run has one next start."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, EVERY_MINUTE, args=(10,))
        await clock.travel(62)
        job.pause()
        await clock.travel(2)
        job.resume()
        assert job.state is JobState.RUNNING
        await clock.travel(130)
        assert relative(events.starts()) == [60, 120, 180]
        await clock.travel(10)


async def test_a_resumed_fixed_delay_starts_again(clock, events):
    """It counts from the moment it is resumed, or from the end of a run that still goes on."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, After("1m"), args=(10,))
        await clock.travel(5)
        job.pause()
        job.resume()
        await clock.travel(70)
        assert relative(events.starts()) == [0, 70]
        await clock.travel(10)
        job.pause()
        await clock.travel(100)
        job.resume()
        await clock.travel(61)
        assert len(events.starts()) == 3
        s.stop(grace=0)


async def test_a_one_shot_that_passed_while_paused_finishes_when_resumed(clock, events):
    """It has no start left."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, At(START + timedelta(seconds=5)))
        job.pause()
        await clock.travel(10)
        assert s.jobs() == [job]
        job.resume()
        await clock.travel(0)
        assert s.jobs() == []
        assert events.starts() == []


async def test_run_now_runs_a_paused_job_and_leaves_it_paused(clock, events):
    """By hand is by hand."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY_MINUTE)
        job.pause()
        job.run_now()
        await clock.travel(0)
        assert events.outcomes() == [Outcome.SUCCEEDED]
        assert job.state is JobState.DISABLED
        await clock.travel(60)
        assert len(events.starts()) == 1


async def test_run_now_moves_no_start(clock, events):
    """The tick is that very moment; the regular starts stay where they are."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY_MINUTE)
        await clock.travel(30)
        job.run_now()
        await clock.travel(30)
        assert relative(event.due for event in events.of(RunEnded)) == [30, 60]


async def test_run_now_waits_for_room_like_any_other_run(clock, events):
    """The same limits, timeouts and retries hold."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        hog = s.add(clock.sleep, EVERY_MINUTE, id="hog", args=(10,))
        job = s.add(clock.sleep, EVERY_MINUTE, id="job", args=(10,), timeout="5s")
        hog.run_now()
        await clock.travel(1)
        job.run_now()
        await clock.travel(1)
        assert s.statistics().waiting_tasks == 1
        await clock.travel(20)
        assert events.outcomes("job") == [Outcome.TIMED_OUT]


async def test_run_now_does_not_move_a_fixed_delay_forward(clock, events):
    """A run by hand is followed by the next one after the interval, and only one."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, After("1m"))
        await clock.travel(30)
        job.run_now()
        await clock.travel(200)
        spacing = [b - a for a, b in zip(events.starts(), events.starts()[1:], strict=False)]
        assert all(gap >= 30 for gap in spacing)
        assert len(events.starts()) in (5, 6)


async def test_an_update_of_options_causes_no_run_and_keeps_the_phase(clock, events):
    """Unlike in Heartbeat, where each edit re-adds the monitor."""
    async with Scheduler(clock=clock, limits={"http": 1}) as s:
        s.listen(events)
        job = s.add(nothing, "@every 1m", id="a")
        first = job.next_start
        job.update(timeout="5s", needs="http", priority=3, args=(), tags=["x"], name="A", overlap=Overlap.QUEUE)
        assert job.next_start == first
        await clock.travel(180)
        assert len(events.starts()) == 3
        assert relative(events.starts())[0] == round(first.timestamp() - T0, 6)
        assert (job.tags, job.name, job.policy.timeout) == (frozenset({"x"}), "A", 5)


async def test_an_update_of_the_schedule_causes_no_run(clock, events):
    """The first start is the new schedule's next; the old one's is gone."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY_MINUTE)
        await clock.travel(50)
        job.update(schedule=Every("40s", anchor=START))
        await clock.travel(90)
        assert relative(events.starts()) == [80, 120]


async def test_an_update_to_the_same_schedule_changes_no_start(clock, events):
    """A configuration that is loaded again moves nothing."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, "@every 1m", id="a")
        first = job.next_start
        await clock.travel(1)
        job.update(schedule="@every 1m")
        assert job.next_start == first
        await clock.travel(120)
        assert len(events.starts()) == 2


async def test_an_updated_function_is_called_from_the_next_run_on(clock, events):
    """The run that goes on keeps what it began with."""
    said = []
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def old(word):
            await clock.sleep(10)
            said.append(f"old {word}")

        async def new(word):
            said.append(f"new {word}")

        job = s.add(old, EVERY_MINUTE, args=("a",))
        await clock.travel(65)
        job.update(func=new, args=("b",))
        await clock.travel(60)
        assert said == ["old a", "new b"]


async def test_an_update_of_a_job_that_waits_for_room_is_kept_in_order(clock, events):
    """Its units are those that it took, not those that it needs now."""
    async with Scheduler(clock=clock, limits={"x": 1, "y": 1}) as s:
        s.listen(events)
        hog = s.add(clock.sleep, EVERY_MINUTE, id="hog", args=(10,), needs="x")
        job = s.add(clock.sleep, EVERY_MINUTE, id="job", args=(10,), needs="x")
        await clock.travel(60)
        hog.update(needs="y")
        job.update(needs="y")
        await clock.travel(150)
        assert set(events.outcomes()) == {Outcome.SUCCEEDED}
        hog.remove()
        job.remove()
        await clock.travel(0)
        assert {limit.used for limit in s.statistics().limits.values()} == {0}


async def test_an_update_keeps_a_paused_job_paused(clock, events):
    """Only resume starts it."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY_MINUTE)
        job.pause()
        job.update(schedule="@every 1s")
        await clock.travel(60)
        assert job.state is JobState.DISABLED
        assert events.of(RunStarted) == []
        job.resume()
        await clock.travel(2)
        assert len(events.starts()) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [(EVERY_MINUTE, After("1m")), (After("1m"), EVERY_MINUTE), (EVERY_MINUTE, Cron("* * * * *")),
     (Cron("0 * * * *"), EVERY_MINUTE), (After("1h"), Cron("* * * * *"))],
    ids=str,
)  # fmt: skip
async def test_a_job_may_change_its_kind_of_schedule(clock, events, before, after):
    """And goes on by the new one, one start at a time."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, before)
        await clock.travel(30)
        job.update(schedule=after)
        begun = len(events.starts())
        await clock.travel(180)
        assert len(events.starts()) - begun in (2, 3)
        await clock.travel(3600)
        assert len(events.starts()) - begun in (62, 63)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"schedule": "every now and then"}, "every now and then"),
        ({"schedule": b"@every 5s"}, "schedule"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": 0}, "timeout"),
        ({"priority": "high"}, "priority"),
        ({"max_running": 0}, "max_running"),
        ({"overlap": "never"}, "overlap"),
        ({"missed": "newest"}, "missed"),
        ({"retry": 3}, "retry"),
        ({"tiemout": 3}, "tiemout"),
        ({"start": "now"}, "start"),
        ({"id": "b"}, "id"),
    ],
)
async def test_a_senseless_update_changes_nothing(clock, events, changes, names):
    """Not even the half of it that made sense."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, EVERY_MINUTE, id="a")
        s.listen(events)
        policy, schedule, start = job.policy, job.schedule, job.next_start
        with pytest.raises((InvalidJob, ScheduleError), match=names):
            job.update(**{"name": "B", **changes})
        assert (job.policy, job.schedule, job.next_start, job.name) == (policy, schedule, start, None)
        assert events == []


async def test_next_starts_looks_ahead(clock):
    """As many as asked for, or as many as there are; asking changes nothing."""
    async with Scheduler(clock=clock) as s:
        every = s.add(nothing, EVERY_MINUTE)
        once = s.add(nothing, At(START + timedelta(seconds=5)))
        cron = s.add(nothing, Cron("30 6 * * *", tz="Europe/Berlin"))
        assert [(at - START).total_seconds() for at in every.next_starts(3)] == [60, 120, 180]
        assert len(once.next_starts(3)) == 1
        assert [at.isoformat() for at in cron.next_starts(2)] == [
            "2026-01-01T05:30:00+00:00",
            "2026-01-02T05:30:00+00:00",
        ]
        assert every.next_starts(0) == []
        assert every.next_start == every.next_starts(1)[0]
        assert every.next_start.tzinfo is not None


async def test_verbs_on_a_removed_job_are_refused_and_harmless(clock, events):
    """A handle may outlive its job; nothing comes back to life. They had done nothing, without a word."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, EVERY_MINUTE, id="a")
        job.remove()
        s.listen(events)
        for verb in (job.pause, job.resume, lambda: job.update(schedule="@every 1s")):
            with pytest.raises(JobNotFound, match="job 'a' has been removed"):
                verb()
        await clock.travel(65)
        assert events.starts() == []
        assert s.jobs() == []


def change_schedule(s, job):
    """Let it be another interval."""
    job.update(schedule=After("2s"))


def pause_and_resume(s, job):
    """By its own pause."""
    job.pause()
    job.resume()


def pause_and_resume_all(s, job):
    """By that of everybody."""
    s.pause()
    s.resume()


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE, Overlap.ALLOW, Overlap.REPLACE])
@pytest.mark.parametrize(
    ("change", "next_start"), [(change_schedule, 12), (pause_and_resume, 11), (pause_and_resume_all, 11)]
)
async def test_what_counts_from_the_end_has_no_start_while_it_runs(change, next_start, overlap, clock, events):
    """Whatever is changed meanwhile: the end of the run plans it."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, After("1s"), args=(10,), overlap=overlap)
        await clock.travel(3)
        change(s, job)
        assert job.next_start is None
        await clock.travel(10)
        assert relative(events.starts()) == [0, next_start]
        s.stop(grace=0)
    assert events.missed() == []
