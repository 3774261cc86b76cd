"""The watchdog without a broker: whatever a defect has left behind in heap or records is found and mended."""

import pytest

from kit import T0, at, lines_of, nothing, settle, since_start
from schedule import After, Every, Schedule
from scheduler import Audit, AuditEnded, AuditStarted, JobParked, LifecycleError, Outcome, Scheduler
from scheduler.stores import RUNNING, Batch, StoredTick, StoreUnavailable
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

EVERY = Every(100, anchor=START)


class Moody(Schedule):
    """A user's schedule that fails when it is told to."""

    def __init__(self):
        self.is_broken = False

    def next(self, after):
        if self.is_broken:
            raise ZeroDivisionError
        return EVERY.next(after)


def lose_from_heap(s, job):
    s._core.queue.disarm(job)


def lose_plan(s, job):
    s._core.queue.disarm(job)
    job.due_us = None


async def test_all_is_well_and_nothing_is_touched(clock, events):
    """Two events tell of an audit, before and after; its numbers are those of the jobs."""
    async with Scheduler(clock=clock) as s:
        s.add(nothing, EVERY, id="a")
        s.add(nothing, After(100), id="b")
        s.add(nothing, EVERY, id="paused").pause()
        s.listen(events, AuditStarted, AuditEnded)
        audit = await s.audit()
        assert audit == Audit(at=T0, interval=None, jobs=2)
        assert events == [AuditStarted(START, None), AuditEnded(audit)]


@pytest.mark.parametrize("schedule", [EVERY, After(100)])
async def test_a_job_without_a_next_start_is_given_one(clock, schedule):
    """Exactly one, and it is the one that its schedule says."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, schedule, id="a", start=at(100))
        s.add(nothing, EVERY, id="well")
        lose_plan(s, job)
        audit = await s.audit()
        assert (audit.planned, audit.mended, audit.jobs) == (1, 1, 2)
        assert job.next_start == at(100)
        assert (await s.audit()).mended == 0


async def test_a_start_that_stands_nowhere_is_put_back(clock, events):
    """It comes when it was due."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, EVERY, id="a")
        s.listen(events)
        lose_from_heap(s, job)
        assert (await s.audit()).requeued == 1
        await clock.travel(150)
        assert [started - T0 for started in events.starts("a")] == [100]


async def test_a_start_of_a_paused_job_is_taken_out(clock, events):
    """A disabled job has none."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, EVERY, id="a")
        job.pause()
        job.due_us = int(T0 + 50) * 1_000_000
        s._core.queue.arm(job, clock.monotonic() + 50)
        assert (await s.audit()).withdrawn == 1
        s.listen(events)
        await clock.travel(200)
        assert events.starts() == []


async def test_a_job_that_cannot_be_mended_costs_no_other_anything(clock, events):
    """It is counted and named, and parked with its error; the others are mended."""
    async with Scheduler(clock=clock) as s:
        moody = Moody()
        broken, other = s.add(nothing, moody, id="broken"), s.add(nothing, EVERY, id="other")
        lose_plan(s, broken)
        lose_plan(s, other)
        moody.is_broken = True
        s.listen(events, JobParked)
        audit = await s.audit()
        assert (audit.failed, audit.planned, audit.jobs) == (1, 1, 1)
        assert s.statistics().watchdog.failing == ("broken",)
        assert [event.job_id for event in events] == ["broken"]
        assert other.next_start == at(100)


async def test_what_goes_on_is_no_flaw(clock):
    """Runs, a start that waits for one, a retry, and what is due in this very turn."""
    async with Scheduler(clock=clock, limit=1) as s:
        s.add(clock.sleep, After(10), args=[1_000], id="runs", start="now")
        s.add(nothing, EVERY, id="waits", start="now")
        waiting = s.add(clock.sleep, EVERY, args=[1_000], id="by hand", start="now")
        await clock.travel(5)
        waiting.set_next_start(at(6))
        s._core.queue.push(clock.monotonic() + 95, lambda: s._watchdog.audit(audits.append))
        audits = []
        await clock.travel(120)
        assert [audit.mended for audit in audits] == [0]


async def test_it_audits_by_itself(clock, events):
    """Soon after the beginning, and then at its interval; jobs and statistics say when."""
    async with Scheduler(clock=clock, audit="5m") as s:
        s.listen(events, AuditStarted)
        job = s.add(nothing, Every("1h"), id="a")
        assert job.statistics().last_audit is None
        await clock.travel(700)
        assert [(since_start(event.at), event.interval) for event in events] == [(10, 300), (310, 300), (610, 300)]
        assert job.statistics().last_audit == T0 + 610
        found = s.statistics().watchdog
        assert (found.audits, found.interval, found.last.jobs) == (3, 300, 1)
        assert found.oldest == ("a", T0 + 610)


async def test_the_job_that_was_found_well_longest_ago_is_named(clock):
    """It cannot be mended; all others are as old as the last audit."""
    async with Scheduler(clock=clock, audit="5m") as s:
        moody = Moody()
        s.add(nothing, Every("1h"), id="well")
        broken = s.add(nothing, moody, id="broken")
        assert s.statistics().watchdog.oldest is None
        await clock.travel(20)
        assert s.statistics().watchdog.oldest[1] == T0 + 10
        moody.is_broken = True
        lose_plan(s, broken)
        await clock.travel(300)
        assert s.statistics().watchdog.oldest == ("broken", T0 + 10)


async def test_it_is_not_kept_from_its_work_by_jobs(clock, events):
    """All room is taken for an hour, and hundreds wait."""
    async with Scheduler(clock=clock, limit=1, audit="5m") as s:
        s.listen(events, AuditEnded)
        for number in range(300):
            s.add(clock.sleep, Every("1h"), args=[3_600], id=f"job-{number}", start="now")
        await clock.travel(320)
        assert [event.audit.jobs for event in events] == [300, 300]


async def test_one_audit_goes_on_at_a_time(clock, events):
    """The other one is told that it had no lock, and there is a next one all the same."""
    async with Scheduler(clock=clock, audit="5m") as s:
        for number in range(500):
            s.add(nothing, EVERY, id=f"job-{number}")
        audits = []
        s._watchdog.audit(audits.append)
        s._watchdog.audit(audits.append)
        await settle()
        assert [(audit.has_lock, audit.jobs) for audit in audits] == [(False, 0), (True, 500)]
        s.listen(events, AuditEnded)
        await clock.travel(15)
        assert [event.audit.has_lock for event in events] == [True]


async def test_who_asks_about_a_record_waits_for_the_audit_that_goes_on(clock, monkeypatch):
    """It was told "another audit goes on" as if that had been wrong with its job, and mended."""
    async with Scheduler(clock=clock, store=MemoryStore()) as s:
        s.register("nothing", nothing)
        job = s._core.jobs.find(s.add("nothing", EVERY, id="a").id)
        await s.flush()
        told, asked = [], []
        monkeypatch.setattr(s._watchdog._records, "_ask", asked.append)
        s._watchdog.audit()
        s._watchdog.audit_job(job, True, told.append)
        await clock.travel(3)
        assert told == []
        monkeypatch.undo()
        asked[0]([], None)
        await clock.travel(3)
        assert told == [None]


async def test_an_audit_that_raises_is_followed_by_the_next(clock, events, monkeypatch):
    """Whatever happened in it, and wherever: it ends, says why, and the next one looks at all jobs."""
    async with Scheduler(clock=clock, audit="5m") as s:
        job = s.add(nothing, EVERY, id="a")
        s.listen(events, AuditEnded)
        monkeypatch.setattr(s._core.jobs, "jobs", lambda: 1 / 0)
        await clock.travel(20)
        monkeypatch.undo()
        lose_plan(s, job)
        monkeypatch.setattr(s._watchdog, "_mend", lambda *_: 1 / 0)
        await clock.travel(300)
        monkeypatch.undo()
        await clock.travel(300)
        audits = [event.audit for event in events]
        assert [audit.trouble for audit in audits] == ["it has failed: ZeroDivisionError: division by zero"] * 2 + [
            None
        ]
        assert (audits[-1].has_lock, audits[-1].planned) == (True, 1)


async def test_records_that_cannot_be_closed_end_their_part_alone(clock, monkeypatch):
    """The heap is audited all the same, and so it is the next time."""
    async with Scheduler(clock=clock, store=MemoryStore()) as s:
        s.register("nothing", nothing)
        s.add("nothing", EVERY, id="a")
        await s.flush()
        monkeypatch.setattr(s._watchdog._records, "_answered", lambda *_: 1 / 0)
        for _ in range(2):
            audit = await s.audit()
            assert (audit.has_lock, audit.jobs) == (True, 1)
            assert "ZeroDivisionError" in audit.trouble


async def test_a_watchdog_that_was_lost_is_found_missing(clock, events):
    """By a look that costs nothing: once a minute, whoever asks how often."""
    async with Scheduler(clock=clock, audit="5m") as s:
        s.listen(events, AuditStarted)
        watchdog = s._watchdog
        watchdog.ensure()
        watchdog._timer.cancel()
        watchdog.ensure()
        await clock.travel(59)
        watchdog.ensure()
        await settle()
        assert list(events) == []
        await clock.travel(2)
        watchdog.ensure()
        watchdog.ensure()
        await clock.travel(1)
        assert len(events) == 1


async def test_without_an_interval_it_waits_to_be_asked(clock, events):
    """And asks for something that is not there."""
    async with Scheduler(clock=clock, audit=None) as s:
        s.listen(events, AuditStarted)
        await clock.travel(10_000)
        assert list(events) == []
        assert s.statistics().watchdog.interval is None
        assert (await s.audit()).has_lock
    with pytest.raises(LifecycleError):
        await s.audit()


async def test_what_nobody_runs_is_closed(clock, events):
    """A record says that it runs. Two audits have to find it: in between a run may have ended."""
    store = MemoryStore()
    async with Scheduler(clock=clock, store=store) as s:
        s.register("nothing", nothing)
        job = s.add("nothing", EVERY, id="a")
        s.add("nothing", EVERY, id="b")
        await s.flush()
        due_us = int(T0 - 60) * 1_000_000
        stray = StoredTick("a", due_us, 1, 1, RUNNING, due_us)
        store.commit(Batch(marks=[stray, stray._replace(job_id="gone")]))
        assert (await s.audit()).closed == 0
        assert (await s.audit()).closed == 2
        assert (await s.audit()).closed == 0
        await s.flush()
        assert store.running() == []
        assert [record.outcome for record in await s.history()] == [Outcome.CRASHED] * 2
        assert job.statistics().consecutive_crashes == 1
        assert events.of(AuditEnded) == []


async def test_runs_that_go_on_are_not_closed(clock):
    """Nor those whose end is on its way to the store."""
    store = MemoryStore()
    async with Scheduler(clock=clock, store=store) as s:
        s.register("long", clock.sleep)
        s.add("long", Every("1h"), id="a", args=[1_000], start="now")
        await clock.travel(5)
        assert [tick.job_id for tick in store.running()] == ["a"]
        for _ in range(3):
            assert (await s.audit()).closed == 0


async def test_a_store_that_cannot_be_asked_costs_only_its_part(clock, monkeypatch):
    """The heap is audited, and it is said what was left out."""
    store = MemoryStore()
    async with Scheduler(clock=clock, store=store) as s:
        s.register("nothing", nothing)
        job = s.add("nothing", EVERY, id="a")
        await s.flush()
        lose_plan(s, job)

        def fail():
            msg = "no connection is free"
            raise StoreUnavailable(msg)

        monkeypatch.setattr(store, "running", fail)
        audit = await s.audit()
        assert (audit.planned, audit.closed) == (1, 0)
        assert "no connection is free" in audit.trouble


async def test_reconcile_mends_one_job_or_all(clock):
    """From any thread, without an audit."""
    async with Scheduler(clock=clock) as s:
        jobs = [s.add(nothing, EVERY, id=id) for id in "abc"]
        for job in jobs:
            lose_plan(s, job)
        s.reconcile("b")
        assert [job.next_start for job in jobs] == [None, at(100), None]
        s.reconcile()
        assert [job.next_start for job in jobs] == [at(100)] * 3


async def test_an_audit_ends_with_its_scheduler(clock):
    """Who waits for it is answered."""
    audits = []
    async with Scheduler(clock=clock) as s:
        for number in range(1_000):
            s.add(nothing, EVERY, id=f"job-{number}")
        s._watchdog.audit(audits.append)
    assert len(audits) == 1


async def test_a_look_at_a_job_costs_a_few_lines(clock):
    """However many there are: nothing is sorted or searched."""
    async with Scheduler(clock=clock) as s:
        for number in range(200):
            s.add(nothing, EVERY, id=f"job-{number}")
        assert lines_of(s._watchdog.audit) < 200 * 12
        await settle()
