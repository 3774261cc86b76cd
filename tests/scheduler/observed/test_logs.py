"""`scheduler.logs`: each record is one JSON object on one line, with the run that logged it."""

import json
import logging
import sys
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from scheduler import Scheduler, Subtask
from scheduler.logs import JsonFormatter

log = logging.getLogger("tests.logs")


class Lines(logging.Handler):
    """Keeps what was formatted."""

    def __init__(self, formatter):
        super().__init__()
        self.setFormatter(formatter)
        self.lines = []

    def emit(self, record):
        self.lines.append(self.format(record))

    @property
    def found(self):
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def lines():
    handler = Lines(JsonFormatter())
    for name in ("tests.logs", "scheduler"):
        logging.getLogger(name).addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    for name in ("tests.logs", "scheduler"):
        logging.getLogger(name).removeHandler(handler)


def test_a_record_is_one_object_on_one_line(lines):
    """Whatever the message has: quotes, line breaks, other alphabets."""
    log.info('%s said "no"\nand\u2028left', "Zoë", extra={"host": "db1", "took": 0.5, "hosts": ["a", "b"]})
    [line], [found] = lines.lines, lines.found
    assert line.isascii()
    assert len(line.splitlines()) == 1
    at = datetime.fromisoformat(found.pop("at"))
    assert abs(at - datetime.now(UTC)) < timedelta(minutes=5)
    assert found == {
        "level": "INFO",
        "logger": "tests.logs",
        "message": 'Zoë said "no"\nand\u2028left',
        "host": "db1",
        "took": 0.5,
        "hosts": "['a', 'b']",
    }


def test_an_error_has_its_traceback(lines):
    """And the values that JSON lacks are texts."""
    try:
        int("no luck")
    except ValueError:
        log.exception("it failed", extra={"ratio": float("nan"), "most": float("inf"), "none": None})
    [found] = lines.found
    assert found["error"].startswith("ValueError: invalid literal")
    assert "test_an_error_has_its_traceback" in found["traceback"]
    assert (found["ratio"], found["most"], found["none"]) == ("nan", "inf", None)


def test_an_object_without_a_text_ends_no_line(lines):
    """It is a user's object, and the log must go on."""

    class Broken:
        def __str__(self):
            raise RuntimeError("broken")

    log.info("here", extra={"thing": Broken()})
    [found] = lines.found
    assert found["thing"] == (
        "<test_an_object_without_a_text_ends_no_line.<locals>.Broken, whose text failed: RuntimeError>"
    )


def test_each_text_is_cleaned():
    """Message, extra, error and traceback."""
    handler = Lines(JsonFormatter(clean=lambda text: text.replace("s3cret", "***")))
    try:
        int("s3cret")
    except ValueError:
        record = log.makeRecord(
            "a", logging.INFO, "f", 1, "s3cret %s", ("s3cret",), sys.exc_info(), extra={"k": "s3cret"}
        )
    handler.handle(record)
    assert "s3cret" not in handler.lines[0]
    assert handler.found[0]["message"] == "*** ***"


async def test_what_a_run_logs_names_its_run(lines):
    """So does its subtask, and its worker thread; outside of runs there is no job."""

    async def work():
        log.info("in the run")
        await anyio.to_thread.run_sync(log.info, "in a thread")
        return Subtask(part)

    async def part():
        log.info("in a subtask")

    s = Scheduler()
    async with s:
        job = s.add(work, "@every 1h", id="a")
        await job.run_now()
        log.info("outside")
        s.stop()
    ours = {each["message"]: each for each in lines.found if each["logger"] == "tests.logs"}
    for where in ("in the run", "in a thread", "in a subtask"):
        assert (ours[where]["job_id"], ours[where]["attempt"]) == ("a", 1)
        assert datetime.fromisoformat(ours[where]["due"]).tzinfo is not None
    assert "job_id" not in ours["outside"]


async def test_a_failed_run_is_told_with_its_job_and_task(lines):
    """The scheduler's own record of it has the same keys."""

    async def fail():
        raise ValueError("no luck")

    async with Scheduler() as s:
        job = s.add(fail, "@every 1h", id="a")
        await job.run_now()
        s.stop()
    [found] = [each for each in lines.found if "failed" in each["message"]]
    assert (found["logger"], found["job_id"], found["attempt"]) == ("scheduler._runs.completion", "a", 1)
    assert found["error"] == "ValueError: no luck"
    assert found["task"].endswith("fail")
