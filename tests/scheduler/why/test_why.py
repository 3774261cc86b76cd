"""Why did it run late, or not at all? Each kind of answer."""

from datetime import timedelta

from schedule import Schedule
from scheduler import MissedReason, Outcome, Retention, Scheduler, Verdict
from timerqueue.testing import START


async def test_a_late_run_names_the_job_that_held_the_full_limit(life, clock):
    """With the instant since which it was held."""
    async with life.one(limits={"host:*": 1}) as s:
        life.add(s, "slow", 1, takes=10, needs="host:db1")
        life.add(s, "late", 3, needs="host:db1")
        await clock.travel(20)
        why = await s.why("late", life.t(3))
    assert (why.verdict, why.outcome, why.due) == (Verdict.RAN_LATE, Outcome.SUCCEEDED, life.t(3))
    (holder,) = why.waited.holders
    assert (why.waited.limit, holder.job_id, holder.since) == ("host:db1", "slow", life.t(1))
    assert "late, by 8 s" in str(why)
    assert "the 1 unit of limit 'host:db1', held by job 'slow' since" in str(why)


async def test_a_run_that_begins_in_time_keeps_no_note(life, clock):
    """It waited for less than a tenth of a second."""
    async with life.one(limits={"host": 1}) as s:
        life.add(s, "first", 1, takes=0.05, needs="host")
        life.add(s, "second", 1, needs="host")
        await clock.travel(5)
        why = await s.why("second", life.t(1))
    assert (why.verdict, why.waited) == (Verdict.RAN, None)


async def test_a_run_that_waits_says_who_holds_the_unit_now(life, clock):
    """Before it has any record."""
    async with life.one(limits={"host": 1}) as s:
        life.add(s, "slow", 1, takes=10, needs="host")
        life.add(s, "late", 3, needs="host")
        await clock.travel(5)
        why = await s.why("late")
        assert (await s.why("slow")).verdict is Verdict.RUNS
    assert (why.verdict, why.due) == (Verdict.WAITS, life.t(3))
    assert [holder.job_id for holder in why.waited.holders] == ["slow"]


async def test_a_run_without_a_place_names_long_runs(life, clock):
    """The limit of all tasks has no name."""
    async with life.one(limit=2) as s:
        for name in "ab":
            life.add(s, name, 1, takes=10)
        life.add(s, "late", 3)
        await clock.travel(20)
        why = await s.why("late", life.t(3))
    assert why.verdict is Verdict.RAN_LATE
    assert why.waited.limit is None
    assert {holder.job_id for holder in why.waited.holders} == {"a", "b"}
    assert "all 2 places of the scheduler" in str(why)


async def test_a_tick_that_found_no_room_in_time_says_what_was_full(life, clock):
    """Its grace was over before there was room."""
    async with life.one(limits={"host": 1}) as s:
        life.add(s, "slow", 1, takes=10, needs="host")
        life.add(s, "late", 3, needs="host", missed="skip", grace=2)
        await clock.travel(20)
        why = await s.why("late", life.t(3))
    assert (why.verdict, why.reason) == (Verdict.MISSED, MissedReason.NO_ROOM)
    assert [holder.job_id for holder in why.waited.holders] == ["slow"]


async def test_a_tick_that_a_newer_one_replaced_says_what_was_full(life, clock):
    """The newer one waits in its place."""
    async with life.one(limits={"host": 1}) as s:
        life.add(s, "slow", 1, takes=10, needs="host")
        life.add(s, "late", 3, every="4s", needs="host")
        await clock.travel(9)
        why = await s.why("late", life.t(3))
    assert (why.verdict, why.reason) == (Verdict.MISSED, MissedReason.NO_ROOM)
    assert [holder.job_id for holder in why.waited.holders] == ["slow"]


async def test_overlap_names_the_run_that_went_on(life, clock):
    """For each tick of several in one record."""
    async with life.one() as s:
        life.add(s, "long", 10, takes=25, every="10s")
        await clock.travel(60)
        first = await s.why("long", life.t(10))
        slots = [await s.why("long", life.t(10) + timedelta(seconds=10 * n)) for n in (1, 2, 3)]
    assert first.verdict is Verdict.RAN
    assert [each.verdict for each in slots] == [Verdict.OVERLAPPED, Verdict.OVERLAPPED, Verdict.RUNS]
    assert [each.run for each in slots] == [life.t(10), life.t(10), None]


async def test_a_tick_in_the_backlog_names_the_run_before(life, clock):
    """While it waits, and when it has run."""
    async with life.one() as s:
        life.add(s, "long", 10, takes=15, every="10s", overlap="queue")
        await clock.travel(22)
        waits = await s.why("long", life.t(20))
        await clock.travel(20)
        late = await s.why("long", life.t(20))
    assert (waits.verdict, waits.run) == (Verdict.WAITS, life.t(10))
    assert (late.verdict, late.run) == (Verdict.RAN_LATE, life.t(10))


async def test_a_pause_says_its_reason_before_and_after_its_end(life, clock):
    """A pause has no record until it ends."""
    async with life.one() as s:
        job = life.add(s, "job", 10, every="10s", tags=["disks"])
        await clock.travel(15)
        s.pause(tag="disks", reason="new disks")
        await clock.travel(20)
        during, next_one = await s.why("job", life.t(20)), await s.why("job", life.t(40))
        now = await s.why("job")
        s.resume(tag="disks")
        await clock.travel(2)
        after = await s.why("job", life.t(20))
        assert job.next_start == life.t(40)
    assert during.verdict is after.verdict is Verdict.LEFT_OUT
    assert next_one.verdict is now.verdict is Verdict.PAUSED
    assert now.pause.reason == "new disks"
    assert all("tag 'disks' is paused: new disks" in str(each) for each in (during, next_one, now, after))


async def test_a_death_is_told_with_whether_it_is_tried_again(life, clock):
    """That depends on the delivery of the job."""
    async with life.one(dies=True) as s:
        life.add(s, "once", 5, takes=100)
        life.add(s, "again", 5, takes=100, delivery="at_least_once")
        await clock.travel(10)
    async with life.one() as s:
        await clock.travel(10)
        once, again = await s.why("once", life.t(5)), await s.why("again", life.t(5))
    assert (once.verdict, once.outcome, once.owed) == (Verdict.CUT_OFF, Outcome.CRASHED, False)
    assert (again.verdict, again.owed) == (Verdict.CUT_OFF, True)
    assert "It will be tried again" in str(again)


async def test_ticks_of_a_downtime_are_missed_or_late(life, clock):
    """The newest one runs late, on another scheduler."""
    async with life.one() as s:
        life.add(s, "job", 10, every="10s")
        await clock.travel(15)
    await clock.travel(40)
    async with life.one() as s:
        await clock.travel(1)
        missed, late = await s.why("job", life.t(30)), await s.why("job", life.t(50))
    assert (missed.verdict, missed.reason) == (Verdict.MISSED, MissedReason.LATE)
    assert (late.verdict, late.node, late.node_before) == (Verdict.RAN_LATE, 2, 1)


async def test_between_two_starts_it_was_not_due(life, clock):
    """The starts around that instant are told."""
    async with life.one() as s:
        s.add("work", "*/5 * * * *", id="job", args=[0])
        await clock.travel(3_600)
        at = life.t(1_000)
        why = await s.why("job", at)
    assert why.verdict is Verdict.NOT_DUE
    assert why.previous < at < why.next == why.previous + timedelta(minutes=5)
    assert "was not due" in str(why)


async def test_a_later_start_is_still_to_come(life, clock):
    """Nothing is wrong."""
    async with life.one() as s:
        job = s.add("work", "*/5 * * * *", id="job", args=[0])
        why, last = await s.why("job", job.next_start), await s.why("job")
    assert why.verdict is Verdict.TO_COME
    assert last.next == job.next_start


async def test_a_job_that_never_was_is_gone(life):
    """As is one that was removed without a record."""
    async with life.one() as s:
        why = await s.why("nobody", life.t(0))
    assert why.verdict is Verdict.GONE
    assert "'nobody' is not there" in str(why)


async def test_a_job_that_rests_after_a_crash_says_until_when(life, clock):
    """Its starts have a record when the rest is over."""
    async with life.one(dies=True) as s:
        life.add(s, "job", 10, takes=100, every="10s")
        await clock.travel(15)
    async with life.one(crash_floor=60) as s:
        await clock.travel(30)
        during = await s.why("job", life.t(30))
        assert (during.verdict, during.reason) == (Verdict.RESTS, MissedReason.AFTER_CRASH)
        assert during.until > clock.now()
        await clock.travel(60)
        after = await s.why("job", life.t(30))
    assert (after.verdict, after.reason) == (Verdict.MISSED, MissedReason.AFTER_CRASH)


async def test_a_skipped_start_says_so(life, clock):
    """Somebody called `skip`."""
    async with life.one() as s:
        job = life.add(s, "job", 10, every="10s")
        job.skip()
        await clock.travel(15)
        why = await s.why("job", life.t(10))
    assert (why.verdict, why.reason) == (Verdict.MISSED, MissedReason.SKIPPED)


async def test_a_run_after_its_job_was_removed_is_told(life, clock):
    """Its record is there still."""
    async with life.one() as s:
        job = life.add(s, "job", 10)
        await clock.travel(15)
        job.remove()
        await clock.travel(1)
        ran, other = await s.why("job", life.t(10)), await s.why("job", life.t(12))
    assert ran.verdict is Verdict.RAN
    assert str(ran).endswith("The job is gone.")
    assert other.verdict is Verdict.GONE


async def test_an_older_instant_than_the_first_record_is_pruned(life, clock):
    """Which is not the same as never due."""
    async with life.one(retention=Retention(per_job=3)) as s:
        life.add(s, "job", 10, every="10s")
        await clock.travel(3_600)
        await s.flush()
        life.store.prune(Retention(per_job=3), round(clock.wall() * 1e6))
        old, kept = await s.why("job", life.t(20)), await s.why("job", life.t(3_590))
    assert old.verdict is Verdict.PRUNED
    assert kept.verdict is Verdict.RAN


async def test_without_a_store_the_last_run_is_known(clock):
    """Its start is in the counts."""

    async def nothing():
        """Do nothing."""

    async with Scheduler(clock=clock) as s:
        s.add(nothing, "* * * * *", id="job")
        await clock.travel(150)
        last, before = [await s.why("job", START + timedelta(minutes=each)) for each in (2, 1)]
    assert last.verdict is Verdict.RAN
    assert before.verdict is Verdict.NOT_KNOWN
    assert "has no store" in str(before)


class Broken(Schedule):
    """A schedule that knows nothing of the past."""

    def next(self, after):
        """Raise for the past."""
        if after < START:
            msg = "no idea"
            raise RuntimeError(msg)
        return after + timedelta(seconds=10)


async def test_a_schedule_that_raises_ends_no_question(clock):
    """It is a class of the user."""
    async with Scheduler(clock=clock) as s:
        s.add(print, Broken(), id="job")
        why = await s.why("job", START - timedelta(days=1))
    assert why.verdict is Verdict.PARKED
    assert "no idea" in str(why)
