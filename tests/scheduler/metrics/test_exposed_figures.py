"""What Prometheus reads is what `statistics()` says, value by value, whatever the scheduler has lived through."""

import logging
import math
import random

import pytest
from hypothesis import given, settings, strategies as st

from exposed import exposed, series
from scheduler import JobState, Retry
from scheduler.metrics import DURATION_BOUNDS, LATENESS_BOUNDS, exposition
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START

INFINITE = {"le": "+Inf"}


@pytest.fixture(scope="module")
def quiet_module():
    """Keep the log from thousands of lines about runs that are meant to fail."""
    logging.getLogger("scheduler").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("scheduler").setLevel(logging.NOTSET)


def le(bound):
    """Return the label of a bucket, as Prometheus writes numbers."""
    return {"le": repr(float(bound))}


def of_histogram(name, bounds, by_kind):
    """Yield the series of a histogram: `by_kind` has the histograms of each kind."""
    for kind, histograms in by_kind.items():
        for index, bound in enumerate(bounds):
            yield (
                series(f"{name}_bucket", kind=kind, **le(bound)),
                sum(each.cumulative(bounds)[index] for each in histograms),
            )
        total = sum(each.total for each in histograms)
        yield series(f"{name}_bucket", kind=kind, **INFINITE), total
        yield series(f"{name}_count", kind=kind), total
        yield series(f"{name}_sum", kind=kind), pytest.approx(sum(each.seconds for each in histograms))


def of_runs(counts):
    """Yield the series of jobs and runs that these statistics must have."""
    yield series("timerqueue_active_jobs"), counts.active_jobs
    yield series("timerqueue_active_tasks"), counts.active_tasks
    yield series("timerqueue_waiting_tasks"), counts.waiting_tasks
    yield series("timerqueue_runs_begun_total"), counts.runs
    yield series("timerqueue_missed_is_exact"), counts.missed_is_exact
    for kind, ended in counts.outcomes.items():
        for outcome, count in ended.items():
            yield series("timerqueue_runs_total", kind=kind, outcome=outcome.key), count
    for reason, count in counts.missed_by_reason.items():
        yield series("timerqueue_missed_total", reason=reason.key), count
    lateness = {kind: [each] for kind, each in counts.lateness.items()}
    yield from of_histogram("timerqueue_lateness_seconds", LATENESS_BOUNDS, lateness)
    durations = {kind: [*ended.values()] for kind, ended in counts.durations.items()}
    yield from of_histogram("timerqueue_run_duration_seconds", DURATION_BOUNDS, durations)


def of_parts(counts):
    """Yield the series of limits, timers, store and watchdog that these statistics must have."""
    for name, limit in counts.limits.items():
        assert limit.family is None
        yield series("timerqueue_limit_units", limit=name), limit.size
        yield series("timerqueue_limit_units_used", limit=name), limit.used
        yield series("timerqueue_limit_waiting", limit=name), limit.waiting
        yield series("timerqueue_limit_members", limit=name), 1
    yield series("timerqueue_timers"), counts.timers.waiting
    yield series("timerqueue_timers_fired_total"), counts.timers.fired
    yield series("timerqueue_wake_ups_total"), counts.timers.wake_ups
    yield series("timerqueue_timer_lateness_max_seconds"), counts.timers.lateness_max
    yield series("timerqueue_loop_stalls_total"), counts.stalls
    yield series("timerqueue_audits_total"), counts.watchdog.audits
    yield series("timerqueue_audit_failing_jobs"), len(counts.watchdog.failing)
    if (last := counts.watchdog.last) is not None:
        yield series("timerqueue_audit_last_timestamp_seconds"), last.at
        yield series("timerqueue_audit_last_duration_seconds"), last.seconds
        yield series("timerqueue_audit_last_mended"), last.mended
    if counts.store is not None:
        yield series("timerqueue_store_up"), counts.store.trouble is None
        yield series("timerqueue_store_commits_total"), counts.store.commits
        yield series("timerqueue_store_unsaved"), counts.store.unsaved


def of_jobs(jobs):
    """Yield the series of these jobs."""
    for job in jobs:
        counts = job.statistics()
        yield series("timerqueue_job_runs_total", job_id=job.id), counts.runs
        yield series("timerqueue_job_failures_total", job_id=job.id), counts.failures
        if counts.last_successful_finish is not None:
            yield series("timerqueue_job_last_success_timestamp_seconds", job_id=job.id), counts.last_successful_finish
        if job.next_start is not None:
            yield series("timerqueue_job_next_start_timestamp_seconds", job_id=job.id), job.next_start.timestamp()


def expected(s):
    """Return every series that this scheduler must have now, without the information about it."""
    jobs, counts = s.jobs(), s.statistics()
    found = {
        series("timerqueue_scheduler_running"): s.state.value == "running",
        series("timerqueue_jobs_left_out"): 0,
        **{
            series("timerqueue_jobs", state=state.value): sum(job.state is state for job in jobs)
            for state in JobState
            if state is not JobState.GONE
        },
    }
    return found | dict(of_runs(counts)) | dict(of_parts(counts)) | dict(of_jobs(jobs))


def life(seed, seen, *, has_store):
    """Return a builder of a random life. `seen`: what was exposed, with what was expected, at some instants."""
    lot = random.Random(seed)

    def build(s, clock):
        async def work():
            await clock.sleep(lot.choice([0, 0.01, 0.3, 2, 40, 200]))
            if not lot.randrange(4):
                raise ValueError

        s.register("work", work)
        kinds = [(), "db", "web", {"web": 2, "db": 1}]
        retries = [None, Retry.constant("3s")]
        for number in range(12):
            s.add(
                "work" if has_store else work, f"@every {lot.choice([5, 20, 60])}s", id=f"job {number}",
                needs=lot.choice(kinds), timeout=lot.choice([None, "1s", "30s"]), retry=lot.choice(retries),
                overlap=lot.choice(["skip", "queue", "replace"]), missed=lot.choice(["latest", "skip"]),
            )  # fmt: skip

        async def act():
            for _ in range(10):
                await clock.sleep(lot.uniform(1, 90))
                jobs = s.jobs()
                lot.choice([lot.choice(jobs).pause, lot.choice(jobs).resume, lot.choice(jobs).skip, jobs[0].remove])()
                seen.append((exposed(exposition(s, jobs="*")), expected(s)))

        return act()

    return build


@pytest.mark.parametrize("has_store", [False, True])
@given(seed=st.integers(0, 1_000_000))
@settings(max_examples=10)
def test_what_is_exposed_equals_the_statistics(seed, has_store, quiet_module):
    """At ten instants of a life: every value of the one, and every value of the other."""
    seen = []
    options = {"store": MemoryStore()} if has_store else {}
    simulate(
        life(seed, seen, has_store=has_store), start=START, duration="15m", limits={"db": 2, "web": math.inf}, **options
    )
    assert len(seen) == 10
    for found, wanted in seen:
        info = {key for key in found if key[0] == "timerqueue_info"}
        assert len(info) == 1
        assert {key: value for key, value in found.items() if key not in info} == wanted
