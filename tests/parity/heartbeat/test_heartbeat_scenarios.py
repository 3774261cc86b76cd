"""What Heartbeat's own tests say of its scheduler, said of ours. heartbeat.md has its monitors and their states.

| scenario of the notes on Heartbeat, section 5 | where |
|---|---|
| Timer queue, all four | tests/timerqueue |
| Schedule, all four | tests/schedule |
| Limit and location are kept | here; a location belongs to a schedule here: tests/schedule (Cron) |
| Benchmark of 1024 zero-delay jobs | benchmarks/; a delay of nothing is refused, see the defects |
| Publish-wait called once | here, as listeners that have been told when `run_once` answers |
| One run: a cancelled context | here, as a run that is removed while it waits for room |
| Live limits: malformed or missing configuration, environment, defaults by type | tests/uptime_agent |
| Status reporter: one snapshot a tick, payload keys, managers | no counterpart: `statistics()` is asked for |
| State: flapping and its end, duration, `ends`, id, flapping off | tests/parity/heartbeat/test_heartbeat_state.py |
| Summary: attempts, transient failure, no retry, duration of the last | test_heartbeat_attempts.py |
| State: loader of stored states, its timeout and its tries | tests/parity/heartbeat/test_heartbeat_loader.py |
| State: the loader is swapped while it runs | no counterpart: an agent has one store from its start to its end |
| Live limits: an omitted type returns to its start value | here, otherwise: `resize` leaves what it does not name |
| Summary: hook order; check_group set before the job | no counterpart: no hooks, and a run is one line |
"""

import anyio
import anyio.lowlevel
import pytest

from kit import T0, nothing
from schedule import Every
from scheduler import AlreadyStopped, JobChanged, Outcome, Retry, RunEnded, RunStarted, Scheduler, Subtask, current_run
from timerqueue.testing import START

EVERY_SECOND = Every("1s", anchor=START)


def test_heartbeat_limit_is_kept():
    """What the scheduler was made with can be read back."""
    s = Scheduler(limit=7, limits={"http": 3})
    assert s.statistics().limits["http"].size == 3


async def test_heartbeat_ten_runs_and_ten_continuations_before_and_after_start(clock, events):
    """Jobs added before it runs and while it runs do the same."""
    done = []

    async def continuation(name):
        done.append(name)

    async def entry(name):
        return Subtask(continuation, name)

    s = Scheduler(limit=10, clock=clock)
    s.listen(events)
    s.add(entry, EVERY_SECOND, id="before", args=("before",))
    async with s:
        s.add(entry, EVERY_SECOND, id="after", args=("after",))
        await clock.travel(10)
    assert done.count("before") == done.count("after") == 10
    assert events.outcomes() == [Outcome.SUCCEEDED] * 20


async def test_heartbeat_a_job_removing_itself_runs_once(clock, events):
    """And its continuation does not run."""
    async with Scheduler(limit=10, clock=clock) as s:
        s.listen(events)

        async def once():
            s.get("a").remove()
            return Subtask(nothing)

        s.add(once, EVERY_SECOND, id="a")
        await clock.travel(5)
        assert len(events.starts("a")) == 1
        assert s.statistics().active_tasks == 0


async def test_heartbeat_wait_for_run_once_waits_for_a_continuation(clock):
    """The whole tree of the job has run when it answers."""
    done = []

    async def continuation():
        await anyio.lowlevel.checkpoint()
        done.append(1)

    async def entry():
        return Subtask(continuation)

    s = Scheduler(clock=clock)
    s.add(entry, EVERY_SECOND, id="a")
    ended = await s.run_once()
    assert done == [1]
    assert ended["a"].outcome is Outcome.SUCCEEDED


async def test_heartbeat_run_once_has_told_every_listener_when_it_answers(clock, events):
    """There is no publishing left to wait for."""
    s = Scheduler(clock=clock)
    s.listen(events)
    for number in range(10):
        s.add(nothing, EVERY_SECOND, id=f"{number}")
    await s.run_once()
    assert len(events.of(RunEnded)) == 10


async def test_heartbeat_add_after_stop_is_an_already_stopped_error(clock):
    """Nothing is added."""
    async with Scheduler(clock=clock) as s:
        pass
    with pytest.raises(AlreadyStopped):
        s.add(nothing, EVERY_SECOND)
    assert s.jobs() == []


async def test_heartbeat_two_jobs_of_five_chained_tasks_under_a_type_limit_of_one(clock):
    """A type limit counts tasks here, and what began goes first: the chains are not interleaved all the same."""
    order = []
    async with Scheduler(limits={"browser": 1}, clock=clock) as s:

        async def link(name, left):
            order.append(name)
            await clock.sleep(1)
            return Subtask(link, name, left - 1, needs="browser") if left else None

        for name in "ab":
            s.add(link, "@every 1h", id=name, args=(name, 4), needs="browser", start="now")
        await clock.travel(11)
    assert order == ["a"] * 5 + ["b"] * 5


@pytest.mark.parametrize(("limit", "jobs"), [(float("inf"), 50), (500, 100)])
async def test_heartbeat_many_jobs_without_a_limit_all_run(clock, events, limit, jobs):
    """Nothing is lost when they come together."""
    async with Scheduler(limit=limit, clock=clock) as s:
        s.listen(events)
        for number in range(jobs):
            s.add(nothing, EVERY_SECOND, id=f"{number}")
        await clock.travel(1)
    assert len(events.of(RunEnded)) == jobs


async def test_heartbeat_a_cancelled_run_with_the_limit_used_up_releases_no_unit(clock, events):
    """What never had a unit gives none back."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, "@every 1h", id="hog", args=(10,), start="now")
        await clock.travel(0)
        for number in range(3):
            s.add(nothing, "@every 1h", id=f"{number}", start="now").remove()
        s.add(nothing, "@every 1h", id="last", start="now")
        await clock.travel(5)
        assert (s.statistics().active_tasks, s.statistics().waiting_tasks) == (1, 1)
        await clock.travel(5)
        assert [event.job_id for event in events.of(RunStarted)] == ["hog", "last"]


async def test_heartbeat_a_run_starts_no_earlier_than_it_was_asked_for(clock, events):
    """Started >= before, and what a task is told is not in its future."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        seen = []

        async def look():
            seen.append(current_run().due.timestamp())

        s.add(look, EVERY_SECOND)
        await clock.travel(3)
        assert seen == [T0 + 1, T0 + 2, T0 + 3]
        assert all(event.started >= event.due for event in events.of(RunStarted))


async def test_heartbeat_a_task_forking_three_under_a_type_limit_of_one_does_not_deadlock(clock):
    """Four run."""
    ran = []
    async with Scheduler(limits={"http": 1}, clock=clock) as s:

        async def leaf():
            ran.append("leaf")

        async def fork():
            ran.append("fork")
            return [Subtask(leaf, needs="http")] * 3

        s.add(fork, "@every 1h", needs="http", start="now")
        await clock.travel(0)
    assert ran == ["fork", "leaf", "leaf", "leaf"]


async def test_heartbeat_five_browser_jobs_under_a_type_limit_of_one_are_five_one_and_none(clock):
    """Gauges: five active jobs, one active task. Ours tells of the four that wait for their type as well."""
    async with Scheduler(limit=100, limits={"browser": 1}, clock=clock) as s:
        for number in range(5):
            s.add(clock.sleep, "@every 1h", id=f"{number}", args=(1,), needs="browser", start="now")
        await clock.travel(0)
        gauges = s.statistics()
        assert (gauges.active_jobs, gauges.active_tasks, gauges.waiting_tasks) == (5, 1, 4)
        assert (gauges.limits["browser"].used, gauges.limits["browser"].waiting) == (1, 4)
        assert gauges.missed == 0
        await clock.travel(5)


async def test_heartbeat_live_limits_from_unlimited_to_one_and_back(clock):
    """A limit of one blocks the second; no limit releases it."""
    async with Scheduler(limits={"http": float("inf")}, clock=clock) as s:
        s.resize(limits={"http": 1})
        for number in range(2):
            s.add(clock.sleep, "@every 1h", id=f"{number}", args=(10,), needs="http", start="now")
        await clock.travel(0)
        assert s.statistics().active_tasks == 1
        s.resize(limits={"http": float("inf")})
        await clock.travel(0)
        assert s.statistics().active_tasks == 2
        await clock.travel(10)


async def test_heartbeat_live_limits_cut_from_three_to_one(clock, events):
    """The fourth starts only after all three have ended."""
    async with Scheduler(limits={"http": 3}, clock=clock) as s:
        s.listen(events)
        for number, seconds in enumerate((1, 2, 3, 1)):
            s.add(clock.sleep, "@every 1h", id=f"{number}", args=(seconds,), needs="http", start="now")
        await clock.travel(0)
        s.resize(limits={"http": 1})
        await clock.travel(5)
    assert [at - T0 for at in events.starts()] == [0, 0, 0, 3]


async def test_heartbeat_live_limits_keep_the_last_good_one(clock):
    """A senseless size changes nothing, not even what stands beside it; a type that is not named keeps its own."""
    s = Scheduler(limits={"http": 3, "tcp": 2}, clock=clock)
    with pytest.raises(ValueError, match="http"):
        s.resize(limits={"tcp": 5, "http": -1})
    s.resize(limits={"tcp": 4})
    assert {name: limit.size for name, limit in s.statistics().limits.items()} == {"http": 3, "tcp": 4}


async def test_heartbeat_status_tells_the_configured_limits_before_anything_runs(clock):
    """Nought used and nought waiting."""
    s = Scheduler(limits={"http": 3}, clock=clock)
    http = s.statistics().limits["http"]
    assert (http.size, http.used, http.waiting) == (3, 0, 0)


async def test_heartbeat_delays_are_summed_up(clock):
    """Delays of 0.1, 0.9 and no seconds: a count of three, a sum of one second, a maximum of 0.9."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, Every("10s", anchor=START))
        for late in (0.1, 0.9, 0.0):
            clock.advance(10 - clock.monotonic() % 10 + late)
            await clock.travel(0)
        counts = job.statistics()
    assert counts.runs == 3
    assert (counts.lateness_sum, counts.lateness_max) == pytest.approx((1.0, 0.9))


async def test_heartbeat_an_idle_scheduler_gives_equal_snapshots(clock):
    """Nothing that changes by itself is in it."""
    async with Scheduler(limits={"http": 3}, clock=clock) as s:
        s.add(nothing, "@every 1d")
        before = s.statistics()
        await clock.travel(100)
        assert s.statistics() == before


@pytest.mark.parametrize(
    ("max_retries", "series", "attempts"),
    [
        pytest.param(1, "duu", [1, 2, 1], id="a transient failure recovers in attempt 2"),
        pytest.param(0, "ddd", [1, 1, 1], id="no retry"),
    ],
)
async def test_heartbeat_attempts(clock, events, max_retries, series, attempts):
    """max_attempts of Heartbeat are our retries plus one; the retry waits in the heap and not in a slot."""
    results = iter(series)

    async def check():
        if next(results) == "d":
            raise ConnectionError

    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        job = s.add(check, Every("10s", anchor=START), retry=Retry.constant("1s", max_retries=max_retries))
        for _ in series:
            await clock.travel(10.5)
            if events.of(JobChanged) and max_retries == 0:
                job.resume()
    assert [event.attempt for event in events.of(RunStarted)][: len(attempts)] == attempts
