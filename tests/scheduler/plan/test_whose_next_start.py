"""A stored next start belongs to the schedule that gave it: with any other one the job is planned anew."""

from datetime import timedelta

import pytest

from schedule import Every, parse
from scheduler import Retry
from scheduler._plan.planner import planner_for
from scheduler._plan.timeline import us_of
from timerqueue.testing import START

CHANGES = pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("@every 3m", "@every 2m", id="an interval"),
        pytest.param("@every 3m", "@every 3m anchor=2026-01-01T00:00:00+00:00", id="its anchor"),
        pytest.param("@every 3m", "*/2 * * * *", id="an interval to cron"),
        pytest.param("*/7 * * * *", "@every 2m", id="cron to an interval"),
        pytest.param("*/7 * * * *", "*/2 * * * *", id="cron"),
        pytest.param("@every 1000d", "@every 2m", id="from far away"),
        pytest.param("@yearly", "*/2 * * * *", id="cron from far away"),
        pytest.param("@after 1h", "@every 2m", id="from the end of a run"),
    ],
)


def strays(dues, text):
    """Return those due instants that are no slots of the job's schedule."""
    planner = planner_for(parse(text).bind("job"))
    return [due for due in dues if planner.first("job", us_of(due) - 1) != us_of(due)]


async def change(processes, how, schedule):
    """Give the job another schedule while no process runs, or as the next one starts."""
    if how == "in the table":
        processes.store.edit(processes.row()._replace(schedule=schedule))
        return
    async with processes.one(add=lambda s: s.add("work", schedule, id="job", on_conflict="update")):
        await processes.clock.travel(1)


@CHANGES
@pytest.mark.parametrize("how", ["in the table", "by the program"])
@pytest.mark.parametrize("dies", [True, False], ids=["death", "stop"])
@pytest.mark.parametrize("down", [0, 1_000])
async def test_a_schedule_that_changed_while_nobody_ran_begins_with_a_slot_of_its_own(
    processes, before, after, how, dies, down
):
    """And has its place in all later lives, within an interval."""
    async with processes.one(dies=dies) as s:
        s.add("work", before, id="job")
        await processes.clock.travel(200)
    count = len(processes.begun)
    processes.clock.advance(down)
    await change(processes, how, after)
    for _ in range(2):
        async with processes.one():
            await processes.clock.travel(500)
    dues = [due for due, _ in processes.begun[count:]]
    assert strays(dues, after) == []
    assert len(dues) >= 1_000 // 180


@CHANGES
async def test_a_schedule_that_changes_while_its_job_rests_keeps_its_place(processes, before, after):
    """A crash's floor moves starts to slots of the schedule that the job has when it is over."""
    async with processes.one(1_000, dies=True) as s:
        s.add("work", before, id="job").run_now()
        await processes.clock.travel(1)
    async with processes.one() as s:
        await processes.clock.travel(120)
        s.get("job").update(schedule=after)
        await processes.clock.travel(10)
    for _ in range(2):
        async with processes.one():
            await processes.clock.travel(600)
    dues = [due for due, _ in processes.begun[1:]]
    assert strays(dues, after) == []
    assert len(dues) >= 6


@pytest.mark.parametrize("seconds", [3.3, -3.3, 7_200.3, -7_200.3])
@pytest.mark.parametrize("text", ["@every 1m anchor=2026-01-01T00:00:00+00:00", "@every 1m", "* * * * *"])
async def test_once_the_program_starts_anew_an_interval_is_in_its_place_again(processes, clock, seconds, text):
    """After the clock was set it lies beside, until then."""
    async with processes.one() as s:
        s.add("work", text, id="job")
        await clock.travel(150)
        clock.step(seconds)
        await clock.travel(100)
    count = len(processes.begun)
    for _ in range(3):
        async with processes.one() as s:
            await clock.travel(200)
    dues = [due.replace(microsecond=due.microsecond // 10 * 10) for due, _ in processes.begun[count:]]
    place = {"@every 1m": parse("@every 1m").bind("job").anchor}.get(text)
    seconds_of_minute = 0 if place is None else place.timestamp() % 60
    assert {round((due.timestamp() - seconds_of_minute) % 60, 4) % 60 for due in dues} == {0}
    assert len(dues) >= 9


async def test_with_the_same_schedule_the_next_start_stays(processes, clock):
    """Also one whose time has passed: what becomes of it is for `missed` to say."""
    async with processes.one() as s:
        planned = s.add("work", "@every 1h", id="job").next_start
        await clock.travel(1)
    async with processes.one() as s:
        s.add("work", "@every 1h", id="job", on_conflict="update")
        await clock.travel(1)
        assert s.get("job").next_start == planned
    clock.advance(3_700)
    async with processes.one():
        await clock.travel(1)
    assert len(processes.begun) == 1


async def test_a_start_that_somebody_has_set_stays_whatever_the_schedule(processes, clock):
    """It belongs to nobody's grid."""
    wanted = clock.now() + timedelta(seconds=1_234)
    async with processes.one() as s:
        s.add("work", "@every 1h", id="job").set_next_start(wanted)
        await clock.travel(1)
    await change(processes, "in the table", "*/2 * * * *")
    async with processes.one() as s:
        await clock.travel(1)
        assert s.get("job").next_start == wanted
        await clock.travel(1_300)
    assert [due for due, _ in processes.begun] == [wanted, clock.now().replace(minute=22, second=0)][:1]


@pytest.mark.parametrize("dies", [True, False], ids=["death", "stop"])
@pytest.mark.parametrize("is_at_once", [True, False], ids=["mended at once", "mended for the next process"])
async def test_a_start_that_is_set_while_the_row_cannot_be_read_stands_when_it_is_mended(
    processes, clock, dies, is_at_once
):
    """It takes the place of the one that somebody had set before."""
    async with processes.one() as s:
        s.add("work", "@every 1h", id="job").set_next_start(clock.now() + timedelta(days=100))
        await clock.travel(1)
    row, wanted = processes.row(), clock.now() + timedelta(seconds=100)
    processes.edit(options="{")
    async with processes.one(dies=dies) as s:
        s.get("job").set_next_start(wanted)
        await clock.travel(1)
        if is_at_once:
            processes.store.edit(row)
            await clock.travel(1)
            assert s.get("job").next_start == wanted
    processes.store.edit(row)
    async with processes.one():
        await clock.travel(200)
    assert processes.begun == [(wanted, 1)]


class FailsFor:
    """Somebody's own source of lots, which is empty for the first so many draws."""

    def __init__(self, draws):
        self.draws = draws

    def __call__(self):
        self.draws -= 1
        if self.draws >= 0:
            raise OSError("no entropy")
        return 0.5


@pytest.mark.parametrize("is_at_once", [True, False], ids=["mended at once", "mended for the next process"])
async def test_a_job_that_could_not_be_carried_out_keeps_where_it_stood(processes, clock, is_at_once):
    """Its retry comes once it can."""
    hour = Every("1h", anchor=START)
    async with processes.one(100, dies=True) as s:
        options = {"timeout": "2s", "retry": Retry.constant("90m", max_retries=2, past_next_start=True)}
        s.add("work", hour, id="job", **options)
        await clock.travel(7_201)
        await s.flush()
    (failed, _), (died, _) = processes.begun
    async with processes.one(random=FailsFor(1)) as s:
        assert "no entropy" in s.get("job").error
        assert s.get("job").next_start is None
        await clock.travel(1)
        if is_at_once:
            processes.edit(name="mended")
            await clock.travel(1)
            assert s.get("job").next_start == failed + timedelta(seconds=2 + 90 * 60)
    async with processes.one() as s:
        await clock.travel(5_401)  # its rest after the death is as long as its retry would wait
        assert s.get("job").error is None
    assert processes.begun[1:] == [(died, 1), (failed, 2)]
