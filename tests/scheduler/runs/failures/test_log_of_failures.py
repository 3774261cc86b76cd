"""What the log says of a failed run: where it failed, and which run of which job it was."""

import logging
from datetime import UTC, datetime

import anyio
import pytest

from kit import at
from scheduler import Outcome, RunEnded, Scheduler, Subtask

LOGGER = "scheduler._runs.completion"


@pytest.fixture(autouse=True)
def heard(caplog):
    caplog.set_level(logging.INFO, LOGGER)


async def test_the_record_of_a_failed_run_has_the_error_and_which_run_it_was(clock, caplog):
    """Tools that collect errors saw neither."""

    async def work():
        raise ValueError("no")

    async with Scheduler(clock=clock) as s:
        s.add(work, "@every 1h", id="job", start="now")
        await clock.travel(1)
    (record,) = [each for each in caplog.records if each.name == LOGGER]
    assert record.getMessage() == "a run of job 'job' failed: ValueError: no"
    kind, error, traceback = record.exc_info
    assert (kind, str(error)) == (ValueError, "no")
    assert traceback is not None
    assert (record.job_id, record.due, record.attempt) == ("job", at(0), 1)
    assert record.due.tzinfo is UTC
    assert isinstance(record.due, datetime)
    assert record.task.endswith("work")


async def test_what_was_cut_off_has_no_error(clock, caplog):
    """A cancellation by us is none of the user's."""

    async def work():
        await clock.sleep(100)

    async with Scheduler(clock=clock) as s:
        s.add(work, "@every 1h", id="slow", start="now", timeout="5s")
        await clock.travel(10)
    (record,) = [each for each in caplog.records if each.name == LOGGER]
    assert record.exc_info is None
    assert record.job_id == "slow"


async def test_a_group_of_one_shows_its_cause(clock, events):
    """A task group that fails said only that something in it has."""

    async def fails():
        raise ValueError("the cause")

    async def work():
        async with anyio.create_task_group() as outer, anyio.create_task_group() as inner:
            outer.start_soon(anyio.sleep, 0)
            inner.start_soon(fails)

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(work, "@every 1h", start="now")
        await clock.travel(1)
        (end,) = events.of(RunEnded)
        assert end.error.startswith("ValueError: the cause (alone in: ExceptionGroup: ")
        assert job.statistics().last_error == end.error


async def test_a_group_of_several_is_told_as_it_is(clock, events):
    """None of them is the cause."""

    async def work():
        raise ExceptionGroup("two", [ValueError(1), ValueError(2)])

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(work, "@every 1h", start="now")
        await clock.travel(1)
        assert events.of(RunEnded)[0].error == "ExceptionGroup: two (2 sub-exceptions)"


@pytest.mark.parametrize("options", [{}, {"timeout": "1m"}], ids=["plain", "with a timeout"])
async def test_a_failed_subtask_is_named_with_its_arguments(clock, events, options):
    """Of ten thousand targets nobody knew which it was."""

    async def fetch(host, port=443):
        if host == "b.example":
            raise ConnectionError("refused")

    async def work():
        return [Subtask(fetch, f"{each}.example", port=80, **options) for each in "abc"]

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(work, "@every 1h", start="now")
        await clock.travel(1)
        (end,) = events.of(RunEnded)
        assert end.outcome is Outcome.FAILED
        assert end.error == "fetch('b.example', port=80): ConnectionError: refused"
