"""The board: how all targets stand, told to all who subscribe, whatever they do with it."""

import pytest

from kit import when
from scheduler import JobChanged, JobState, LoopBlocked, MissedReason, Outcome, RunEnded, RunMissed, SchedulerStarted
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.standing.board import Board
from uptime_agent.standing.incidents import Opened
from uptime_agent.standing.news import Checked, CheckedAgain, ChecksLeftOut, LeftOutBefore, NotChecked
from uptime_agent.standing.report import report_of
from uptime_agent.standing.status import TargetStatus

DOWN = CheckResult(status=Status.DOWN, error="refused")
MISSED = RunMissed("api", when(20.0), when(20.0), 1, MissedReason.OVERLAP)


@pytest.fixture
def board():
    """A board of one target."""
    return Board([TargetStatus("api", "http://h", "http")])


def ended(board, result):
    """Make the end of a run of its target, with a report as the task makes it."""
    report = report_of([result], board.targets["api"])
    return RunEnded("api", when(10.0), when(10.0), when(11.0), 1, 0.0, 1.0, Outcome.SUCCEEDED, results=(report,))


def test_all_who_subscribe_hear_the_same_in_its_order(board):
    """What is shown, sent and served of targets is told the same, and none of these knows another."""
    shown, sent = [], []
    board.subscribe(shown.append)
    board.subscribe(sent.append)
    board.listen(SchedulerStarted(when(5.0)))
    board.listen(ended(board, DOWN))
    board.listen(MISSED)
    board.listen(JobChanged("api", JobState.DISABLED, "repair"))
    board.listen(JobChanged("api", JobState.SCHEDULED, "resumed"))
    api = board.targets["api"]
    assert shown == sent
    assert shown == [
        Checked(api, is_change=True),
        Opened(api.incident),
        ChecksLeftOut(api, MISSED),
        NotChecked("api", "repair"),
        CheckedAgain("api"),
    ]


def test_a_target_keeps_no_reports(board):
    """History does: one for each target would be most of what the agent holds in memory."""
    board.listen(ended(board, DOWN))
    target = board.targets["api"]
    assert target.last_run.results == ()
    assert target.last_run.ended == when(11.0)
    assert target.last.results == (DOWN,)


def test_a_subscriber_hears_nothing_of_before(board):
    """How the targets stand it asks the board itself."""
    board.listen(ended(board, DOWN))
    heard = []
    board.subscribe(heard.append)
    assert (heard, board.targets["api"].status) == ([], Status.DOWN)


def test_what_was_due_before_the_start_is_told_once_and_is_not_ours(board):
    """All of it together, when it is asked for."""
    heard = []
    board.subscribe(heard.append)
    board.listen(RunMissed("api", when(1.0), when(4.0), 4, MissedReason.LATE, False))
    board.listen(SchedulerStarted(when(5.0)))
    board.tell_downtime()
    board.tell_downtime()
    assert heard == [LeftOutBefore(4, 1, is_exact=False)]
    assert board.summary().missed == 0


def test_what_concerns_the_agent_is_passed_on_as_it_is(board):
    """Those who show it word it."""
    heard = []
    board.subscribe(heard.append)
    event = LoopBlocked("api", 0.5, "")
    board.listen(event)
    assert heard == [event]
