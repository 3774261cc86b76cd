"""What is shown of the store, of pauses, and of what an earlier process has found."""

import io
import json
from datetime import UTC, datetime

import pytest
from rich.console import Console

from kit import when
from scheduler import (
    JobChanged,
    JobState,
    MissedReason,
    Outcome,
    Record,
    RunEnded,
    RunMissed,
    RunNotLaunched,
    Scheduler,
    SchedulerStarted,
    ScopePaused,
    ScopeResumed,
    StoreDown,
    StoreUp,
)
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.show.display import Screen
from uptime_agent.show.history import json_line, plain_line
from uptime_agent.show.lines import JsonLines, PlainLines
from uptime_agent.show.monitor import Monitor
from uptime_agent.show.table import draw
from uptime_agent.standing.board import Board
from uptime_agent.standing.reading import restore
from uptime_agent.standing.report import report_of
from uptime_agent.standing.status import TargetStatus
from uptime_agent.text.redact import Redactor

DOWN = CheckResult(status=Status.DOWN, address="127.0.0.2", latency=0.5, error="refused")
BEGAN = 1000.0


def target():
    """Make a target that has not been checked."""
    return TargetStatus("api", "http://h", "http")


def record(at=400.0, **changes):
    """Make the record of a check that found it down."""
    begun, end = (datetime.fromtimestamp(each, UTC) for each in (at - 0.5, at))
    values = {
        "job_id": "api", "due": begun, "attempt": 1, "outcome": Outcome.SUCCEEDED, "started": begun, "ended": end,
        "lateness": 0.002, "error": None, "traceback": None, "reason": None, "count": 1, "last_due": begun,
        "result": dict(report_of([DOWN], target())),
    }  # fmt: skip
    return Record(**values | changes)


def remembering(kind, *events):
    """Let a display show what a board of one target that has a past hears. Return its lines, the board, the monitor."""
    stream = io.StringIO()
    known = target()
    restore(known, [record()])
    clean = Redactor(["hunter22"]).clean
    board, monitor = Board([known], clean), Monitor(kind(stream, lambda: BEGAN), lambda: None, clean)
    board.subscribe(monitor.hear)
    for event in events:
        board.listen(event)
    return stream, board, monitor


def test_a_past_is_told_in_a_line():
    """What it was, since when, when that was found, and what."""
    stream, board, _ = remembering(PlainLines)
    board.remembered(board.targets["api"])
    assert stream.getvalue() == (
        "1970-01-01T00:16:40.000Z  REMEMBERED        api  DOWN since 1970-01-01T00:06:40.000Z, "
        "last checked 1970-01-01T00:06:40.000Z: refused, after 500 ms\n"
    )


def test_a_past_is_told_as_json():
    """The same with stable keys."""
    stream, board, _ = remembering(JsonLines)
    board.remembered(board.targets["api"])
    assert json.loads(stream.getvalue()) == {
        "event": "remembered",
        "at": "1970-01-01T00:16:40.000Z",
        "name": "api",
        "type": "http",
        "url": "http://h",
        "status": "down",
        "since": "1970-01-01T00:06:40.000Z",
        "checked": "1970-01-01T00:06:40.000Z",
        "latency_ms": 500.0,
        "error": "refused",
        "checks": 1,
    }


def test_the_table_shows_a_past_until_the_first_check():
    """With how long ago that was, and without the lateness of another process."""
    scheduler = Scheduler()
    scheduler.add(print, "@every 1m", id="api")
    known = target()
    restore(known, [record()])
    view = Screen(targets=[known], scheduler=scheduler, now=lambda: BEGAN)
    console = Console(file=io.StringIO(), width=140, height=24)
    console.print(draw(view, 140, 24))
    row = console.file.getvalue().splitlines()[1]
    assert "DOWN" in row
    assert "10m00s ago: refused" in row
    assert "500 ms" in row
    assert "2.0 ms" not in row


def test_nothing_is_shown_before_the_store_is_open():
    """What happens meanwhile comes after the first line, in its order."""
    stream, board, monitor = remembering(PlainLines)
    monitor.hold()
    found = report_of([DOWN], board.targets["api"])
    board.listen(RunEnded("api", when(1.0), when(1.0), when(1.5), 1, 0.0, 0.5, Outcome.SUCCEEDED, results=(found,)))
    monitor.notice("a notice")
    assert stream.getvalue() == ""
    monitor.begin(
        Screen(targets=list(board.targets.values()), scheduler=Scheduler(), now=lambda: BEGAN, store="sqlite:///x.db")
    )
    first, check, notice = stream.getvalue().splitlines()
    assert first.endswith("checks 1 target, keeps history in sqlite:///x.db; Ctrl-C stops it")
    assert "DOWN" in check
    assert "a notice" in notice


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (StoreDown(when(1.0), "x.db: hunter22 is full"), "nothing can be stored: x.db: *** is full"),
        (StoreUp(when(1.0), 75.0), "the store works again, after 1m15s: what was kept is stored"),
        (ScopePaused("*", "holidays"), "paused: everything: holidays"),
        (ScopePaused("tag:db", "move"), "paused: what has the tag db: move"),
        (ScopeResumed("*"), "no longer paused: everything"),
        (JobChanged("api", JobState.DISABLED, "repair"), "api is not checked: repair"),
        (RunNotLaunched("api", when(1.0), "no thread", 3), "api: a check could not be launched 3 times: no thread"),
    ],
)
def test_trouble_is_a_notice(event, text):
    """In every display, without secrets."""
    for kind in (PlainLines, JsonLines):
        stream, _, _ = remembering(kind, event)
        assert text in stream.getvalue()


def test_a_change_that_is_no_trouble_is_no_news():
    """Such as an update of the job."""
    stream, _, _ = remembering(PlainLines, JobChanged("api", JobState.SCHEDULED, "updated"))
    assert stream.getvalue() == ""


def test_what_was_left_out_before_the_start_is_told_once_and_together():
    """It is not this process that has missed it; what comes later is."""
    late = RunMissed("api", when(10.0), when(500.0), 50, MissedReason.LATE)
    now = RunMissed("api", when(1500.0), when(1500.0), 1, MissedReason.LATE)
    stream, board, _ = remembering(PlainLines, late, SchedulerStarted(when(BEGAN)), late, now)
    board.tell_downtime()
    board.tell_downtime()
    missed, notice = stream.getvalue().splitlines()
    assert "MISSED            api  1 check" in missed
    assert notice.endswith("left out while no agent ran: 100 checks of 1 target")
    assert board.targets["api"].missed == 1


def test_what_was_left_out_before_the_start_may_be_more_than_was_counted():
    """Then it says so."""
    late = RunMissed("api", when(10.0), when(500.0), 50, MissedReason.LATE, False)
    stream, board, _ = remembering(PlainLines, late)
    board.tell_downtime()
    assert "left out while no agent ran: at least 50 checks of 1 target" in stream.getvalue()


def test_events_of_jobs_that_are_no_targets_do_no_harm():
    """A store may hold jobs of others."""
    stream, board, _ = remembering(PlainLines, RunMissed("theirs", when(1.0), when(1.0), 1, MissedReason.LATE))
    board.listen(RunEnded("theirs", when(1.0), when(1.0), when(1.5), 1, 0.0, 0.5, Outcome.SUCCEEDED))
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "DOWN        api  refused, after 500 ms  started 2.0 ms late"),
        (
            {"outcome": Outcome.MISSED, "reason": MissedReason.OVERLAP, "count": 7, "result": None, "lateness": None},
            "MISSED      api  7 checks left out: overlap",
        ),
        ({"outcome": None, "result": None, "lateness": None}, "RUNNING     api"),
        (
            {"outcome": Outcome.CRASHED, "error": "died\nhard", "result": None, "lateness": None},
            r"CRASHED     api  died\nhard",
        ),
        (
            {"outcome": Outcome.FAILED, "error": "ZeroDivisionError", "result": None},
            "UNKNOWN     api  the check itself failed: ZeroDivisionError  started 2.0 ms late",
        ),
        ({"result": {"status": "nonsense"}, "lateness": None}, "SUCCEEDED   api"),
        ({"job_id": "a\x1b[2Jb", "result": None, "lateness": None}, r"SUCCEEDED   a\x1b[2Jb"),
    ],
)
def test_past_checks_are_lines(changes, line):
    """Whatever became of them, and whatever stands in the record."""
    shown = plain_line(record(**changes))
    assert shown == f"1970-01-01T00:06:39.500Z  {line}"
    assert json.loads(json_line(record(**changes)))["due"] == "1970-01-01T00:06:39.500Z"
