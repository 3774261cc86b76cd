"""An audit finds nothing wrong where nothing is, whenever it looks and however long each turn of the loop takes."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kit import examples, nothing, settle
from schedule import After, At, Cron, Every
from scheduler import Overlap, Retry, Scheduler
from scheduler.stores.memory import MemoryStore
from timerqueue import Alarm
from timerqueue.testing import START, ManualClock

EASED = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
SECONDS = st.sampled_from([0.0, 0.05, 0.3, 1.0, 1.5, 7.0])
SCHEDULES = st.sampled_from(
    [Every(0.3), Every(1, anchor=START), Every(3), After(0.5), Cron("* * * * * *"), At(START.replace(second=5))]
)
STEPS = st.one_of(
    st.tuples(st.just("travel"), SECONDS),
    st.tuples(st.just("stall"), SECONDS),
    st.tuples(st.just("set the clock"), st.sampled_from([-3_600, -2, -0.5, 0.5, 2, 3_600])),
    st.tuples(st.sampled_from(["pause", "resume", "run now", "by hand", "audit", "reconcile"]), st.integers(0, 3)),
)


async def test_what_is_due_in_both_looks_is_not_mended(clock):
    """A turn takes longer than the interval: the job has left the heap again when it is looked at once more."""
    async with Scheduler(clock=clock) as s:
        audits, mended = [], watch(s)
        s._core.queue.push(clock.monotonic() + 1, lambda: s._watchdog.audit(audits.append))
        s._core.queue.push(clock.monotonic() + 1, clock.advance, 1.5)
        s.add(nothing, Every(1, anchor=START), id="a")
        await clock.travel(1)
        await settle()
        assert [(audit.mended, audit.jobs) for audit in audits] == [(0, 1)]
        assert mended == []


async def test_what_is_left_until_the_clock_is_trusted_is_not_mended(clock):
    """Neither meanwhile nor afterwards, when hundreds are planned again, some at a time."""
    async with Scheduler(clock=clock, store=MemoryStore()) as s:
        s.register("nothing", nothing)
        for number in range(500):
            s.add("nothing", Every(10, anchor=START), id=f"job-{number}")
        await s.flush()
        mended, clock_guard = watch(s), s._core.clock_guard
        clock_guard.withhold(s._core.jobs.jobs())
        await clock.travel(15)
        s.reconcile()
        clock_guard.withhold(())
        s.reconcile()
        assert mended == []
        await settle()
        assert (await s.audit()).jobs == 500
        assert mended == []


async def test_nothing_is_mended_once_nothing_starts_any_more(clock):
    """What is due while the last runs end stays due, and is the next process's."""
    async with Scheduler(clock=clock) as s:
        s.add(clock.sleep, At(START.replace(second=1)), args=[30], id="long")
        s.add(nothing, Every(10, anchor=START), id="a")
        await clock.travel(5)
        mended = watch(s)
        s.stop(grace=60)
        await clock.travel(10)
        s.reconcile()
        await clock.travel(30)
    assert mended == []


def watch(s):
    """Note which jobs the watchdog would mend, instead of mending them."""
    mended = []
    s._watchdog._mend = lambda job, flaw, _current: mended.append((job.id, flaw))
    return mended


class Look(Alarm):
    """An audit that begins amid the others of a turn."""

    def __init__(self, s):
        super().__init__()
        self.s = s

    def fire(self):
        self.s._watchdog.audit()


def look_before_each(s):
    """Have an audit begin in each turn, before each alarm in it, unless one goes on."""
    queue = s._core.queue
    fire = queue._fire
    queue._fire = lambda batch, now: fire([each for alarm in batch for each in (Look(s), alarm)], now)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@EASED
@given(
    schedules=st.lists(SCHEDULES, min_size=1, max_size=4),
    takes=SECONDS,
    overlap=st.sampled_from(Overlap),
    limit=st.sampled_from([1, 100]),
    fails=st.booleans(),
    stored=st.booleans(),
    steps=st.lists(STEPS, max_size=12),
)
async def test_whenever_it_looks_all_is_well(schedules, takes, fails, overlap, limit, stored, steps):
    """Before each tick of each turn, while turns stall and clocks are set, and while people use the jobs."""
    clock = ManualClock()
    async with Scheduler(limit, clock=clock, audit="1s", store=MemoryStore() if stored else None) as s:

        async def work():
            await clock.sleep(takes)
            if fails:
                raise ZeroDivisionError

        s.register("work", work)
        options = {"overlap": overlap, "retry": Retry.constant("1s")}
        jobs = [
            s.add("work" if stored else work, schedule, id=f"job-{number}", **options)
            for number, schedule in enumerate(schedules)
        ]
        stalls = s.add(nothing, Every(1), id="stalls", durable=False)
        await settle()  # or those that start at once are still to do so
        mended = watch(s)
        look_before_each(s)
        for step, value in steps:
            await play(s, clock, [job for job in (*jobs, stalls) if job in s.jobs()], step, value)
            await settle()
            assert mended == []
        s.stop(grace=3)
        await clock.travel(5)
        s.reconcile()
    assert mended == []


async def play(s, clock, jobs, step, value):
    match step:
        case "travel":
            await clock.travel(value)
        case "stall":
            s._core.queue.push(int(clock.monotonic()) + 1, clock.advance, value)  # in a turn in which others are due
        case "set the clock":
            clock.step(value)
        case "audit":
            s._watchdog.audit()
        case "reconcile":
            s.reconcile()
        case _ if value < len(jobs):
            use(jobs[value], step, clock.now())


def use(job, step, now):
    match step:
        case "pause":
            job.pause()
        case "resume":
            job.resume()
        case "run now":
            job.run_now()
        case "by hand":
            job.set_next_start(now)
