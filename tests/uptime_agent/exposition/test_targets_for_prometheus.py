"""What Prometheus reads of targets is what the agent shows. Unknown is never up, and what goes leaves nothing."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_of
from prometheus_client.parser import text_string_to_metric_families as families_of

from kit import when
from scheduler import Outcome, RunEnded, Scheduler
from scheduler.metrics import snapshot
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.exposition import figures_of, render
from uptime_agent.standing.board import Board
from uptime_agent.standing.report import report_of
from uptime_agent.standing.status import TargetStatus

UP = CheckResult(status=Status.UP, latency=0.25)
DOWN = CheckResult(status=Status.DOWN, error="refused")
UNKNOWN = CheckResult(status=Status.UNKNOWN, error="no network")


@pytest.fixture
def board():
    """A board of two targets, one of them with a name that needs escaping."""
    return Board([TargetStatus("api", "http://h", "http"), TargetStatus('a "b"\n\ud800', "tcp://h:1", "tcp")])


def check(board, name, *results, at=11.0):
    """Tell the board of a check."""
    report = report_of([*results], board.targets[name])
    board.listen(RunEnded(name, when(at), when(at), when(at), 1, 0.0, 1.0, Outcome.SUCCEEDED, results=(report,)))


def read(board, *, openmetrics=False):
    """Return what Prometheus would have: by name and labels."""
    s = Scheduler()
    body = render(snapshot(s), figures_of(board.targets.values()), openmetrics=openmetrics).decode()
    parse = openmetrics_of if openmetrics else families_of
    samples = [each for family in parse(body) for each in family.samples]
    return {(each.name, tuple(sorted(each.labels.items()))): each.value for each in samples}


def of_target(found, name):
    """The values of series of the target `api` by their names."""
    wanted = (("target", name),)
    return {key.removeprefix("timerqueue_target_"): value for (key, labels), value in found.items() if labels == wanted}


@pytest.mark.parametrize("openmetrics", [False, True])
def test_a_target_that_is_up_has_its_figures(board, openmetrics):
    """In both formats, next to those of the scheduler."""
    check(board, "api", UP)
    found = read(board, openmetrics=openmetrics)
    assert of_target(found, "api") == {
        "up": 1.0,
        "latency_seconds": 0.25,
        "last_check_timestamp_seconds": when(11.0).timestamp(),
    }
    assert found["timerqueue_targets", (("status", "up"),)] == 1
    assert found["timerqueue_targets", (("status", "unchecked"),)] == 1
    assert found["timerqueue_target_status", (("status", "up"), ("target", "api"))] == 1
    assert found["timerqueue_target_info", (("kind", "http"), ("target", "api"))] == 1
    assert any(name.startswith("timerqueue_jobs") for name, _ in found)


def test_a_target_that_is_down_has_its_incident(board):
    """Since when, until it is up again."""
    check(board, "api", DOWN)
    found = of_target(read(board), "api")
    assert (found["up"], found["incident_began_timestamp_seconds"]) == (0.0, when(11.0).timestamp())
    while board.targets["api"].incident is not None:  # it might flap: some checks must find it up
        check(board, "api", UP, at=board.targets["api"].last_run.ended.timestamp() + 1)
    found = of_target(read(board), "api")
    assert (found["up"], "incident_began_timestamp_seconds" in found) == (1.0, False)


def test_unknown_is_neither_up_nor_down(board):
    """A metric that stays 1 after the connection is lost is the worst lie of a metric."""
    check(board, "api", UP)
    check(board, "api", UNKNOWN, at=12.0)
    found = read(board)
    assert "up" not in of_target(found, "api")
    assert found["timerqueue_target_status", (("status", "unknown"), ("target", "api"))] == 1
    assert ("timerqueue_target_status", (("status", "up"), ("target", "api"))) not in found


def test_a_certificate_is_told_by_the_instant_at_which_it_ends(board):
    """The first of its chain counts."""
    detail = {"cert_expires_in": 500.0, "chain_expires_in": 400.0, "domain_expires_in": 90}
    check(board, "api", CheckResult(status=Status.UP, detail=detail))
    found = of_target(read(board), "api")
    assert found["certificate_expires_timestamp_seconds"] == when(11.0).timestamp() + 400
    assert found["domain_expires_timestamp_seconds"] == when(11.0).timestamp() + 90


@pytest.mark.parametrize("nonsense", ["soon", None, float("nan"), float("inf"), True])
def test_a_detail_that_is_no_number_is_no_series(board, nonsense):
    """A check of one's own may tell anything."""
    check(board, "api", CheckResult(status=Status.UP, detail={"cert_expires_in": nonsense}))
    assert "certificate_expires_timestamp_seconds" not in of_target(read(board), "api")


def test_a_name_may_have_any_letters(board):
    """Quotes, line breaks and halves of letters are escaped."""
    check(board, 'a "b"\n\ud800', DOWN)
    assert of_target(read(board), 'a "b"\n\\ud800')["up"] == 0.0


def test_a_target_that_goes_leaves_no_series(board):
    """A rename is a target that goes and one that comes."""
    check(board, "api", UP)
    board.forget("api", 20.0)
    assert not [labels for _, labels in read(board) if ("target", "api") in labels]
