"""The wall clock is set, or the machine sleeps: nothing runs twice, nothing freezes, nothing bursts."""

from datetime import timedelta
from itertools import pairwise

import pytest

from kit import nothing, since_start
from schedule import After, At, Cron, Every, Missed
from scheduler import ClockJumped, MissedReason, Retry, RunEnded, RunMissed, RunStarted, Scheduler
from scheduler.testing import simulate
from timerqueue.testing import START, ManualClock

HOUR = 3600
YEARS = 10 * 365.25 * 86_400
STEPS = [HOUR, -HOUR, YEARS, -YEARS, 0.75, -0.75, 86_400, -86_400]


def at(event):
    """Tell the wall clock's reading at a run."""
    return event.started.strftime("%m-%d %H:%M")


def all_kinds(s, _clock):
    """Add a job of each kind."""
    s.add(nothing, Every("10m", anchor=START), id="every")
    s.add(nothing, After("10m"), id="after")
    s.add(nothing, Cron("*/10 * * * *"), id="cron")
    s.add(nothing, Cron("*/20 * * * *") | Cron("10-59/20 * * * *"), id="combined")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_step_is_noticed_and_neither_freezes_nor_bursts(step, backend):
    """After a step of any size each job starts within its interval, and at most once more than without it."""
    done = simulate(all_kinds, "359m", steps=[("3h5m", step)], backend=backend)
    (jump,) = [event for event in done.events if isinstance(event, ClockJumped)]
    assert jump.seconds == pytest.approx(step)
    assert since_start(jump.at) == pytest.approx(3 * HOUR + 300 + step, abs=1e-3)
    for job in ("every", "after", "cron", "combined"):
        begun = steady_starts(done, job, step)
        assert 33 <= len(begun) <= 37, job
        assert max(b - a for a, b in pairwise(begun)) <= 1201, job


def steady_starts(done, job, step):
    """Tell when runs began, as if nobody had touched the clock."""
    jump = next(index for index, event in enumerate(done.events) if isinstance(event, ClockJumped))
    return [
        event.started.timestamp() - (step if index > jump else 0)
        for index, event in enumerate(done.events)
        if isinstance(event, RunStarted) and event.job_id == job
    ]


@pytest.mark.parametrize("step", STEPS)
def test_intervals_keep_their_real_spacing(step):
    """Whatever is done to the wall clock, they count what passes."""
    done = simulate(all_kinds, "359m", steps=[("3h5m", step)])
    plain = simulate(all_kinds, "359m")
    for job in ("every", "after"):
        assert len(done.runs(job)) == len(plain.runs(job))
        assert not [event for event in done.events if isinstance(event, RunMissed) and event.job_id == job]


@pytest.mark.parametrize("step", [-HOUR, -600, -0.75])
def test_no_fixed_time_runs_twice_after_a_step_back(step):
    """The clock passes the same hour again; what ran in it does not."""

    def build(s, _clock):
        for hour in range(6):
            s.add(nothing, Cron(f"30 {hour} * * *"), id=f"{hour}")

    done = simulate(build, "8h", steps=[("3h35m", step)])
    assert [len(done.runs(f"{hour}")) for hour in range(6)] == [1] * 6


def test_a_daily_job_is_not_silent_for_long_after_a_wrong_clock_is_mended():
    """A clock that was ten years ahead is set right: the job starts at its next time, not in ten years."""

    def build(s, _clock):
        s.add(nothing, Cron("0 12 * * *"), id="daily")

    done = simulate(build, "6d", steps=[("1d", YEARS), ("2d", -YEARS)])
    assert len(done.runs("daily")) in (6, 7)
    assert [at(run) for run in done.runs("daily")][-4:] == [f"01-0{day} 12:00" for day in (3, 4, 5, 6)]


@pytest.mark.parametrize(
    ("missed", "runs", "count"),
    [(Missed.LATEST, 1, 6), (Missed.SKIP, 0, 7), (Missed.ALL, 7, 0)],
)
async def test_a_step_forward_is_like_downtime(clock, events, missed, runs, count):
    """What was jumped over is made up for by the job's policy, and the rest is missed as LATE."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, Cron("*/10 * * * *"), id="a", missed=missed)
        await clock.travel(60)
        clock.step(HOUR + 600)
        await clock.travel(0)
        assert len(events.of(RunEnded)) == runs
        assert sum(event.count for event in events.of(RunMissed)) == count
        assert {event.reason for event in events.of(RunMissed)} <= {MissedReason.LATE}


async def test_a_suspend_is_like_downtime_for_calendars_only(clock, events):
    """Intervals stood still with the machine; what is due on the wall is made up for at once."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, Every("10m", anchor=START), id="every")
        s.add(nothing, Cron("*/10 * * * *"), id="cron")
        await clock.travel(300)
        clock.suspend(2 * HOUR)
        await clock.travel(1)
        assert [event.job_id for event in events.of(RunEnded)] == ["cron"]
        await clock.travel(300)
        assert len(events.of(RunEnded, job_id="every")) == 1


async def test_slewing_is_no_jump(clock, events):
    """Less than half a second is what clocks do; starts follow the wall clock all the same."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, Cron("*/10 * * * *"), id="cron")
        for _ in range(20):
            await clock.travel(29.6)
            clock.step(0.4)
        await clock.travel(15)
        assert events.of(ClockJumped) == []
        assert [at(event) for event in events.of(RunEnded)] == ["01-01 00:10"]
        assert events.of(RunEnded)[0].lateness < 1


async def test_a_clock_that_runs_slow_makes_no_calendar_job_early(clock, events):
    """A start is never before its minute on the wall."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, Cron("*/10 * * * *"), id="cron")
        for _ in range(60):
            await clock.travel(30.4)
            clock.step(-0.4)
        for started in events.of(RunStarted):
            assert started.started >= started.due
        assert len(events.of(RunStarted)) == 3


async def test_a_one_shot_waits_for_its_time_on_the_wall(clock, events):
    """Set back, it comes later; set forward, at once."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, At(START + timedelta(hours=1)), id="soon")
        s.add(nothing, At(START + timedelta(hours=5)), id="late")
        clock.step(-600)
        clock.advance(HOUR)
        await clock.travel(0)
        assert events.of(RunEnded) == []
        clock.advance(600)
        await clock.travel(0)
        assert [event.job_id for event in events.of(RunEnded)] == ["soon"]
        clock.step(5 * HOUR)
        await clock.travel(0)
        assert [event.job_id for event in events.of(RunEnded)] == ["soon", "late"]


async def test_retries_and_timeouts_count_what_passes(clock, events):
    """A step of the wall clock neither shortens nor lengthens them."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, "@every 1d", id="a", args=(99,), timeout="10s", start="now",
              retry=Retry.constant("10s", max_retries=1))  # fmt: skip
        began = clock.monotonic()
        for step in (YEARS, -YEARS, HOUR, -HOUR):
            await clock.travel(5)
            clock.step(step)
        await clock.travel(11)
        assert len(events.of(RunEnded)) == 2
        assert [event.duration for event in events.of(RunEnded)] == pytest.approx([10, 10])
        assert clock.monotonic() - began == 31


async def test_next_start_is_told_in_the_time_of_the_wall(clock):
    """After a step an interval's next start is where it will be on the clock on the wall."""
    async with Scheduler(clock=clock) as s:
        every = s.add(nothing, Every("10m", anchor=START))
        cron = s.add(nothing, Cron("*/10 * * * *"))
        clock.step(HOUR)
        await clock.travel(0)
        assert every.next_start == START + timedelta(hours=1, minutes=10)
        assert every.next_starts(2)[1] == START + timedelta(hours=1, minutes=20)
        assert cron.next_start == START + timedelta(hours=1, minutes=10)


async def test_intervals_are_on_their_grid_again_when_the_clock_is_set_back(clock):
    """To the microsecond, though the clock is not set back by as many: other agents plan the same ticks."""
    async with Scheduler(clock=clock) as s:
        every = s.add(nothing, Every("10m", anchor=START))
        clock.step(HOUR)
        await clock.travel(0)
        clock.step(-HOUR - 0.000_007)
        await clock.travel(0)
        assert every.next_start == START + timedelta(minutes=10)


async def test_a_job_added_after_a_step_is_planned_in_the_new_time(clock, events):
    """Anchors and starts are on the wall as it is now."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        clock.step(HOUR + 300)
        await clock.travel(0)
        new = START + timedelta(hours=1, minutes=5)
        assert s.add(nothing, Every("10m", anchor=START)).next_start == new + timedelta(minutes=5)
        assert s.add(nothing, Every("10m"), start=new + timedelta(seconds=7)).next_start == new + timedelta(seconds=7)
        assert s.add(nothing, Cron("*/10 * * * *")).next_start == new + timedelta(minutes=5)
        await clock.travel(301)
        assert [round((event.started - new).total_seconds(), 3) for event in events.of(RunStarted)] == [7, 300, 300]


async def test_a_step_before_it_runs_is_taken_into_account(clock, events):
    """Jobs added before the scheduler runs start on the clock as it is then."""
    s = Scheduler(clock=clock)
    s.listen(events)
    s.add(nothing, Cron("*/10 * * * *"), id="cron")
    clock.step(-HOUR)
    async with s:
        await clock.travel(601)
    assert len(events.of(RunEnded)) == 1


async def test_ten_thousand_calendar_jobs_are_planned_anew(clock, events):
    """In slices, and each of them once."""
    async with Scheduler(limit=10_000, clock=clock) as s:
        for number in range(3_000):
            s.add(nothing, Cron("0 12 * * *"), id=f"{number}")
        s.listen(events)
        clock.step(-HOUR)
        await clock.travel(0)
        assert {job.next_start for job in s.jobs()} == {START + timedelta(hours=12)}
        clock.advance(13 * HOUR)
        await clock.travel(0)
        assert len(events.of(RunEnded)) == 3_000


class SilentClock(ManualClock):
    """Like the machine's: it is set, and tells nobody."""

    announces_steps = False

    def step(self, seconds):
        """Wake nobody."""
        self._wall_ahead += seconds


@pytest.mark.parametrize("step", [HOUR, -HOUR])
async def test_a_clock_that_tells_nobody_is_looked_at_every_ten_seconds(step, events):
    """Though no job is due for a day."""
    clock = SilentClock()
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, "@every 1d", start=START + timedelta(days=1))
        await clock.travel(35)
        clock.step(step)
        await clock.travel(4.9)
        assert not events.of(ClockJumped)
        await clock.travel(0.1)
        (jump,) = events.of(ClockJumped)
    assert jump.seconds == pytest.approx(step)


class CountedClock(ManualClock):
    """It knows how often it was asked."""

    asked = 0

    def wall(self):
        self.asked += 1
        return super().wall()


async def test_time_that_passes_by_hand_stops_only_where_something_is_due():
    """Such a clock says itself when it is set, so that a day of travel costs what happens in it."""
    clock = CountedClock()
    async with Scheduler(clock=clock) as s:
        s.add(nothing, Every("1h", anchor=START))
        clock.asked = 0
        await clock.travel(24 * HOUR)
    assert 24 <= clock.asked < 240


class HaltingClock(CountedClock):
    """Whoever reads its wall clock for the `halts_at`-th time stands still for so long before he has the answer."""

    announces_steps = False
    halts_at = ()
    seconds = 0.7

    def wall(self):
        if self.asked + 1 in self.halts_at:
            self._monotonic += self.seconds
        return super().wall()

    def halt(self, *readings):
        """Stand still at these of the next readings."""
        self.halts_at = [self.asked + number for number in readings]


@pytest.mark.parametrize("readings", [[1], [1, 2], [2], [1, 2, 3, 4, 5], range(1, 30)])
async def test_a_process_that_stood_still_between_two_readings_has_seen_no_step(events, readings):
    """Nobody has set the clock, though it seems so to who reads one clock before the halt and the other after it."""
    clock = HaltingClock()
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, "@every 1s")
        s.add(nothing, Cron("* * * * * *"), id="cron")
        await clock.travel(5)
        clock.halt(*readings)
        await clock.travel(60)
        assert events.of(ClockJumped) == []
        assert all(event.started >= event.due for event in events.of(RunStarted, job_id="cron"))


async def test_a_scheduler_that_is_made_while_the_process_stands_still_knows_the_time(events):
    """Its intervals lie where they belong, and the first look at the clock finds no step."""
    clock = HaltingClock()
    clock.halt(1, 2)
    s = Scheduler(clock=clock)
    s.listen(events)
    s.add(nothing, Every("10s", anchor=START), id="every")
    async with s:
        await clock.travel(30)
    assert events.of(ClockJumped) == []
    assert [since_start(event.due) for event in events.of(RunStarted)] == pytest.approx([10, 20, 30])


@pytest.mark.parametrize("step", [HOUR, -HOUR, 0.75, -0.75])
async def test_a_step_is_noticed_though_the_process_stood_still_as_well(events, step):
    """By how much, is not mixed up with how long it stood."""
    clock = HaltingClock()
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, "@every 1s")
        await clock.travel(5)
        clock.step(step)
        clock.halt(1, 2)
        await clock.travel(60)
        assert [event.seconds for event in events.of(ClockJumped)] == pytest.approx([step])
