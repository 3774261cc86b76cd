"""A next start that somebody sets: it wins, nothing is lost or doubled, and then the schedule goes on."""

from datetime import datetime, timedelta
from threading import Thread

import pytest
from hypothesis import given, settings, strategies as st

from kit import T0, at, examples, nothing, relative, since_start
from schedule import After, At, Cron, Every
from scheduler import (
    AlreadyStopped,
    InvalidJob,
    JobChanged,
    JobNotFound,
    JobState,
    Outcome,
    Overlap,
    Retry,
    RunStarted,
    Scheduler,
    current_run,
)
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START

EVERY = Every(100, anchor=START)


async def fail():
    """Fail at once."""
    raise ValueError


async def test_it_takes_the_place_of_the_next_regular_start(clock, events):
    """Then the job is back on its grid; one event says so."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY, id="a")
        job.set_next_start(at(30))
        assert relative([each.timestamp() for each in job.next_starts(3)]) == [30, 100, 200]
        await clock.travel(250)
        assert relative(events.starts()) == [30, 100, 200]
        assert events.of(JobChanged) == [JobChanged("a", JobState.SCHEDULED, "next start set")]


async def test_a_later_one_lets_regular_starts_fall_out(clock, events):
    """They were replaced, so they are not missed."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, EVERY).set_next_start(at(330))
        await clock.travel(450)
        assert relative(events.starts()) == [330, 400]
        assert events.missed() == []


@pytest.mark.parametrize(
    ("schedule", "starts"),
    [
        (EVERY, [30, 100, 200]),
        (After(100), [30, 135, 240]),
        (Cron("*/2 * * * *"), [30, 120, 240]),
        (At(at(100)), [30]),
    ],
    ids=str,
)
async def test_each_kind_of_schedule_goes_on_in_its_own_way(clock, events, schedule, starts):
    """A grid stays where it is, a pause counts from the end of the run, a one-shot has been moved."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, schedule, args=(5,), start=at(50) if isinstance(schedule, After) else None)
        job.set_next_start(at(30))
        await clock.travel(260)
        assert relative(events.starts()) == starts
        assert (job in s.jobs()) is not isinstance(schedule, At)


async def test_what_is_past_means_now(clock, events):
    """Timescaledb C7: another run at once."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        await clock.travel(110)
        job.set_next_start(at(-1_000))
        await clock.travel(0)
        assert relative(events.starts()) == [100, 110]
        assert {event.lateness for event in events.of(RunStarted)} == {0}


async def test_timescaledb_o2_half_a_minute_earlier(clock, events):
    """From where it would start next; the grid does not move."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, Every(60, anchor=START))
        await clock.travel(70)
        job.set_next_start(job.next_start - timedelta(seconds=30))
        await clock.travel(60)
        assert relative(events.starts()) == [60, 90, 120]


@pytest.mark.parametrize("is_async", [True, False], ids=["on the loop", "in a thread"])
async def test_timescaledb_s17_a_job_sets_its_own_next_start(clock, events, is_async):
    """Runs at 0 and 200, next at 400."""

    def move():
        run = current_run()
        run.set_next_start(run.due + timedelta(seconds=200))

    async def task():
        move()

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(task if is_async else move, After(100))
        for _ in range(25):
            await clock.travel(10)
            while job.runs:  # until the thread is done
                await clock.travel(0)
        assert relative(events.starts())[:2] == [0, 200]
        assert len(events.starts()) == 2
        assert relative([job.next_start.timestamp()]) == [400]
        s.stop(grace=0)


async def test_set_during_a_run_it_survives_a_failure(clock, events):
    """No retry in its place, although the job has some."""

    async def task():
        if len(events.starts()) == 1:
            current_run().set_next_start(at(150))
            raise ValueError

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(task, EVERY, retry=Retry.constant(5, max_retries=10))
        await clock.travel(140)
        assert relative(events.starts()) == [100]
        await clock.travel(9)
        assert len(events.starts()) == 1
        await clock.travel(1)
        assert relative(events.starts()) == [100, 150]


async def test_a_timeout_loses_it_no_more_than_a_failure(clock, events):
    """However the run ends."""

    async def task():
        current_run().set_next_start(at(150))
        await clock.sleep(1_000)

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(task, EVERY, timeout=10, retry=Retry.constant(5))
        await clock.travel(155)
        assert relative(events.starts()) == [100, 150]
        assert events.outcomes() == [Outcome.TIMED_OUT]
        s.stop(grace=0)


async def test_timescaledb_h3_the_last_call_wins(clock, events):
    """Within a run and outside."""

    async def task():
        for seconds in (1, 180, 150) if len(events.starts()) == 1 else ():
            current_run().set_next_start(at(seconds))

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(task, EVERY)
        await clock.travel(210)
        assert relative(events.starts()) == [100, 150, 200]


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE])
@pytest.mark.parametrize("ending", ["succeeds", "fails"])
async def test_one_that_comes_during_a_run_waits_for_its_end(clock, events, overlap, ending):
    """It is neither missed nor run beside it, and the slots in between stay what they are."""
    runs = []

    async def task():
        runs.append(clock.now())
        if len(runs) == 1:
            current_run().set_next_start(clock.now())
            await clock.sleep(50)
            if ending == "fails":
                raise ValueError

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(task, EVERY, overlap=overlap, retry=Retry.constant(1))
        await clock.travel(320)
        assert relative(events.starts()) == [100, 150, 200, 300]
        assert events.missed() == []


async def test_beside_a_run_if_the_overlap_rule_says_so(clock, events):
    """ALLOW means that."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, EVERY, args=(50,), overlap=Overlap.ALLOW)
        await clock.travel(110)
        job.set_next_start(at(120))
        await clock.travel(30)
        assert relative(events.starts()) == [100, 120]
        await clock.travel(50)


async def test_it_takes_the_place_of_a_waiting_retry(clock, events):
    """The failed tick is not tried again."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(fail, EVERY, retry=Retry.constant(20))
        await clock.travel(110)
        job.set_next_start(at(130))
        await clock.travel(25)
        assert [(since_start(event.started), event.attempt) for event in events.of(RunStarted)] == [(100, 1), (130, 1)]
        await clock.travel(15)
        assert relative(events.starts())[2:] == [150]


@pytest.mark.parametrize(("resumed", "starts"), [(50, [80, 100]), (90, [100])])
async def test_a_paused_job_keeps_it_for_resume(clock, events, resumed, starts):
    """Which honours it if it is still to come."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        job.pause()
        job.set_next_start(at(80))
        assert job.next_start is None
        await clock.travel(resumed)
        assert events.starts() == []
        job.resume()
        await clock.travel(160 - resumed)
        assert relative(events.starts()) == starts


async def test_a_pause_does_not_lose_it(clock, events):
    """Set first, then paused and resumed."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, After(100), start=at(10))
        job.set_next_start(at(80))
        job.pause()
        await clock.travel(50)
        job.resume()
        await clock.travel(200)
        assert relative(events.starts()) == [80, 180]


async def test_a_new_schedule_wins_over_it(clock, events):
    """The last change wins."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        job.set_next_start(at(30))
        job.update(schedule=Every(70, anchor=START))
        await clock.travel(150)
        assert relative(events.starts()) == [70, 140]


async def test_a_clock_that_is_set_back_does_not_run_it_early(clock, events):
    """It is a wall time for a calendar's job, like its other starts."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, Cron("*/5 * * * *")).set_next_start(at(30))
        await clock.travel(20)
        clock.step(-20)
        await clock.travel(29)
        assert events.starts() == []
        await clock.travel(1)
        assert relative(events.starts()) == [30]


async def test_it_can_be_set_from_any_thread(clock, events):
    """Like every verb of a job."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        thread = Thread(target=job.set_next_start, args=(at(30),))
        thread.start()
        thread.join()
        await clock.travel(50)
        assert relative(events.starts()) == [30]


@pytest.mark.parametrize("wrong", [datetime(2026, 1, 1), "tomorrow", 5, None])
async def test_anything_but_an_aware_datetime_is_refused(clock, wrong):
    """Nothing has changed then."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, EVERY)
        with pytest.raises(InvalidJob, match="aware datetime"):
            job.set_next_start(wrong)
        assert job.next_start == at(100)


async def test_a_job_that_is_gone_has_no_next_start(clock):
    """Nor has one whose scheduler has stopped."""
    async with Scheduler(clock=clock) as s:
        gone, left = s.add(nothing, EVERY), s.add(nothing, EVERY)
        gone.remove()
        with pytest.raises(JobNotFound):
            gone.set_next_start(at(30))
    with pytest.raises(AlreadyStopped):
        left.set_next_start(at(30))


@pytest.mark.parametrize(("seconds", "begins"), [(30.0, 135.0), (1.0, 125.0)])
def test_one_that_is_set_while_a_run_comes_to_its_end_is_kept_by_a_store(seconds, begins):
    """It was refused, for the scheduler had been stopped; what the next process found was the regular start. What falls
    due meanwhile is not missed, either.
    """
    store = MemoryStore()

    def build(s, clock):
        async def work():
            s.stop(grace=20.0)
            await clock.sleep(5.0)
            s.get("a").set_next_start(at(clock.wall() - T0 + seconds))
            await clock.sleep(10.0)

        s.register("work", work)
        s.add("work", EVERY, id="a", on_conflict="keep")

    first = simulate(build, 120, store=store)
    second = simulate(build, 200, start=at(125), store=store)
    assert relative(run.started for run in first.runs("a")) == [100]
    assert relative(run.started for run in second.runs("a"))[:1] == [begins]


@settings(max_examples=examples(50))
@given(
    st.sampled_from([EVERY, After(100), Cron("*/2 * * * *")]),
    st.lists(st.tuples(st.integers(0, 900), st.integers(-200, 900)), max_size=8, unique_by=lambda move: move[0]),
    st.integers(1, 60),
)
def test_no_run_is_lost_or_doubled(schedule, moves, length):
    """Each start that was set and not replaced has exactly one run of its own, and not before it was due."""
    wanted = []

    def build(s, clock):
        job = s.add(clock.sleep, schedule, id="a", args=(length,))

        async def act():
            for when, target in sorted(moves):
                await clock.sleep(at(when).timestamp() - clock.wall())
                job.set_next_start(at(target))
                wanted.append((clock.wall() - T0, target))

        return act()

    done = simulate(build, 1_200)
    starts = relative(run.started for run in done.runs("a"))
    assert starts == sorted(set(starts))
    for (now, target), replaced in zip(wanted, [*(when for when, _ in wanted), 1_000_000][1:], strict=True):
        due = max(now, target)
        if due + length < replaced:  # it was left alone: it starts when it is due, or at the end of the run before it
            assert any(due - 1e-3 <= start <= due + length + 1e-3 for start in starts) or due + length > 1_200
