"""Words of lines about single checks and messages: why a target is down, what follows, and what was late."""

import io
import json
import re
from pathlib import Path

from attrs import evolve

from agent_kit import record_of
from kit import when
from scheduler import Outcome, RunEnded
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.show.history import json_line, plain_line
from uptime_agent.show.lines import JsonLines, PlainLines
from uptime_agent.show.monitor import Monitor
from uptime_agent.standing.board import Board
from uptime_agent.standing.report import report_of
from uptime_agent.standing.status import TargetStatus

DOWN = CheckResult(status=Status.DOWN, address="127.0.0.2", latency=0.5, error="refused")


def target(**changes):
    """Make a target that was up."""
    found = TargetStatus("shop", "http://h", "http")
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def ended(report):
    """Make the end of a run with that report."""
    return RunEnded(
        "shop", when(999.0), when(999.5), when(1000.0), 1, 0.0005, 0.5, Outcome.SUCCEEDED, None, None, (report,)
    )


def shown(report):
    """Return the line about a check with that report."""
    stream = io.StringIO()
    board, monitor = Board([target()]), Monitor(PlainLines(stream, lambda: 1000.0), lambda: None)
    board.subscribe(monitor.hear)
    board.listen(ended(report))
    return stream.getvalue()


def test_who_is_unreachable_by_another_says_by_whom():
    """In the line of the check, and in history."""
    report = report_of([DOWN], target(), cause="router")
    assert "-> DOWN" in shown(report)
    assert "  shop  unreachable by router: refused, after 500 ms  " in shown(report)
    assert "  shop  unreachable by router: refused, after 500 ms  " in plain_line(record_of(ended(report), report))


def test_who_was_in_doubt_says_why():
    """And not only what was found, as if that had counted."""
    report = report_of([DOWN], target(), doubt="this machine is offline")
    for line in (shown(report), plain_line(record_of(ended(report), report))):
        assert "  shop  this machine is offline; found: refused" in line


def test_who_waits_for_those_above_says_for_whom():
    """It is no attempt of several, if there is one only."""
    up = target()
    for _ in range(3):
        up.record(report_of([evolve(DOWN, status=Status.UP, error=None)], up).verdict, ended(None))
    line = shown(report_of([DOWN], up, asks=["router", "switch"]))
    assert line.endswith(
        "refused, after 500 ms (once more when router and switch have been checked)  started 0.5 ms late\n"
    )
    assert "attempt" not in line


def test_a_message_that_was_not_taken_is_no_check():
    """It is not unknown, and nothing is wrong with it itself."""
    run = evolve(ended({}), outcome=Outcome.FAILED, error="uptime_agent.notify.Undelivered: connection refused")
    record = evolve(record_of(run, None), job_id="notify:shop-1:ops:trigger", error=run.error)
    assert plain_line(record).endswith("FAILED      notify:shop-1:ops:trigger  connection refused")
    values = json.loads(json_line(record))
    assert (values["outcome"], values["status"], values["error"]) == ("failed", None, "connection refused")


def test_a_message_is_not_late():
    """It starts when it is told to; its job's first start lies in a hundred years."""
    record = evolve(
        record_of(ended({}), {"delivery": "delivered", "text": "shop is down: refused"}),
        job_id="notify:shop-1:ops:trigger",
        lateness=12.5,
    )
    assert plain_line(record).endswith("DELIVERED   notify:shop-1:ops:trigger  shop is down: refused")


def test_the_page_has_each_key_of_a_check_in_json():
    """And no other: a program relies on them."""
    stream = io.StringIO()
    board, monitor = Board([target()]), Monitor(JsonLines(stream, lambda: 1000.0), lambda: None)
    board.subscribe(monitor.hear)
    board.listen(ended(report_of([DOWN], target())))
    page = (Path(__file__).resolve().parents[3] / "docs" / "agent" / "output.md").read_text("utf-8")
    (item,) = re.findall(r"^- `check`: (.*?)^- ", page, re.MULTILINE | re.DOTALL)
    values = json.loads(stream.getvalue())
    told = {*values, *values["results"][0]} - {"event", "at"}
    assert set(re.findall(r"`([a-z_]+)`", item)) == told
