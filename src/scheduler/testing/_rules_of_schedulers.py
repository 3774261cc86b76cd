"""Rules for schedulers that have a store one after another, each for milliseconds of real time.

Intervals last a hundred days, so that only the test starts jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import anyio
import pytest
from attrs import asdict, evolve

from timerqueue import SystemClock

from .._jobs import Handle as Job
from .._scheduler import Scheduler
from .._values import Event, JobState, MissedReason, Outcome, RunEnded, RunMissed
from ..stores import Batch, Store, StoredJob, StoredState, StoreUnusable
from ._store_fixtures import StoreFixtures
from ._store_rows import START_US, MakeStore, jobs_of, no_hint
from .flaky import FlakyStore

LONGEST_WAIT: Final = 20.0
"""Seconds."""

LOOK_EVERY: Final = 0.05
"""Seconds."""

FOR_EVER: Final = range(1, 10**9)

CRASH_FLOOR: Final = timedelta(minutes=5)


def now() -> datetime:
    return datetime.fromtimestamp(SystemClock().wall(), UTC)


async def greet(name: str = "world", *, times: int = 1) -> str:
    return " ".join(["hello", *[name] * times])


async def fail() -> None:
    msg = "no luck"
    raise ValueError(msg)


def kept(job: Job) -> dict[str, Any]:
    """Return the statistics that a store keeps: not the last result."""
    return asdict(evolve(job.statistics(), last_result=None), recurse=False)


def counts(job: Job) -> dict[str, Any]:
    """Return the statistics that a store keeps. Instants match within 2 us, because a store rounds them."""
    return {
        field: pytest.approx(value, rel=0, abs=2e-6) if isinstance(value, float) else value
        for field, value in kept(job).items()
    }


class Life(Scheduler):
    def __init__(self, store: Store) -> None:
        super().__init__(store=store, crash_floor=CRASH_FLOOR, poll=LOOK_EVERY)
        self.register("greet", greet)
        self.register("fail", fail)
        self.told: list[Event] = []
        self._news = anyio.Event()
        self.listen(self._hear)

    def _hear(self, event: Event) -> None:
        self.told.append(event)
        self._news.set()
        self._news = anyio.Event()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(LONGEST_WAIT):
            while not condition():
                await self._news.wait()

    async def wait_for(self, kind: type[RunEnded | RunMissed], job_id: str, count: int = 1) -> None:
        await self.wait_until(lambda: self._count(kind, job_id) >= count)

    def _count(self, kind: type[RunEnded | RunMissed], job_id: str) -> int:
        return sum(isinstance(event, kind) and event.job_id == job_id for event in self.told)

    async def run_now(self, job: Job) -> None:
        before = self._count(RunEnded, job.id)
        job.run_now()
        await self.wait_for(RunEnded, job.id, before + 1)


@pytest.mark.anyio
class RulesOfSchedulers(StoreFixtures):
    async def test_jobs_are_back_after_a_restart(self, make_store: MakeStore) -> None:
        first = Life(make_store())
        early = first.add(
            "greet", "@every 100d", id="early", args=["you"], kwargs={"times": 2}, tags=["b", "a"], name="A \u00fc"
        )
        async with first:
            late = first.add("fail", "0 3 29 2 *", id="late")
            for number in range(100):
                first.add("greet", "@every 100d", id=f"job {number}")
            starts = {job.id: job.next_start for job in (early, late)}
        async with Life(make_store()) as second:
            assert {job.id for job in second.jobs()} == {job.id for job in first.jobs()}
            for job in (early, late):
                found = second.get(job.id)
                for field in ("args", "kwargs", "tags", "name", "task", "state", "error"):
                    assert getattr(found, field) == getattr(job, field)
                assert str(found.schedule) == str(job.schedule)
                start, start_before = found.next_start, starts[job.id]
                assert start is not None
                assert start_before is not None
                assert abs(start - start_before) < timedelta(seconds=1)
            await second.run_now(second.get("early"))
            assert [event.results for event in second.told if isinstance(event, RunEnded)] == [("hello you you",)]

    async def test_a_removed_job_stays_removed_and_its_history_is_kept(self, make_store: MakeStore) -> None:
        async with Life(make_store()) as first:
            job = first.add("greet", "@every 100d", id="a")
            await first.run_now(job)
            job.remove()
        async with Life(make_store()) as second:
            assert second.jobs() == []
            assert [record.outcome for record in await second.history("a")] == [Outcome.SUCCEEDED]

    async def test_a_changed_job_is_back_as_it_was_changed(self, make_store: MakeStore) -> None:
        async with Life(make_store()) as first:
            first.add("greet", "@every 100d", id="a").update(schedule="@every 200d", kwargs={"times": 3})
        async with Life(make_store()) as second:
            job = second.get("a")
            assert (str(job.schedule), dict(job.kwargs)) == ("@every 200d", {"times": 3})

    async def test_a_job_that_is_not_durable_is_not_stored(self, make_store: MakeStore) -> None:
        async with Life(make_store()) as first:
            job = first.add(greet, "@every 100d", id="a", durable=False)
            await first.run_now(job)
            await first.flush()
        async with Life(make_store()) as second:
            assert second.jobs() == []

    async def test_counts_are_back_after_a_restart(self, make_store: MakeStore) -> None:
        async with Life(make_store()) as first:
            jobs = [first.add("greet", "@every 100d", id="good"), first.add("fail", "@every 100d", id="bad")]
            for job in (*jobs, *jobs):
                await first.run_now(job)
            before = {job.id: counts(job) for job in jobs}
        async with Life(make_store()) as second:
            assert {job.id: kept(job) for job in second.jobs()} == before
            await second.run_now(second.get("bad"))
            after = second.get("bad").statistics()
            assert (after.runs, after.failures, after.consecutive_failures) == (3, 3, 3)
            assert after.last_error == "ValueError: no luck"

    async def test_history_is_back_after_a_restart(self, make_store: MakeStore) -> None:
        async with Life(make_store()) as first:
            for job_id, task in (("good", "greet"), ("bad", "fail")):
                await first.run_now(first.add(task, "@every 100d", id=job_id))
            await first.flush()
            before = await first.history()
        async with Life(make_store()) as second:
            assert await second.history() == before
            (good,), (bad,) = await second.history("good"), await second.history("bad")
        assert (good.outcome, good.result) == (Outcome.SUCCEEDED, "hello world")
        assert (bad.outcome, bad.error) == (Outcome.FAILED, "ValueError: no luck")
        assert "no luck" in (bad.traceback or "")
        assert [record.job_id for record in before] == ["bad", "good"]

    async def test_pauses_are_back_after_a_restart(self, make_store: MakeStore) -> None:
        until = now() + timedelta(days=1)
        async with Life(make_store()) as first:
            first.add("greet", "@every 100d", id="paused").pause("by hand")
            first.add("greet", "@every 100d", id="tagged", tags=["web"])
            resumed = first.add("greet", "@every 100d", id="resumed")
            resumed.pause("for a moment")
            resumed.resume()
            first.pause("web", reason="maintenance", until=until)
            first.pause("mail")
            first.resume("mail")
            await first.flush()
            before = first.pauses()
        async with Life(make_store()) as second:
            assert second.pauses() == before
            states = {job.id: job.state for job in second.jobs()}
            assert states == {
                "paused": JobState.DISABLED,
                "tagged": JobState.DISABLED,
                "resumed": JobState.SCHEDULED,
            }
            assert "by hand" in (second.get("paused").error or "")
            assert "maintenance" in (second.get("tagged").error or "")
            second.resume("web")
            second.get("paused").resume()
            await second.flush()
        async with Life(make_store()) as third:
            assert {job.state for job in third.jobs()} == {JobState.SCHEDULED}
            assert third.pauses() == []

    async def test_a_tick_does_not_run_twice_though_the_state_of_its_job_was_lost(self, make_store: MakeStore) -> None:
        async with Life(make_store()) as first:
            first.add("greet", "@every 100d", id="a", start="now")
            await first.wait_for(RunEnded, "a")
            (record,) = [event for event in first.told if isinstance(event, RunEnded)]
        store = make_store()
        store.open(START_US, no_hint)
        (tick,) = store.history("a")
        store.commit(Batch(states={"a": StoredState("a", next_us=tick.due_us, next_by_hand=True)}))
        store.close()
        async with Life(make_store()) as second:
            await second.wait_for(RunMissed, "a")
            await second.flush()
            (missed,) = [event for event in second.told if isinstance(event, RunMissed)]
            (kept,) = await second.history("a")
            assert second.get("a").statistics().runs == 0
        assert (missed.reason, missed.first_due) == (MissedReason.REPEATED, record.due)
        assert (kept.outcome, kept.result) == (Outcome.SUCCEEDED, "hello world")

    @pytest.mark.parametrize("schedule", ["0 0 * * *", "0 0 * * * | 0 12 * * *"])
    async def test_what_was_missed_at_least_so_often_is_so_after_a_restart(
        self, make_store: MakeStore, schedule: str
    ) -> None:
        """A gap of 200 days is not counted exactly."""
        store = make_store()
        store.open(START_US, no_hint)
        long_ago = int((now() - timedelta(days=200)).timestamp()) * 1_000_000
        job, state = StoredJob("a", "greet", schedule), StoredState("a", next_us=long_ago, next_of=schedule)
        store.commit(Batch(jobs={"a": job}, states={"a": state}))
        store.close()
        async with Life(make_store()) as first:
            await first.wait_for(RunEnded, "a")  # the newest tick: a stop before its end would count it as missed
            await first.flush()
            missed = first.get("a").statistics().missed
            assert not first.get("a").statistics().missed_is_exact
        async with Life(make_store()) as second:
            statistics = second.get("a").statistics()
            assert (statistics.missed, statistics.missed_is_exact) == (missed, False)

    async def test_what_has_been_flushed_outlives_a_crash(self, make_store: MakeStore) -> None:
        dying = FlakyStore(make_store(), error=StoreUnusable("its process is dead"))
        async with Life(dying) as first:
            first.add("greet", "@every 100d", id="flushed")
            await first.flush()
            dying.fail_on = FOR_EVER
            first.add("greet", "@every 100d", id="lost")
        async with Life(make_store()) as second:
            assert [job.id for job in second.jobs()] == ["flushed"]

    async def test_a_run_whose_process_died_is_a_crash_and_waits(self, make_store: MakeStore) -> None:
        dying = FlakyStore(make_store(), error=StoreUnusable("its process is dead"))
        first = Life(dying)

        async def die() -> None:
            dying.fail_on = FOR_EVER

        first.register("die", die)
        async with first:
            first.add("die", "@every 3m", id="a", start="now")
            await first.wait_for(RunEnded, "a")
        for _ in range(2):
            begin = now()
            life = Life(make_store())
            life.register("die", greet)
            async with life:
                await life.flush()
                job = life.get("a")
                found = job.statistics()
                outcomes = [record.outcome for record in await life.history("a")]
                assert (found.runs, found.crashes, outcomes.count(Outcome.CRASHED)) == (1, 1, 1)
                assert set(outcomes) <= {Outcome.CRASHED, Outcome.MISSED}
                assert job.next_start is not None
                assert job.next_start > begin + CRASH_FLOOR - timedelta(minutes=1)

    async def test_a_job_whose_task_is_unknown_is_parked_until_it_is_registered(self, make_store: MakeStore) -> None:

        async def rare() -> str:
            return "rare"

        first = Life(make_store())
        first.register("rare", rare)
        async with first:
            await first.run_now(first.add("rare", "@every 100d", id="a"))
            first.add("greet", "@every 100d", id="b")
        async with Life(make_store()) as second:
            job = second.get("a")
            assert (job.state, job.next_start) == (JobState.DISABLED, None)
            assert "rare" in (job.error or "")
            assert second.get("b").state is JobState.SCHEDULED
        third = Life(make_store())
        async with third:
            third.register("rare", rare)
            await third.flush()
            job = third.get("a")
            assert (job.state, job.error) == (JobState.SCHEDULED, None)
            assert job.statistics().runs == 1
            await third.run_now(job)
            assert job.statistics().successes == len(("in the first life", "now"))

    async def test_a_store_that_fails_for_a_while_loses_nothing(self, make_store: MakeStore) -> None:
        """Everything becomes durable once, even if only the answer was lost."""
        flaky = FlakyStore(make_store(), fail_on={2, 3}, before_or_after="after")
        async with Life(flaky) as first:
            job = first.add("greet", "@every 100d", id="a")
            for _ in range(3):
                await first.run_now(job)
            await first.flush()
            before = counts(job)
        async with Life(make_store()) as second:
            assert kept(second.get("a")) == before
            assert [record.outcome for record in await second.history("a")] == [Outcome.SUCCEEDED] * 3
        store = make_store()
        store.open(START_US, no_hint)
        assert set(jobs_of(store)) == {"a"}
        assert store.running() == []
        store.close()
