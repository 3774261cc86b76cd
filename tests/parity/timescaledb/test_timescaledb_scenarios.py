"""What TimescaleDB's tests say of its job scheduler, said of ours.

The scenarios are those of the notes on TimescaleDB, section 5. Its defects (section 6) are in
test_timescaledb_defects.py and test_timescaledb_crash_floor.py, and what users ask for in test_timescaledb_pauses.py;
what holds in all of them is tried with random ones in test_timescaledb_stories.py. Where a name is given it is that of
the test, without "test_" and "timescaledb_"; "restarts", "grids", "api", "history" and "pauses" are
test_timescaledb_restarts.py and so on.

| scenario | replayed by, or why not |
|---|---|
| S1 | here: s1_without_jobs_nothing_happens |
| S2, F1 | here: s2_f1_a_paused_job_has_no_counts...; s2_f1_resuming_alone_starts_nothing (not so there) |
| S3 (processes) | here, with a task in place of a process: s3_a_sleeping_job_can_be_removed |
| S4-5, F2 | restarts: s4_s5_f2_each_scheduler_goes_on... |
| S6-7, F3 | restarts: s6_s7_f3_a_failing_job_is_tried_again...; s6_f3_every_jitter_keeps_within_the_windows |
| S8, F4 | restarts: s8_f4_a_job_that_is_enabled_again_fails_again (forgiven here, so at the fifth, not the sixth) |
| S9-10, F5 | here: s9_s10_f5_a_run_has_a_longest_time |
| S11, F5 (processes) | here, with an error in place of a signal: s11_f5_a_run_that_is_ended_by_others... |
| S12, F5 (processes) | here, by `resize` in place of a signal: s12_f5_a_new_setting_is_seen... |
| S13, F5 (processes) | restarts: s13_f5_a_scheduler_that_dies...; killed in earnest: stores/test_kill_points.py |
| S14-15, F5 | restarts: s14_s15_f5_after_a_crash_five_minutes_pass |
| S16, F5 | here: s16_f5_with_exactly_enough_room... |
| S17, F5 | here: s17_f5_a_job_moves_its_own_next_start; more in test_next_start_by_hand.py |
| S18 | no counterpart: there are no superusers |
| S19, F5 | here: s19_f5_the_list_is_the_table, s19_what_is_added_again_is_there_once |
| S20, F5 | here: s20_f5_jobs_come_and_go_live |
| S21 | api: c3_c4_o8_an_unknown_job_is_an_error (there is no NULL; removing twice is harmless) |
| S22 | here and in restarts: s22_... |
| S23 | restarts: s23_a_job_without_times_whose_last_run_crashed... |
| S24 | here: s24_one_slot_is_shared_fairly; the bound is in test_priority_bound.py |
| F6, X1 | grids: f6_f7_x1_the_start_after_the_origin... |
| F7 | grids: f7_seven_months_are_counted_in_the_zone_of_the_job (as is right, and not as there) |
| F8 | grids: f8_an_unknown_zone_is_refused |
| F9 | grids: f9_a_longer_delay_counts_from_the_last_finish |
| F10 | grids: f10_a_drifting_job_becomes_a_fixed_one |
| F11 | grids: f11_a_month_after_an_origin_that_is_moved |
| F12 | grids: f12_a_fixed_job_counts_from_its_slot |
| X2 | grids: x2_calendars_of_all_lengths |
| X3 | grids: x3_nine_in_berlin...; all of the data file: test_timescaledb_slots.py |
| X4 | grids: x4_mixed_intervals_are_refused |
| C1, C13 | api: c1_c9_c13_a_senseless_job_is_refused, c11_c13_a_bad_row_does_not_stop_the_others |
| C2 | api: c2_plain_and_async_functions_are_jobs; threads: test_threads.py |
| C3 | api: c3_c4_o8_an_unknown_job_is_an_error |
| C4 | api: c4_a_partial_change_keeps_the_rest, c4_a_change_that_is_refused...; no merge: arguments are given whole |
| C5 | restarts: c5_a_first_start_that_passed_while_nothing_ran... |
| C6 (processes) | api: c6_what_a_run_has_done_before_it_fails_stays_done |
| C7 | api: c7_a_job_that_is_to_start_now_runs_a_second_time |
| C8 | no counterpart: a job hangs on no table; of a task that is gone: api c11_c13 |
| C9 | api: c1_c9_c13: what JSON cannot hold is refused; there are no validators of users |
| C10 (processes) | api: c10_jobs_add_jobs |
| C11 | api: c11_c13_a_bad_row_does_not_stop_the_others |
| C12 (processes) | api: c12_a_third_long_job_disturbs_no_running_ones |
| C14 | no counterpart: a memory setting of the database |
| H1-H3 | history: h1_h2_..., h2_h3_..., h2_...; no switch, and no copies of the definition in each record |
| H4 | no counterpart: history is always on |
| H5 | history: h5_of_ninety_days..., h5_the_scheduler_prunes_by_itself; one bound for all outcomes |
| H6 | history: h6_senseless_bounds_are_refused |
| H7 (processes) | history: h7_a_failure_says_what_went_wrong |
| H8 | restarts: h8_a_record_that_was_left_open_is_closed_as_a_crash |
| H9 (processes) | history: h9_many_jobs_with_little_room_are_each_attempted |
| H10 | no counterpart: whoever may read the store may read all of it |
| O1 | grids: o1_..., and F9 to F12; set in a run: S17; of a paused job: test_next_start_by_hand.py |
| O2 | api: o2_a_job_from_twelve_hours_to_a_minute; rights have no counterpart |
| O3 | api: o3_a_job_with_a_backlog_comes_again_soon, o3_a_policy_every_thirty_seconds |
| O4 | api: o4_a_task_may_move_and_its_jobs_follow; owners have no counterpart |
| O5 | no counterpart: there are no owners |
| O6 | history: o6_failures_are_logged_and_successes_are_not |
| O7 (processes) | restarts: o7_of_two_schedulers_on_one_store...; two processes: stores/test_sqlite_faults.py |
| O8 | api: o8_a_run_by_hand_is_counted_and_recorded |
| O9 (processes) | no counterpart: there is no launcher that queues starts of schedulers |
| O10 | api: o10_an_id_is_taken_once; pauses: o10_thirty_one_failed_launches_are_told_of_once |
| I1 (processes) | api: i1_a_job_that_is_changed_all_the_time_is_one_job |
| I2 (processes) | api: i2_removing_a_job_waits_for_nothing (its run is cancelled here) |
| T1 (processes) | restarts: t1_a_run_that_was_killed_has_one_record; in earnest: stores/test_kill_points.py |

Here are those that one scheduler lives through, most of them on a drifting schedule and on a fixed one. A second here
is a millisecond there.
"""

import pytest

from kit import relative
from schedule import After, Every
from scheduler import JobState, MissedReason, Outcome, Retry, RunEnded, current_run
from scheduler.stores import StoredJob
from timerqueue.testing import START
from timescaledb_lives import seconds


def kinds(interval):
    """Give a drifting and a fixed schedule."""
    return pytest.mark.parametrize(
        "schedule",
        [pytest.param(After(interval), id="drifting"), pytest.param(Every(interval, anchor=START), id="fixed")],
    )


async def test_timescaledb_s1_without_jobs_nothing_happens(lives, clock, events):
    """It waits, and ends when told to."""
    async with lives.life() as s:
        await clock.travel(50)
        assert s.statistics().runs == 0
        assert await s.history() == []
    assert [type(event).__name__ for event in events] == ["SchedulerStarted", "SchedulerStopped"]


@pytest.mark.parametrize(
    ("schedule", "following"),
    [pytest.param(After(100), 150, id="s2"), pytest.param(Every(100, anchor=START), 100, id="f1")],
)
async def test_timescaledb_s2_f1_a_paused_job_has_no_counts_and_starts_when_it_is_let_go(
    lives, clock, schedule, following
):
    """It is asked to start at 50, and is then on its schedule: 150 after a delay, 100 on the grid."""
    async with lives.life() as s:
        job = s.add("nothing", schedule, id="a")
        job.pause()
        await clock.travel(50)
        assert job.statistics().runs == 0
        assert job.statistics().last_start is None
        job.resume()
        job.set_next_start(clock.now())
        await clock.travel(1)
        assert lives.starts() == [50]
        assert seconds(job.next_start) == following


@pytest.mark.parametrize(
    ("schedule", "following"),
    [pytest.param(After(100), 150, id="s2"), pytest.param(Every(100, anchor=START), 100, id="f1")],
)
async def test_timescaledb_s2_f1_resuming_alone_starts_nothing(lives, clock, schedule, following):
    """Unlike there, where a job that has never run starts when its pause ends: ours waits for its next slot."""
    async with lives.life() as s:
        job = s.add("nothing", schedule, id="a", start="now")
        job.pause()
        await clock.travel(50)
        job.resume()
        await clock.travel(following - 51)
        assert lives.starts() == []
        await clock.travel(1)
        assert lives.starts() == [following]


@kinds(100)
async def test_timescaledb_s3_a_sleeping_job_can_be_removed(lives, clock, events, schedule):
    """It is gone at once, from the store too, and the scheduler ends as ever."""
    async with lives.life() as s:
        job = s.add("sleep", schedule, id="a", start="now", args=(10_000,))
        await clock.travel(1)
        job.remove()
        await clock.travel(0)
        assert events.outcomes() == [Outcome.CANCELLED]
        assert s.jobs() == []
    assert list(lives.store.load()) == []


@pytest.mark.parametrize(("longest", "outcome"), [(20, Outcome.TIMED_OUT), (None, Outcome.SUCCEEDED)])
@kinds(10_000)
async def test_timescaledb_s9_s10_f5_a_run_has_a_longest_time(lives, clock, events, schedule, longest, outcome):
    """One run, one failure and no crash, 20 after its start; without a longest time a success after 2,000."""
    async with lives.life() as s:
        job = s.add("sleep", schedule, id="a", start="now", args=(2_000,), timeout=longest)
        await clock.travel(2_000)
        assert events.outcomes() == [outcome]
        assert relative([events.of(RunEnded)[0].ended]) == [longest or 2_000]
        counts = job.statistics()
        assert (counts.runs, counts.failures, counts.crashes) == (1, int(longest is not None), 0)


@kinds(10_000)
async def test_timescaledb_s11_f5_a_run_that_is_ended_by_others_is_a_failure_and_is_tried_again(lives, clock, schedule):
    """After R = 500: two runs, one failure and one success. Ours has no process of its own: it raises."""
    errors = [InterruptedError("ended by an administrator")]

    async def work():
        await clock.sleep(10)
        if errors:
            raise errors.pop()

    lives.tasks["work"] = work
    async with lives.life() as s:
        job = s.add("work", schedule, id="a", start="now", retry=Retry.timescaledb(500))
        await clock.travel(600)
        counts = job.statistics()
        assert (counts.runs, counts.successes, counts.failures, counts.crashes) == (2, 1, 1, 0)
        first, second = lives.starts()
        assert first == 0
        assert 10 + 441.4 <= round(second, 1) <= 10 + 562.5


async def test_timescaledb_s12_f5_a_new_setting_is_seen_while_it_waits(lives, clock):
    """A limit that is raised lets in what waits, without another event."""
    async with lives.life(limit=1) as s:
        for number in range(2):
            s.add("sleep", After(1_000), id=f"{number}", args=(100,))
        await clock.travel(10)
        s.resize(2)
        await clock.travel(0)
        assert lives.starts() == [0, 10]


@kinds(1_000)
async def test_timescaledb_s16_f5_with_exactly_enough_room_all_start_together(lives, clock, schedule):
    """Six jobs in the first pass."""
    async with lives.life(limit=6) as s:
        for number in range(6):
            s.add("sleep", schedule, id=f"{number}", start="now", args=(10,))
        await clock.travel(0)
        assert lives.starts() == [0] * 6


@pytest.mark.parametrize("is_failing", [False, True])
@kinds(100)
async def test_timescaledb_s17_f5_a_job_moves_its_own_next_start(lives, clock, events, schedule, is_failing):
    """By 200 from the start of each run: 0, 200, and 400 is next, whether or not the run fails after that."""

    async def work():
        run = current_run()
        run.set_next_start(clock.now().replace(microsecond=0) + 2 * After(100).interval)
        await clock.sleep(1)
        if is_failing:
            raise ValueError

    lives.tasks["work"] = work
    async with lives.life() as s:
        job = s.add("work", schedule, id="a", start="now", retry=Retry.timescaledb(10))
        await clock.travel(399)
        assert lives.starts() == [0, 200]
        assert seconds(job.next_start) == 400
    assert set(events.outcomes()) == {Outcome.FAILED if is_failing else Outcome.SUCCEEDED}
    assert lives.state().next_us == (START.timestamp() + 400) * 1_000_000


async def test_timescaledb_s19_f5_the_list_is_the_table(lives, clock):
    """However often it is refreshed, emptied, and replaced by others: row by row, and what was not touched stays."""
    async with lives.life() as s:
        rows = [StoredJob(f"{number}", "nothing", "@every 100s") for number in range(5)]
        for _ in range(2):
            for row in rows:
                lives.store.edit(row)
            await clock.travel(1)
            assert sorted(job.id for job in s.jobs()) == ["0", "1", "2", "3", "4"]
        before = {job.id: job.next_start for job in s.jobs()}
        for row in rows:
            lives.store.edit(row)
        await clock.travel(1)
        assert {job.id: job.next_start for job in s.jobs()} == before
        for row in rows:
            lives.store.delete(row.id)
        await clock.travel(1)
        assert s.jobs() == []
        lives.store.edit(rows[0])
        lives.store.delete("0")
        lives.store.edit(rows[0]._replace(schedule="@every 50s"))
        await clock.travel(1)
        assert [(job.id, job.schedule.interval) for job in s.jobs()] == [("0", Every(50).interval)]


async def test_timescaledb_s19_what_is_added_again_is_there_once(lives, clock):
    """Kept or replaced."""
    async with lives.life() as s:
        for conflict in ("keep", "replace", "update"):
            for number in range(3):
                s.add("nothing", After(100), id=f"{number}", on_conflict=conflict)
        assert [job.id for job in s.jobs()] == ["0", "1", "2"]
        await s.flush()
        assert [row.id for rows in lives.store.load() for row, _ in rows] == ["0", "1", "2"]


@pytest.mark.parametrize("by_row", [False, True], ids=["by its verbs", "by others"])
@pytest.mark.parametrize(
    ("hundred", "ten", "following"),
    [
        pytest.param("@after 100s", "@after 10s", 250, id="s20"),
        pytest.param(f"@every 100s anchor={START.isoformat()}", f"@every 10s anchor={START.isoformat()}", 200, id="f5"),
    ],
)
async def test_timescaledb_s20_f5_jobs_come_and_go_live(lives, clock, hundred, ten, following, by_row):
    """Its clock jumps: 50, 150, then none, 450 and 480; old counts are gone."""

    def add(s, schedule):
        if by_row:
            lives.store.edit(StoredJob("a", "nothing", schedule))
        else:
            s.add("nothing", schedule, id="a")

    async def jump(s, seconds, *, starts=False):
        clock.advance(seconds)
        await clock.travel(0)
        if starts:
            s.get("a").set_next_start(clock.now())
            await clock.travel(0)

    async with lives.life() as s:
        await jump(s, 50)
        add(s, hundred)
        await jump(s, 0, starts=True)
        await jump(s, 100)
        assert lives.starts() == [50, 150]
        assert seconds(s.get("a").next_start) == following
        if by_row:
            lives.store.delete("a")
        else:
            s.get("a").remove()
        for _ in range(3):
            await jump(s, 100)
        assert lives.starts() == [50, 150]
        add(s, ten)
        await jump(s, 0, starts=True)
        await jump(s, 30)
        assert lives.starts() == [50, 150, 450, 480]
        assert seconds(s.get("a").next_start) == 490
        assert s.get("a").statistics().runs == 2


async def test_timescaledb_s22_without_retries_one_failure_disables(lives, clock):
    """For good."""
    async with lives.life() as s:
        job = s.add("fail", After(100), id="a", retry=Retry.timescaledb(10, max_retries=0))
        await clock.travel(500)
        assert lives.starts() == [0]
        assert job.state is JobState.DISABLED
        assert job.statistics().consecutive_failures == 1


async def test_timescaledb_s24_one_slot_is_shared_fairly(lives, clock, events):
    """Five jobs of half a second each second, for five seconds: each has run; what found no room is counted."""
    async with lives.life(limit=1) as s:
        for number in range(5):
            s.add("sleep", Every(1, anchor=START), id=f"{number}", start="now", args=(0.5,))
        await clock.travel(5)
        assert min(len(events.of(RunEnded, job_id=f"{number}")) for number in range(5)) >= 1
        await clock.travel(5)
        assert min(len(events.of(RunEnded, job_id=f"{number}")) for number in range(5)) >= 3
        assert {reason for _, reason in events.missed()} <= {MissedReason.NO_ROOM, MissedReason.OVERLAP}
