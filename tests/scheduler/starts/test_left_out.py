"""What a pause leaves out is missed: one record when it ends, with the pause that has done it."""

from datetime import timedelta

import anyio
import pytest
from hypothesis import given, settings, strategies as st

from kit import at, check_every_slot, examples, nothing, relative
from schedule import After, At, Cron, Every
from scheduler import JobState, MissedReason, Outcome, Retry, RunMissed, Scheduler
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START, ManualClock

EVERY = Every(100, anchor=START)


def left_out(events):
    """Return what pauses have left out: (first, last, count, why), in seconds from the start."""
    found = [event for event in events.of(RunMissed) if event.reason is MissedReason.PAUSED]
    return [(*relative([event.first_due, event.last_due]), event.count, event.why) for event in found]


PAUSES = {
    "own": (lambda s, job: job.pause("broken"), lambda s, job: job.resume(), "broken"),
    "own, without a reason": (lambda s, job: job.pause(), lambda s, job: job.resume(), None),
    "tag": (lambda s, _: s.pause("x"), lambda s, _: s.resume("x"), "tag 'x' is paused"),
    "all": (lambda s, _: s.pause(reason="deploy"), lambda s, _: s.resume(), "all jobs are paused: deploy"),
}


@pytest.mark.parametrize("kind", PAUSES)
async def test_the_end_of_a_pause_tells_what_it_has_left_out(clock, events, kind):
    """There was no trace of it: neither an event, nor a count, nor a record."""
    pause, resume, why = PAUSES[kind]
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY, id="job", tags=["x"])
        await clock.travel(250)
        pause(s, job)
        await clock.travel(400)
        assert left_out(events) == []
        resume(s, job)
        assert left_out(events) == [(300, 600, 4, why)]
        assert (job.statistics().missed, s.statistics().missed) == (4, 4)
        await clock.travel(100)
        assert relative(events.starts()) == [100, 200, 700]
        pause(s, job)
        resume(s, job)
        assert len(left_out(events)) == 1


async def test_a_pause_that_ends_by_itself_tells_it_too(clock, events):
    """A slot at the very end of it is one of them."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, EVERY).pause(until=at(300))
        await clock.travel(450)
        assert left_out(events) == [(100, 300, 3, None)]
        assert relative(events.starts()) == [400]


async def test_of_two_pauses_the_last_tells_all(clock, events):
    """A start that both leave out is left out once."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY, tags=["x"])
        job.pause("broken")
        await clock.travel(150)
        s.pause("x")
        await clock.travel(100)
        job.resume()
        assert left_out(events) == []
        await clock.travel(100)
        s.resume("x")
        assert left_out(events) == [(100, 300, 3, "tag 'x' is paused")]


async def test_a_job_that_is_added_under_a_pause_has_left_out_starts_too(clock, events):
    """From its first one on."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.pause()
        await clock.travel(150)
        s.add(nothing, EVERY)
        await clock.travel(200)
        s.resume()
        assert left_out(events) == [(200, 300, 2, "all jobs are paused")]


SCHEDULES = {
    "after": (After(100), 1, 1),
    "at": (At(at(120)), 1, 0),
    "cron": (Cron("*/2 * * * *"), 3, 1),
    "every with jitter": (Every(100, anchor=START, jitter=1), 4, 1),
    "both": (Every(100, anchor=START) | Every(150, anchor=START), 5, 1),
}


@pytest.mark.parametrize("kind", SCHEDULES)
async def test_each_kind_of_schedule_says_which_starts_these_were(clock, events, kind):
    """What counts from the end of a run has one; what is over has no further one."""
    schedule, count, has_next = SCHEDULES[kind]
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, schedule)
        await clock.travel(1)
        job.pause("why")
        await clock.travel(419)
        job.resume()
        assert [each[2:] for each in left_out(events)] == [(count, "why")]
        assert (job.next_start is not None) == bool(has_next)


async def test_a_start_at_once_under_a_pause_is_left_out(clock, events):
    """It was due as it was asked for."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.pause()
        s.add(nothing, EVERY, start="now")
        s.add(nothing, After(100))
        await clock.travel(1)
        assert left_out(events) == [(0, 0, 1, "all jobs are paused")] * 2


async def test_a_start_that_was_set_is_left_out_once(clock, events):
    """And so are the regular ones before and after it."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        job.pause()
        await clock.travel(150)
        job.set_next_start(at(330))
        assert left_out(events) == [(100, 100, 1, None)]
        await clock.travel(300)
        job.resume()
        assert left_out(events)[1:] == [(330, 400, 2, None)]
        job.pause()
        job.set_next_start(at(530))
        job.resume()
        await clock.travel(100)
        assert relative(events.starts()) == [530]


async def test_a_new_schedule_under_a_pause_counts_from_then_on(clock, events):
    """What the old one had left out is told with the change."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        job.pause()
        await clock.travel(250)
        job.update(schedule=Every(10, anchor=START))
        assert left_out(events) == [(100, 200, 2, None)]
        await clock.travel(25)
        job.resume()
        assert left_out(events)[1:] == [(260, 270, 2, None)]


async def test_a_job_that_is_removed_under_a_pause_tells_what_was_left_out_until_then(clock, events):
    """Its history stays."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        job.pause()
        await clock.travel(250)
        job.remove()
        assert left_out(events) == [(100, 200, 2, None)]


async def test_a_job_that_has_given_up_tells_it_when_it_is_resumed(clock, events):
    """It was disabled, which is a pause with a reason."""

    async def fail():
        raise ValueError

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(fail, EVERY, retry=Retry.constant("1s", max_retries=0))
        await clock.travel(450)
        assert job.state is JobState.DISABLED
        why = job.error
        job.resume()
        assert left_out(events) == [(200, 400, 3, why)]


# -- with a store ------------------------------------------------------------------------------------------------------


async def records(s):
    """Return the records of missed ticks, oldest first."""
    await s.flush()
    return [each for each in reversed(await s.history("job")) if each.outcome is Outcome.MISSED]


async def test_history_has_one_record_of_a_pause(clock):
    """It answers why a job did not run last night."""
    async with Scheduler(store=MemoryStore(), clock=clock) as s:
        s.register("work", nothing)
        job = s.add("work", EVERY, id="job")
        job.pause("moving house")
        await clock.travel(450)
        job.resume()
        (record,) = await records(s)
        assert (record.due, record.last_due, record.count) == (at(100), at(400), 4)
        assert (record.reason, record.error) == (MissedReason.PAUSED, "moving house")


async def test_a_pause_goes_on_while_no_process_runs(clock):
    """The next one tells of all of it, in one record."""
    store = MemoryStore()
    async with Scheduler(store=store, clock=clock) as s:
        s.register("work", nothing)
        s.add("work", EVERY, id="job")
        await s.flush()
        await clock.travel(150)
        s.pause(reason="deploy")
    await clock.travel(500)
    async with Scheduler(store=store, clock=clock) as s:
        s.register("work", nothing)
        await clock.travel(100)
        s.resume()
        (record,) = await records(s)
        assert (record.due, record.last_due, record.count) == (at(200), at(700), 6)
        assert record.error == "all jobs are paused: deploy"
        assert s.get("job").statistics().missed == 6


async def test_a_record_that_is_not_exact_says_by_which_pause_too(clock):
    """A schedule that cannot be counted says how many at least."""
    async with Scheduler(store=MemoryStore(), clock=clock) as s:
        s.register("work", nothing)
        job = s.add("work", "* * * * * | */2 * * * *", id="job")
        job.pause("long")
        await clock.travel(timedelta(days=30).total_seconds())
        job.resume()
        (record,) = await records(s)
        assert (record.is_exact, record.error) == (False, "long")


MOVES = st.lists(
    st.tuples(
        st.sampled_from(
            ["pause", "resume", "pause tag", "resume tag", "pause all", "resume all", "restart", "run now", "nothing"]
        ),
        st.integers(0, 40),
    ),
    max_size=12,
)


async def act(s, move):
    """Pause, resume or run: the job itself, its tag, or everything."""
    verb, _, scope = move.partition(" ")
    match verb, scope:
        case "run", _:
            await s.get("job").run_now()
        case (("pause" | "resume"), ""):
            getattr(s.get("job"), verb)()
        case (("pause" | "resume"), "tag"):
            getattr(s, verb)("x")
        case (("pause" | "resume"), "all"):
            getattr(s, verb)()


@settings(max_examples=examples(100), deadline=None)
@given(MOVES)
def test_every_slot_has_one_outcome_whatever_is_paused(moves):
    """From the first to the last: it ran, or there is one record that says why not."""
    store = MemoryStore()

    async def process(clock, mine):
        """Live as one process, until a move restarts it. The moves that are left."""
        async with Scheduler(store=store, clock=clock) as s:
            s.register("work", nothing)
            s.add("work", Every(10, anchor=START), id="job", tags=["x"], on_conflict="keep")
            while mine:
                move, seconds = mine.pop(0)
                if move == "restart":
                    break
                await act(s, move)
                await clock.travel(seconds)
            else:
                for end in ("resume", "resume tag", "resume all"):
                    await act(s, end)
                await clock.travel(25)
                return
        await clock.travel(seconds)
        await process(clock, mine)

    async def main():
        await process(ManualClock(), list(moves))

    anyio.run(main)
    ticks = [tick for tick in store.history("job", limit=10_000) if not tick.due_us % 10_000_000]
    check_every_slot(ticks, 10_000_000)
