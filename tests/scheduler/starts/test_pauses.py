"""Pauses: of one job, of a tag, of everything; by hand and with an end."""

import math
from datetime import datetime, timedelta
from threading import Thread

import pytest
from hypothesis import given, settings, strategies as st

from kit import at, examples, nothing, relative
from schedule import After, At, Every, Missed, Schedule
from scheduler import (
    InvalidJob,
    JobChanged,
    JobParked,
    JobState,
    MissedReason,
    Outcome,
    Overlap,
    Pause,
    Retry,
    RunMissed,
    Scheduler,
    ScopePaused,
    ScopeResumed,
    StoreUp,
)
from scheduler.stores.memory import MemoryStore
from scheduler.testing import FlakyStore, simulate
from timerqueue.testing import START

EVERY = Every(100, anchor=START)


async def test_a_pause_of_everything_holds_all_jobs(clock, events):
    """And those that are added meanwhile; afterwards each goes on from its next slot."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        early = s.add(nothing, EVERY, id="early")
        s.pause(reason="maintenance")
        late = s.add(nothing, EVERY, id="late", start="now")
        await clock.travel(150)
        assert events.starts() == []
        assert {job.state for job in (early, late)} == {JobState.DISABLED}
        assert {job.next_start for job in (early, late)} == {None}
        assert {job.error for job in (early, late)} == {"all jobs are paused: maintenance"}
        s.resume()
        assert {job.state for job in (early, late)} == {JobState.SCHEDULED}
        assert {job.error for job in (early, late)} == {None}
        await clock.travel(100)
        assert relative(events.starts("early")) == relative(events.starts("late")) == [200]
        assert events.missed("early") == [(1, MissedReason.PAUSED)]
        assert events.missed("late") == [(1, MissedReason.PAUSED)] * 2  # its start at once, and the first slot


async def test_a_pause_of_a_tag_holds_those_that_have_it(clock, events):
    """The others go on."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, EVERY, id="a", tags=["x", "y"])
        s.add(nothing, EVERY, id="b", tags=["y"])
        s.pause("x")
        s.add(nothing, EVERY, id="c", tags=["x"])
        assert s.get("a").error == "tag 'x' is paused"
        await clock.travel(100)
        assert [job_id for job_id in "abc" if events.starts(job_id)] == ["b"]
        s.resume("x")
        await clock.travel(100)
        assert [len(events.starts(job_id)) for job_id in "abc"] == [1, 2, 1]


async def test_a_job_that_is_under_two_pauses_waits_for_both(clock, events):
    """Whichever ends first."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY, tags=["x", "y"])
        s.pause("x")
        s.pause("y")
        s.pause()
        for tag in (None, "x"):
            s.resume(tag)
            assert job.state is JobState.DISABLED
        s.resume("y")
        assert job.state is JobState.SCHEDULED


async def test_a_job_s_own_pause_is_an_intent_of_its_own(clock, events):
    """Resuming everything does not resume it, and resuming it does not get it out from under everything."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY, id="a")
        job.pause("broken")
        s.pause(reason="maintenance")
        assert job.error == "broken"
        s.resume()
        assert (job.state, job.error) == (JobState.DISABLED, "broken")
        s.pause(reason="maintenance")
        job.resume()
        assert (job.state, job.error) == (JobState.DISABLED, "all jobs are paused: maintenance")
        await clock.travel(100)
        assert events.starts() == []
        s.resume()
        await clock.travel(100)
        assert relative(events.starts()) == [200]
        assert [event.reason for event in events.of(JobChanged)] == [
            "broken",
            "resumed, but all jobs are paused: maintenance",
        ]


async def test_one_event_tells_of_a_pause_of_many(clock, events):
    """Not one for each job; nothing is told of what changes nothing."""
    async with Scheduler(clock=clock) as s:
        for number in range(10):
            s.add(nothing, EVERY, id=f"{number}", tags=["x"])
        s.listen(events)
        s.resume()
        s.resume("x")
        assert events == []
        s.pause("x", reason="why", until=at(50))
        s.resume("x")
        assert events == [ScopePaused("tag:x", "why", at(50)), ScopeResumed("tag:x")]


async def test_pauses_are_listed(clock):
    """Those of scopes, as they are now."""
    async with Scheduler(clock=clock) as s:
        s.add(nothing, EVERY).pause("not listed")
        s.pause(reason="maintenance")
        s.pause("x", until=at(60))
        s.pause("x", reason="again")
        assert s.pauses() == [Pause("*", "maintenance", START), Pause("tag:x", "again", START)]
        s.resume()
        s.resume("x")
        assert s.pauses() == []


async def test_a_pause_ends_by_itself(clock, events):
    """A job's own, a tag's, and that of everything."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        own = s.add(nothing, EVERY, id="own")
        s.add(nothing, EVERY, id="tagged", tags=["x"])
        own.pause("a while", until=at(150))
        s.pause("x", until=at(250))
        await clock.travel(350)
        assert relative(events.starts("own")) == [200, 300]
        assert relative(events.starts("tagged")) == [300]
        s.pause(until=at(450))
        await clock.travel(150)
        assert relative(events.starts("own")) == [200, 300, 500]
        assert s.pauses() == []


async def test_a_pause_that_is_renewed_ends_when_the_new_one_does(clock, events):
    """The end of the old one is forgotten, and so is that of one that was resumed by hand."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        job.pause(until=at(50))
        job.pause(until=at(250))
        s.pause(until=at(20))
        s.pause(until=at(150))
        await clock.travel(240)
        assert events.starts() == []
        await clock.travel(110)
        assert relative(events.starts()) == [300]
        job.pause(until=at(380))
        job.resume()
        job.pause()
        await clock.travel(100)
        assert job.state is JobState.DISABLED


@pytest.mark.parametrize(("step", "longer"), [(1_000, 0), (-1_000, 1_010)])
async def test_a_pause_ends_by_the_wall_clock(clock, events, step, longer):
    """Set forward past its end it is over at once; set back it lasts that much longer."""
    async with Scheduler(clock=clock) as s:
        s.pause(until=at(90))
        await clock.travel(80)
        clock.step(step)
        await clock.travel(longer - 1 if longer else 0)
        assert bool(s.pauses()) is (step < 0)
        await clock.travel(1)
        assert s.pauses() == []


async def test_what_runs_may_end(clock, events):
    """Then its job is DISABLED; what waited for the end of the run is missed."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, EVERY, args=(150,), overlap=Overlap.QUEUE)
        await clock.travel(210)
        s.pause()
        assert job.state is JobState.RUNNING
        await clock.travel(100)
        assert job.state is JobState.DISABLED
        assert events.outcomes() == [Outcome.SUCCEEDED]
        assert events.missed() == [(1, MissedReason.PAUSED)]


async def test_a_held_job_is_not_tried_again(clock, events):
    """Neither a waiting retry nor one that would follow from a run that goes on."""

    async def fail():
        raise ValueError

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(fail, EVERY, retry=Retry.constant(10))
        await clock.travel(105)
        s.pause()
        await clock.travel(30)
        assert len(events.starts()) == 1


async def test_holding_forgives_no_failures(clock):
    """Unlike the resume of a job by itself."""
    outcomes = iter([ValueError, ValueError, None])

    async def task():
        error = next(outcomes)
        if error is not None:
            raise error

    async with Scheduler(clock=clock) as s:
        job = s.add(task, EVERY)
        await clock.travel(210)
        s.pause()
        s.resume()
        assert job.statistics().consecutive_failures == 2
        job.pause()
        job.resume()
        assert job.statistics().consecutive_failures == 0


async def test_run_now_works_on_a_held_job(clock, events):
    """By hand is by hand."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        s.pause()
        job.run_now()
        await clock.travel(0)
        assert events.outcomes() == [Outcome.SUCCEEDED]
        assert job.state is JobState.DISABLED


@pytest.mark.parametrize(
    ("schedule", "options", "starts"),
    [
        pytest.param(After(100), {}, [250], id="a pause between runs counts from the end of the hold"),
        pytest.param(After(100), {"start": at(200)}, [200], id="a dated start that is still to come"),
        pytest.param(At(at(200)), {}, [200], id="a one-shot that is still to come"),
        pytest.param(At(at(100)), {}, [], id="a one-shot whose time has passed"),
    ],
)
async def test_a_job_that_was_added_under_a_pause_begins_when_that_ends(clock, events, schedule, options, starts):
    """As one that was paused by itself would."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.pause(until=at(150))
        s.add(nothing, schedule, **options)
        await clock.travel(290)
        assert relative(events.starts()) == starts


async def test_new_tags_bring_a_job_under_a_pause_and_out_of_it(clock, events):
    """At once."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.pause("x")
        job = s.add(nothing, EVERY)
        job.update(tags=["x"])
        assert job.state is JobState.DISABLED
        await clock.travel(110)
        job.update(tags=[])
        await clock.travel(100)
        assert relative(events.starts()) == [200]


async def test_a_new_schedule_does_not_get_a_job_out_from_under_a_pause(clock, events):
    """Nor does it one that was parked because its schedule had failed."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        s.pause()
        job.update(schedule=Every(10, anchor=START))
        await clock.travel(50)
        assert events.starts() == []
        s.resume()
        await clock.travel(20)
        assert relative(events.starts()) == [60, 70]


async def test_a_pause_may_come_before_the_scheduler_runs(clock, events):
    """And hold from the beginning."""
    s = Scheduler(clock=clock)
    s.listen(events)
    s.add(nothing, EVERY, start="now")
    s.pause(until=at(50))
    async with s:
        await clock.travel(110)
    assert relative(events.starts()) == [100]


async def test_pausing_works_from_any_thread(clock, events):
    """Like every verb."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        for verb, state in ((s.pause, JobState.DISABLED), (s.resume, JobState.SCHEDULED)):
            thread = Thread(target=verb)
            thread.start()
            thread.join()
            await clock.travel(0)
            assert job.state is state


@pytest.mark.parametrize("until", [datetime(2030, 1, 1), "tomorrow", 60, START, at(-1)])
async def test_an_end_that_makes_no_sense_is_refused(clock, until):
    """Nothing is paused then."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, EVERY)
        with pytest.raises(InvalidJob, match="until"):
            job.pause(until=until)
        with pytest.raises(InvalidJob, match="until"):
            s.pause(until=until)
        assert (job.state, s.pauses()) == (JobState.SCHEDULED, [])


async def test_a_removed_job_s_pause_is_forgotten(clock, events):
    """Its end wakes nobody, not even another job of its id."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, EVERY, id="a").pause(until=at(50))
        other = s.add(nothing, EVERY, id="a", on_conflict="replace")
        other.pause()
        await clock.travel(200)
        assert other.state is JobState.DISABLED
        assert events.starts() == []


class ToldStore(MemoryStore):
    """Remembers which pauses it was told of: what of, and why; None: the pause is over."""

    def __init__(self):
        super().__init__()
        self.told = []

    def commit(self, batch):
        self.told += [(f"job:{id}", pause.paused) for id, pause in batch.paused.items()]
        self.told += [(scope, pause and pause.reason) for scope, pause in batch.pauses.items()]
        return super().commit(batch)


async def test_a_store_is_told_of_every_change_of_a_pause(clock):
    """By hand and by its own end: the scope, and the pause as it is now."""
    store = ToldStore()
    async with Scheduler(clock=clock, store=store) as s:
        s.register("a", nothing)
        job = s.add("a", EVERY, id="a")
        await s.flush()
        for change in (
            lambda: job.pause("by hand", until=at(50)),
            lambda: s.pause("x", reason="why", until=at(60)),
            s.pause,
            s.resume,
        ):
            change()
            await s.flush()
        await clock.travel(70)
        await s.flush()
    assert store.told == [
        ("job:a", "by hand"), ("tag:x", "why"), ("*", "paused"), ("*", None), ("job:a", None), ("tag:x", None),
    ]  # fmt: skip


async def test_a_pause_that_is_ended_while_the_job_waits_for_its_task_stays_ended(clock):
    """The row that the job waits with says what it said at the start, but for its pause."""
    store = MemoryStore()
    async with Scheduler(clock=clock, store=store) as s:
        s.register("a", nothing)
        s.add("a", EVERY, id="a").pause("by hand")
    async with Scheduler(clock=clock, store=store) as s:
        job = s.get("a")
        job.resume()
        s.register("a", nothing)
        assert (job.error, relative([job.next_start.timestamp()])) == (None, [100])
        await s.flush()
    async with Scheduler(clock=clock, store=store) as s:
        job = s.get("a")
        job.pause("again")
        s.register("a", nothing)
        assert (job.error, job.next_start) == ("again", None)


TAGS = [frozenset(), frozenset("x"), frozenset("y"), frozenset("xy")]
SCOPES = [None, "x", "y"]

actions = st.one_of(
    st.tuples(st.just("pause"), st.sampled_from(SCOPES), st.none() | st.integers(1, 300)),
    st.tuples(st.just("resume"), st.sampled_from(SCOPES), st.none()),
    st.tuples(st.just("pause job"), st.integers(0, 3), st.none() | st.integers(1, 300)),
    st.tuples(st.just("resume job"), st.integers(0, 3), st.none()),
)


class Model:
    """What holds, in the shortest form: until when each scope and each job is paused."""

    def __init__(self):
        self.until = {}

    def apply(self, verb, target, length, now):
        """Do it, and give the end of the pause as a datetime."""
        end = math.inf if length is None else now + length
        self.until[verb.split()[-1] == "job", target] = end if verb.startswith("pause") else 0
        return None if length is None else at(end)

    def is_covered(self, number, instant):
        """Whether a job may not start."""
        keys = [(True, number), (False, None), *((False, tag) for tag in TAGS[number])]
        return any(instant < self.until.get(key, 0) for key in keys)


def act(s, jobs, verb, target, until):
    """Do it to the scheduler."""
    match verb:
        case "pause":
            s.pause(target, until=until)
        case "resume":
            s.resume(target)
        case "pause job":
            jobs[target].pause(until=until)
        case "resume job":
            jobs[target].resume()


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(1, 90), actions), max_size=12))
def test_a_job_starts_if_and_only_if_no_pause_covers_it(steps):
    """Whatever is paused and resumed, for however long: four jobs of all kinds of tags, against a model."""
    model, expected = Model(), {number: [] for number in range(4)}

    async def build(s, clock):
        jobs = [s.add(nothing, Every(10, anchor=START), id=f"{n}", tags=tags) for n, tags in enumerate(TAGS)]
        now = 0.5  # never at the instant of a slot
        await clock.sleep(now)
        for step, (verb, target, length) in [*steps, (90, ("resume", None, None))]:
            act(s, jobs, verb, target, model.apply(verb, target, length, now))
            slots = range(int(now // 10 + 1) * 10, int((now + step) // 10 + 1) * 10, 10)
            for number, starts in expected.items():
                starts += [slot for slot in slots if not model.is_covered(number, slot)]
            await clock.sleep(step)
            now += step
        s.stop(grace=0)

    done = simulate(build, 2_000)
    assert {n: relative(run.started for run in done.runs(f"{n}")) for n in range(4)} == expected


async def test_a_pause_of_very_many_holds_all_of_them_at_once(clock, events):
    """Although the work that this makes is done a little at a time; the same when it ends."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        jobs = [s.add(nothing, EVERY) for _ in range(1_000)]
        await clock.travel(99)
        clock.advance(1)
        s.pause()
        assert all(job.is_paused for job in jobs)
        await clock.travel(150)
        assert events.starts() == []
        assert {job.state for job in jobs} == {JobState.DISABLED}
        s.resume()
        await clock.travel(60)
        assert relative(events.starts()) == [300] * 1_000


@pytest.mark.parametrize("scope", ["its own", "of its tag", "of everything", "of a tag that it gets"])
async def test_what_waits_for_room_does_not_start_once_it_is_paused(scope, clock, events):
    """It has not begun, and a pause says that nothing begins. What runs goes on."""
    async with Scheduler(clock=clock, limit=1) as s:
        s.listen(events)
        s.add(clock.sleep, "@every 1d", id="long", args=(50,), start="now")
        job = s.add(nothing, EVERY, id="waiting", tags=["x"], start="now")
        await clock.travel(10)
        assert job.state is JobState.STARTING
        match scope:
            case "its own":
                job.pause()
            case "of its tag":
                s.pause("x")
            case "of everything":
                s.pause()
            case _:
                s.pause("y")
                job.update(tags=["y"])
        assert job.state is JobState.DISABLED
        await clock.travel(80)
    assert events.starts("waiting") == []
    assert events.missed("waiting") == [(1, MissedReason.PAUSED)]
    assert events.outcomes("long") == [Outcome.SUCCEEDED]


@pytest.mark.parametrize("scope", [None, "x"])
async def test_what_was_started_by_hand_outlives_another_pause(scope, clock, events):
    """Whoever asked for it knew that the job was paused."""
    async with Scheduler(clock=clock, limit=1) as s:
        s.listen(events)
        s.add(clock.sleep, "@every 1d", id="long", args=(50,), start="now")
        job = s.add(nothing, EVERY, id="by hand", tags=["x"])
        job.pause()
        await clock.travel(10)
        job.run_now()
        s.pause(scope)
        job.pause("for another reason")
        await clock.travel(80)
    assert relative(events.starts("by hand")) == [50]
    assert events.missed("by hand") == []


async def test_what_waits_for_a_store_that_is_down_does_not_start_once_it_is_paused(clock, events):
    """Its mark is withdrawn, and its tick is missed."""
    store = FlakyStore(MemoryStore())
    s = Scheduler(store=store, clock=clock)
    s.listen(events)
    s.register("nothing", nothing)
    async with s:
        job = s.add("nothing", EVERY, id="a")
        await clock.travel(50)
        store.fail_on = range(store.counted + 1, store.counted + 6)
        await clock.travel(51)
        assert job.state is JobState.STARTING
        job.pause()
        await clock.travel(90)
        assert [record.outcome for record in await s.history("a")] == [Outcome.MISSED]
    assert events.of(StoreUp)
    assert events.starts() == []
    assert events.missed() == [(1, MissedReason.PAUSED)]


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE])
async def test_whoever_hears_of_a_missed_tick_may_pause_its_job(overlap, clock, events):
    """Each tick has one outcome all the same: the one that took its place is missed too, for the pause."""
    async with Scheduler(clock=clock, limit=1) as s:
        s.listen(events)
        s.listen(lambda event: s.get("a").pause() if isinstance(event, RunMissed) else None)
        s.add(clock.sleep, "@every 1d", id="long", args=(350,), start="now")
        job = s.add(nothing, EVERY, id="a", overlap=overlap)
        await clock.travel(600)
        assert [event.count for event in events.of(RunMissed)] == [1] * job.statistics().missed
        reasons = {relative([event.first_due])[0]: event.reason for event in events.of(RunMissed)}
    assert reasons[100] in {MissedReason.NO_ROOM, MissedReason.OVERLAP}
    assert set(reasons) == set(range(100, 100 + 100 * len(reasons), 100))
    assert list(reasons.values())[1:] == [MissedReason.PAUSED] * (len(reasons) - 1)
    assert len(reasons) == job.statistics().missed
    assert events.starts("a") == []


async def test_a_tick_that_was_too_late_is_missed_once_though_its_job_is_paused_for_that(clock, events):
    """By a listener, in the middle of its start that was none."""
    async with Scheduler(clock=clock, limit=1) as s:
        s.listen(events)
        s.listen(lambda event: s.get("a").pause() if isinstance(event, RunMissed) else None)
        s.add(clock.sleep, "@every 1d", id="long", args=(150,), start="now")
        job = s.add(nothing, EVERY, id="a", missed=Missed.SKIP, grace="10s")
        await clock.travel(170)
        assert events.missed("a") == [(1, MissedReason.NO_ROOM)]
        assert job.state is JobState.DISABLED
        job.resume()
        await clock.travel(100)
    assert relative(events.starts("a")) == [200]
    assert job.statistics().missed == 1


async def test_what_waits_when_its_schedule_breaks_does_not_start_under_a_pause(clock, events):
    """Being parked is no pause: nobody has asked for that tick by hand."""

    class Breaks(Schedule):
        """Answers once."""

        def next(self, after):
            if after > START:
                raise ValueError
            return START + timedelta(seconds=10)

    async with Scheduler(clock=clock, limit=1) as s:
        s.listen(events)
        s.add(clock.sleep, "@every 1d", id="long", args=(50,), start="now")
        job = s.add(nothing, Breaks(), id="a")
        await clock.travel(20)
        assert job.state is JobState.STARTING
        assert events.of(JobParked)
        s.pause()
        await clock.travel(80)
    assert events.starts("a") == []
    assert events.missed("a") == [(1, MissedReason.PAUSED)]
