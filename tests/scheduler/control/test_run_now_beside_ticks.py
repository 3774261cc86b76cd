"""A run by hand and a regular one are two ticks, in the same microsecond too; and what a start "now" leaves out."""

from datetime import UTC, datetime, timedelta

import pytest

from kit import since_start
from schedule import After, At, Calendar, Cron, Every, Schedule
from scheduler import JobAdded, Overlap, RunEnded, RunMissed, Scheduler
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START


class Tens(Schedule):
    """A user's schedule: each ten seconds."""

    def next(self, after):
        """Arithmetic."""
        return START + timedelta(seconds=10) * ((after - START) // timedelta(seconds=10) + 1)

    def __repr__(self):
        return "Tens()"


SCHEDULES = {
    "Every": Every("10s", anchor=START),
    "Every with jitter": Every("10s", anchor=START, jitter="1us"),
    "Cron": Cron("*/10 * * * * *"),
    "Calendar": Calendar("1 day", origin=START + timedelta(seconds=10)),
    "At": At(START + timedelta(seconds=10)),
    "a union": Cron("*/10 * * * * *") | At(START + timedelta(seconds=3)),
    "a user's": Tens(),
    "After": After("10s"),
}


@pytest.fixture(params=["memory", "store"])
def scheduler(request, clock):
    """A scheduler, without a store and with one."""
    s = Scheduler(clock=clock, store=None if request.param == "memory" else MemoryStore())
    s.register("work", work, inline=True)
    return s


def work():
    """Take no time."""


def dues(events, job_id=None):
    """When the runs that have ended were due, in seconds from the start."""
    return [since_start(event.due) for event in events.of(RunEnded, job_id=job_id)]


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
async def test_a_run_by_hand_after_a_tick_at_the_same_instant_is_a_run_of_its_own(scheduler, clock, events, schedule):
    """With a store it had been dropped as REPEATED; in memory two runs had one name."""
    async with scheduler as s:
        s.listen(events)
        durable = not isinstance(schedule, Tens)
        job = s.add("work", schedule, id="a", durable=durable, start=START + timedelta(seconds=10))
        keep = s.add("work", "@every 1d", id="other")
        await clock.travel(10)
        if keep in s.jobs() and job not in s.jobs():  # a one-shot has left
            return
        for _ in range(2):
            job.run_now()
            await clock.travel(0)
            await s.flush()
            await clock.travel(0)
        found = dues(events, "a")
        assert len(found) == len(set(found)) == 3
        assert found == pytest.approx([10] * 3, abs=1e-3)
        assert events.of(RunMissed) == []
        if durable and s._memory is not None:
            assert len({record.due for record in await s.history("a")}) == 3


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
async def test_a_run_by_hand_before_a_tick_at_the_same_instant_leaves_it_its_name(scheduler, clock, events, schedule):
    """Another job that is due in the same batch, and before it, asks for it."""
    async with scheduler as s:
        s.listen(events)
        durable = not isinstance(schedule, Tens)
        s.add(lambda: s.get("a").run_now(), At(START + timedelta(seconds=10)), id="first", inline=True, durable=False)
        options = {"overlap": Overlap.ALLOW, "durable": durable, "start": START + timedelta(seconds=10)}
        s.add("work", schedule, id="a", **options)
        await clock.travel(11)
        found = dues(events, "a")
        assert len(found) == len(set(found)) == 2
        assert 10 in found
        assert events.of(RunMissed) == []


async def test_a_run_by_hand_at_no_slot_is_due_when_it_was_asked_for(scheduler, clock, events):
    """Nothing is in its way."""
    async with scheduler as s:
        s.listen(events)
        job = s.add("work", Every("10s", anchor=START), id="a")
        await clock.travel(13)
        job.run_now()
        await clock.travel(1)
        assert dues(events) == [10, 13]


async def test_a_schedule_that_cannot_be_asked_runs_by_hand_all_the_same(clock, events):
    """Asking it whether now is one of its slots must not be the end of the verb."""

    class Broken(Tens):
        is_broken = False

        def next(self, after):
            if self.is_broken:
                raise ZeroDivisionError
            return super().next(after)

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        schedule = Broken()
        job = s.add(work, schedule, id="a", inline=True)
        await clock.travel(10)
        schedule.is_broken = True
        job.run_now()
        await clock.travel(1)
        assert job.statistics().successes == 2


@pytest.mark.parametrize(
    ("anchor", "left_out", "following"),
    [(4, 4, 14), (5, 5, 15), (6, None, 6), (9, None, 9), (10, None, 10), (0, None, 10)],
)
async def test_a_start_now_says_for_which_slot_it_stands(scheduler, clock, events, anchor, left_out, following):
    """One that comes within half an interval would find it still running."""
    async with scheduler as s:
        s.listen(events)
        await clock.travel(0)
        every = Every("10s", anchor=START + timedelta(seconds=anchor))
        job = s.add("work", every, id="a", start="now")
        await clock.travel(1)
        at = None if left_out is None else START + timedelta(seconds=left_out)
        assert [event.stands_for for event in events.of(JobAdded, job_id="a")] == [at]
        assert job.next_start == datetime.fromtimestamp(START.timestamp() + following, UTC)
        await clock.travel(9)
        assert job.statistics().runs == (2 if following <= 10 else 1)


class Always(Schedule):
    """A user's schedule: each microsecond."""

    def next(self, after):
        """Arithmetic."""
        return after + timedelta(microseconds=1)

    def __repr__(self):
        return "Always()"


@pytest.mark.parametrize("schedule", [Every("1us"), Always()], ids=repr)
@pytest.mark.parametrize("verb", ["run_now", "set_next_start"])
async def test_a_start_by_hand_of_a_job_whose_slots_leave_no_microsecond_free_comes_too(clock, events, schedule, verb):
    """There is nothing beside its ticks: the loop had looked for that without end."""
    async with Scheduler(clock=clock) as s:
        job = s.add(work, schedule, id="a", inline=True, start=clock.now() + timedelta(microseconds=1))
        await clock.travel(3e-6)
        s.listen(events)
        runs = job.statistics().runs
        job.run_now() if verb == "run_now" else job.set_next_start(clock.now())
        await clock.travel(0)
        assert job.statistics().runs > runs
        assert len(dues(events)) == len(set(dues(events)))
        s.stop(0)
