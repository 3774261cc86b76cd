"""Each death under a job is followed by a rest: its floor is counted from the moment when that crash was found."""

import pytest

DELIVERIES = pytest.mark.parametrize("delivery", ["at_most_once", "at_least_once"])


def after(found, events):
    """Return how many seconds after that the first run began."""
    return events.starts()[0] - found.timestamp()


async def crash(processes, delivery):
    """Let the first process die under a run of "job"."""
    async with processes.one(30, dies=True) as s:
        s.add("work", "* * * * *", id="job", delivery=delivery)
        await processes.clock.travel(75)


@DELIVERIES
@pytest.mark.parametrize("seconds", [1, 240, 299])
async def test_a_death_under_a_run_by_hand_while_the_job_rests_is_followed_by_a_rest_of_its_own(
    processes, clock, events, delivery, seconds
):
    """From when that crash is found."""
    await crash(processes, delivery)
    async with processes.one(30, dies=True) as s:
        await clock.travel(seconds)
        s.get("job").run_now()
        await clock.travel(0.5)
    found = clock.now()
    async with processes.one(30) as s:
        s.listen(events)
        await clock.travel(600)
    assert 300 <= after(found, events) <= 361


@DELIVERIES
async def test_another_start_while_the_job_rests_does_not_move_its_floor(processes, clock, events, delivery):
    """It found no crash of its own; nor does a run by hand that has ended well make a new one."""
    await crash(processes, delivery)
    found = clock.now()
    async with processes.one(1, dies=True) as s:
        await clock.travel(100)
        s.get("job").run_now()
        await clock.travel(5)
    async with processes.one(30, dies=True) as s:
        s.listen(events)
        await clock.travel(400)
    assert 300 <= after(found, events) <= 361


@DELIVERIES
async def test_a_process_that_dies_before_it_could_write_anything_leaves_the_crash_to_the_next_one(
    processes, clock, events, delivery
):
    """That one finds it, and the rest begins then."""
    await crash(processes, delivery)
    processes.store.close()
    unused = processes.store.another()
    unused.open(0, lambda: None)
    assert [tick.outcome for tick in unused.running()] == ["running"]
    clock.advance(100)
    found = clock.now()
    async with processes.one(30) as s:
        s.listen(events)
        await clock.travel(600)
    assert 300 <= after(found, events) <= 361


async def test_a_job_whose_row_cannot_be_read_goes_into_quarantine_like_any_other(processes, clock):
    """Its third death is found by a start that does not know what it is: no other job notices, and none forgets it."""
    await crash(processes, "at_least_once")
    for _ in range(2):
        async with processes.one(1_000, dies=True):
            await clock.travel(400)
    row = processes.row()
    processes.edit(options="{")
    async with processes.one() as s:
        await clock.travel(1)
        assert "options" in s.get("job").error
        assert "quarantined" in processes.row().paused
    processes.edit(options=row.options)
    async with processes.one() as s:
        await clock.travel(1_000)
        assert "quarantined" in s.get("job").error
        s.get("job").resume()
        await clock.travel(2)
    assert processes.ended[-1] == (processes.begun[0][0], 4)
