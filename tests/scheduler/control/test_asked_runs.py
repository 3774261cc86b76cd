"""`run_now` gives something to await: how the run that was asked for has ended, or why there was none."""

import gc
import threading
import weakref
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel
import pytest
from anyio.to_thread import run_sync

from kit import PATIENCE, settle
from schedule import At, Every
from scheduler import (
    AskedRun,
    InvalidJob,
    LifecycleError,
    Missed,
    MissedReason,
    Outcome,
    Overlap,
    Retry,
    RunEnded,
    RunMissed,
    Scheduler,
)
from scheduler._jobs import asked as asked_module
from scheduler.stores.memory import MemoryStore

LONG = Every("1d")


def at(seconds):
    """An instant so long after the beginning of the clock."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


@pytest.fixture(params=["memory", "store"])
def scheduler(request, clock):
    """A scheduler, without a store and with one."""
    return Scheduler(clock=clock, store=None if request.param == "memory" else MemoryStore())


def add(s, func, **options):
    """Add a job that does not start by itself."""
    s.register("work", func)
    return s.add("work", LONG, id="job", **options)


async def three():
    """Have a result."""
    return 3


async def test_a_run_that_was_asked_for_is_awaited(scheduler, clock):
    """The whole of its end is the answer."""
    async with scheduler as s:
        asked = add(s, three).run_now()
        ended = await asked
        assert isinstance(asked, AskedRun)
        assert asked.is_done
    assert isinstance(ended, RunEnded)
    assert (ended.job_id, ended.outcome, ended.result, ended.attempt) == ("job", Outcome.SUCCEEDED, 3, 1)
    assert ended.started == clock.now()


async def test_a_run_without_a_result_is_awaited_too(scheduler):
    """Such a run of a plain job goes the short way."""

    async def nothing():
        pass

    async with scheduler as s:
        ended = await add(s, nothing).run_now()
    assert (ended.outcome, ended.result, ended.error) == (Outcome.SUCCEEDED, None, None)


async def test_a_run_that_takes_its_time_is_awaited(scheduler, clock):
    """Nothing is known before it has ended."""

    async def work():
        await clock.sleep(5)

    async with scheduler as s:
        asked = add(s, work).run_now()
        await clock.travel(1)
        assert not asked.is_done
        await clock.travel(5)
        assert (await asked).duration == 5


async def test_the_same_answer_is_given_to_all_who_wait_and_to_who_comes_later(scheduler):
    """In a task, in two, and afterwards."""
    answers = []

    async def wait():
        answers.append(await asked)

    async with scheduler as s:
        asked = add(s, three).run_now()
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(wait)
        answers.append(await asked)
        answers.append(asked.result())
    assert len(answers) == 4
    assert len({id(answer) for answer in answers}) == 1


async def test_who_gives_up_waiting_leaves_nothing_behind(scheduler, clock):
    """The run goes on."""

    async def work():
        await clock.sleep(5)

    async with scheduler as s:
        asked = add(s, work).run_now()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await asked
        await clock.travel(6)
        assert (await asked).outcome is Outcome.SUCCEEDED


async def test_a_failure_is_an_outcome_and_is_not_raised(scheduler):
    """The error is in the answer."""

    async def fail():
        raise ValueError("no")

    async with scheduler as s:
        ended = await add(s, fail).run_now()
    assert (ended.outcome, ended.error) == (Outcome.FAILED, "ValueError: no")


async def test_what_retries_follow_is_awaited_until_the_last(scheduler, clock):
    """Two attempts fail."""
    attempts = []

    async def work():
        attempts.append(clock.wall())
        if len(attempts) < 3:
            raise ValueError

    async with scheduler as s:
        asked = add(s, work, retry=Retry.constant("10s", max_retries=5)).run_now()
        await clock.travel(11)
        assert not asked.is_done
        await clock.travel(20)
        ended = await asked
    assert (ended.outcome, ended.attempt) == (Outcome.SUCCEEDED, 3)


@pytest.mark.parametrize(
    "give_way",
    [
        lambda job: job.set_next_start(at(5)),
        lambda job: job.pause(),
        lambda job: job.remove(),
    ],
    ids=["another start", "a pause", "removal"],
)
async def test_a_retry_that_does_not_come_leaves_the_end_that_there_was(scheduler, clock, give_way):
    """Its `retry_at` says when it would have come."""

    async def fail():
        raise ValueError

    async with scheduler as s:
        job = add(s, fail, retry=Retry.constant("10s", max_retries=5))
        asked = job.run_now()
        await clock.travel(1)
        assert not asked.is_done
        give_way(job)
        await clock.travel(0)
        ended = await asked
        assert (ended.outcome, ended.attempt) == (Outcome.FAILED, 1)
        assert ended.retry_at is not None


async def test_a_retry_gives_way_to_a_regular_start(clock):
    """It would have come three seconds after that."""

    async def fail():
        raise ValueError

    async with Scheduler(clock=clock) as s:
        job = s.add(fail, Every("10s", anchor=clock.now()), retry=Retry.constant("9s", max_retries=5))
        await clock.travel(5)
        asked = job.run_now()
        await clock.travel(6)
        assert (await asked).attempt == 1


async def test_a_tick_that_finds_a_run_going_is_missed(scheduler, clock):
    """By the overlap rule that is the default."""

    async def work():
        await clock.sleep(5)

    async with scheduler as s:
        job = add(s, work)
        first = job.run_now()
        await clock.travel(1)
        missed = await job.run_now()
        assert isinstance(missed, RunMissed)
        assert (missed.outcome, missed.reason) == (Outcome.MISSED, MissedReason.OVERLAP)
        assert (missed.result, missed.error) == (None, "missed: overlap")
        await clock.travel(5)
        assert (await first).outcome is Outcome.SUCCEEDED


async def test_a_tick_that_waits_for_a_run_is_awaited(scheduler, clock):
    """Of two that wait the older one is missed."""

    async def work():
        await clock.sleep(5)

    async with scheduler as s:
        job = add(s, work, overlap=Overlap.QUEUE)
        first = job.run_now()
        await clock.travel(1)
        asked = [first, job.run_now(), job.run_now()]
        await clock.travel(20)
        answers = [await each for each in asked]
    assert [each.outcome for each in answers] == [Outcome.SUCCEEDED, Outcome.MISSED, Outcome.SUCCEEDED]


async def test_a_run_that_is_replaced_is_cancelled(scheduler, clock):
    """The one that replaces it succeeds."""

    async def work():
        await clock.sleep(5)

    async with scheduler as s:
        job = add(s, work, overlap=Overlap.REPLACE)
        first = job.run_now()
        await clock.travel(1)
        second = job.run_now()
        await clock.travel(10)
        assert (await first).outcome is Outcome.CANCELLED
        assert (await second).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("overlap", list(Overlap))
async def test_each_of_many_has_an_answer(clock, overlap):
    """Those for which another stands while they wait for room have the end of that one."""

    async def work():
        await clock.sleep(5)

    async with Scheduler(1, clock=clock) as s:
        s.add(work, LONG, id="other").run_now()
        job = s.add(work, LONG, overlap=overlap, missed=Missed.LATEST)
        asked = []
        for _ in range(4):
            asked.append(job.run_now())
            await clock.travel(1)
        await clock.travel(100)
        answers = [await each for each in asked]
        counts = job.statistics()
    assert counts.runs == len({each.due for each in answers if isinstance(each, RunEnded)}) > 0
    assert counts.missed == sum(isinstance(each, RunMissed) for each in answers)
    dues = [each.due if isinstance(each, RunEnded) else each.first_due for each in answers]
    assert dues == sorted(dues)


async def test_a_job_that_is_removed_while_it_runs_has_a_cancelled_run(scheduler, clock):
    """It has begun, so it has an end."""

    async def work():
        await clock.sleep(5)

    async with scheduler as s:
        job = add(s, work)
        asked = job.run_now()
        await clock.travel(1)
        job.remove()
        await clock.travel(1)
        assert (await asked).outcome is Outcome.CANCELLED


async def test_a_job_that_is_removed_before_its_run_began_misses_it(clock):
    """It waits for room."""

    async def work():
        await clock.sleep(5)

    async with Scheduler(1, clock=clock) as s:
        s.add(work, LONG, id="other").run_now()
        job = s.add(work, LONG)
        asked = job.run_now()
        await clock.travel(1)
        job.remove()
        assert (await asked).reason is MissedReason.REMOVED


async def test_a_run_that_is_cut_off_by_the_stop_is_cancelled(scheduler, clock):
    """The answer is there when the scheduler has stopped."""

    async def work():
        await clock.sleep(100)

    async with scheduler as s:
        asked = add(s, work).run_now()
        await clock.travel(1)
        s.stop(grace=0)
    assert (await asked).outcome is Outcome.CANCELLED


@pytest.mark.parametrize("delivery", ["at_most_once", "at_least_once"])
async def test_what_has_not_begun_when_the_scheduler_stops_is_missed(scheduler, clock, delivery):
    """A store may keep the tick for the next scheduler: whoever waits here has waited for this one."""

    async def work():
        await clock.sleep(100)

    async with scheduler as s:
        s.resize(1)
        s.add(work, LONG, id="other", durable=False).run_now()
        asked = add(s, work, delivery=delivery).run_now()
        await clock.travel(1)
        s.stop(grace=0)
    assert (await asked).reason is MissedReason.STOPPED


async def test_a_retry_that_the_stop_overtakes_leaves_the_end_that_there_was(scheduler, clock):
    """A store keeps the retry for the next scheduler."""

    async def fail():
        raise ValueError

    async with scheduler as s:
        asked = add(s, fail, retry=Retry.constant("1h", max_retries=5)).run_now()
        await clock.travel(1)
    assert (await asked).outcome is Outcome.FAILED


async def test_who_asks_before_the_scheduler_runs_has_an_answer_once_it_does(scheduler):
    """With a store: once that has been read."""
    asked = add(scheduler, three).run_now()
    assert not asked.is_done
    async with scheduler:
        assert (await asked).result == 3


async def test_who_asks_a_scheduler_that_never_runs_has_an_answer_when_it_is_stopped(scheduler):
    """Nobody waits for ever."""
    asked = add(scheduler, three).run_now()
    scheduler.stop()
    assert (await asked).reason is MissedReason.STOPPED


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_nobody_waits_for_ever_for_a_scheduler_that_does_not_run(scheduler, monkeypatch, is_awaited):
    """It waited in silence. What was asked for stands: the scheduler still answers it once it runs."""
    monkeypatch.setattr(asked_module, "START_WITHIN", 0.01)
    asked = add(scheduler, three).run_now()
    with (
        anyio.fail_after(PATIENCE),
        pytest.raises(LifecycleError, match=r"'job'.* cannot begin: this scheduler does not run; .*s\.run"),
    ):
        await (asked if is_awaited else run_sync(asked.result))
    with pytest.raises(TimeoutError, match=r"not ended after 0\.01 s: this scheduler does not run"):
        await run_sync(asked.result, "10ms")
    async with scheduler:
        assert (await asked).result == 3


async def test_who_waits_before_the_scheduler_runs_has_an_answer_soon_after_it_does(scheduler):
    """A program starts its threads in any order."""
    asked, answers = add(scheduler, three).run_now(), []

    async def wait():
        answers.append(await asked)

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await settle()
        async with scheduler:
            await asked
    assert [answer.result for answer in answers] == [3]


async def test_another_thread_asks_and_waits(scheduler):
    """It blocks itself alone."""
    async with scheduler as s:
        job = add(s, three)
        ended = await run_sync(lambda: job.run_now().result())
    assert ended.result == 3


async def test_a_task_in_a_thread_waits_for_another_job(clock):
    """A job that starts another one."""
    async with Scheduler(clock=clock) as s:
        other = s.add(three, LONG)
        job = s.add(lambda: other.run_now().result("10s").result, LONG)
        assert (await job.run_now()).result == 3


async def test_another_event_loop_waits(scheduler):
    """Each event loop is woken in its own thread."""

    async def wait():
        return (await job.run_now()).result

    async with scheduler as s:
        job = add(s, three)
        assert await run_sync(anyio.run, wait) == 3


async def test_a_thread_that_waits_too_long_is_told(scheduler, clock):
    """And so is who gives a timeout that is none."""

    async def work():
        await clock.sleep(5)

    async with scheduler as s:
        asked = add(s, work).run_now()
        await clock.travel(1)
        with pytest.raises(TimeoutError, match=r"the run of job 'job' that was asked for has not ended after 0 s"):
            await run_sync(asked.result, 0)
        with pytest.raises(InvalidJob, match="timeout"):
            await run_sync(asked.result, "soon")


async def test_nobody_may_block_an_event_loop_by_waiting(scheduler, clock):
    """The run would never end."""

    async def work():
        await clock.sleep(5)

    async with scheduler as s:
        asked = add(s, work).run_now()
        with pytest.raises(RuntimeError, match="await it instead"):
            asked.result()


async def test_all_that_is_asked_for_while_the_scheduler_stops_is_answered(clock):
    """Another thread asks on and on: each has an answer, or is refused."""
    asked = []
    refused = threading.Event()

    def ask():
        try:
            while True:
                asked.append(job.run_now())
        except Exception:
            refused.set()
            raise

    async with Scheduler(clock=clock) as s:
        job = s.add(three, LONG)
        async with anyio.create_task_group() as group:

            async def asks():
                with pytest.raises(Exception, match="stopped"):
                    await run_sync(ask)

            group.start_soon(asks)
            while len(asked) < 10:
                await anyio.lowlevel.checkpoint()
            s.stop(grace=0)
    assert refused.is_set()
    assert all(each.is_done for each in asked)


async def test_nobody_need_wait(clock):
    """Once it has ended nothing holds what was asked for, nor the result."""

    class Result:
        pass

    made = []

    async def work():
        result = Result()
        made.append(weakref.ref(result))
        return result

    async with Scheduler(clock=clock) as s:
        job = s.add(work, LONG)
        for _ in range(3):
            job.run_now()
            await clock.travel(1)
        gc.collect()
        assert len(made) == 3
        assert not any(ref() for ref in made)
        assert job.sparse is None


async def test_a_one_shot_is_asked_for_before_its_time(clock):
    """Its own start is still to come."""
    async with Scheduler(clock=clock) as s:
        job = s.add(three, At(clock.now() + timedelta(hours=1)))
        assert (await job.run_now()).result == 3
        assert job.next_start == clock.now() + timedelta(hours=1)


async def test_the_clock_is_set_back_under_a_run_that_was_asked_for(clock):
    """Its tick has a record of before: it gets another name, and the answer comes all the same."""
    async with Scheduler(clock=clock, store=MemoryStore()) as s:
        job = add(s, three)
        first = await job.run_now()
        clock.step(-1)
        await clock.travel(1)
        second = await job.run_now()
    assert first.result == second.result == 3
