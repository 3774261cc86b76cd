"""What history keeps of checks, and how a target stands again after it."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from kit import when
from scheduler import Outcome, Record, RunEnded
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.standing.reading import restore, verdict_of_record
from uptime_agent.standing.report import MAX_CHARACTERS, Report, report_of, verdict_of
from uptime_agent.standing.status import TargetStatus, Verdict, fold

UP = CheckResult(
    status=Status.UP, address="127.0.0.1", latency=0.004, phases={"connect": 0.001}, detail={"http_status": 200}
)
DOWN = CheckResult(status=Status.DOWN, address="127.0.0.2", latency=0.5, error="refused", attempt=2)


def target():
    """Make a target that has not been checked."""
    return TargetStatus("api", "http://h", "http", 3)


def ended(*results, at, outcome=Outcome.SUCCEEDED, error=None):
    """Make the end of a run that began a second before."""
    return RunEnded("api", when(at - 1), when(at - 1), when(at), 1, 0.25, 1.0, outcome, error, None, results)


def record(at, result=None, *, outcome=Outcome.SUCCEEDED, error=None):
    """Make the record of the same run, with the result as JSON gives it back."""
    begun, end = (datetime.fromtimestamp(each, UTC) for each in (at - 1, at))
    return Record(
        job_id="api",
        due=begun,
        attempt=1,
        outcome=outcome,
        started=begun,
        ended=end,
        lateness=0.25,
        error=error,
        traceback=None,
        reason=None,
        count=1,
        last_due=begun,
        result=json.loads(json.dumps(result)),
    )


def lived(*checks):
    """Let a target be checked: a result each, or the outcome of a run without one. Return it and its records."""
    living, records = target(), []
    for number, found in enumerate(checks):
        at = 1000.0 + 10 * number
        if isinstance(found, Outcome):
            run, past = ended(at=at, outcome=found, error="x"), record(at, outcome=found, error="x")
        else:
            report = report_of([found], living)
            run, past = ended(report, at=at), record(at, report)
        verdict = verdict_of(run)
        if verdict is not None:
            living.record(verdict, run)
        records.insert(0, past)
    return living, records


def standing(each):
    """Tell all that is to survive a restart."""
    return (
        each.status,
        each.previous,
        each.since,
        each.counts,
        each.changes,
        each.state,
        each.last,
        each.last_run.ended,
    )


FOUND = st.sampled_from([
    UP, DOWN, evolve(UP, status=Status.DEGRADED, error="slow"), evolve(DOWN, status=Status.UNKNOWN), Outcome.FAILED,
    Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.CANCELLED, Outcome.MISSED,
])  # fmt: skip


@given(st.lists(FOUND, max_size=12), st.integers(1, 12))
def test_a_target_stands_again_as_it_did(checks, kept):
    """From the last records alone: status, since when, all counts, whether it flaps, and what was found last."""
    living, records = lived(*checks)
    risen = target()
    has_past = restore(risen, records[:kept])
    assert has_past == any(past.result is not None for past in records[:kept])
    if has_past:
        assert standing(risen) == standing(living)
        assert (risen.checks_now, risen.lateness_max) == (0, 0.0)


@given(st.lists(FOUND, min_size=1, max_size=6), st.lists(FOUND, min_size=1, max_size=6))
def test_a_target_stands_as_after_its_last_report_though_the_clock_was_set_back(before, after):
    """History goes by the clock: what was found before the step stands before what was found since."""
    living, records = lived(*before, UP, *after, DOWN)
    since = records[: len(after) + 1]
    moved = [
        evolve(each, due=each.due - timedelta(hours=1), last_due=each.last_due - timedelta(hours=1)) for each in since
    ]
    risen = target()
    assert restore(risen, sorted([*moved, *records[len(since) :]], key=lambda each: each.due, reverse=True))
    assert standing(risen) == standing(living)


def test_a_flapping_target_flaps_on_after_a_restart():
    """It needs three results that agree, whichever process has found them."""
    living, records = lived(UP, DOWN, UP, UP)
    risen = target()
    assert restore(risen, records[:1])
    for each in (living, risen):
        each.record(fold([UP]), ended(UP, at=2000.0))
    assert risen.state == living.state
    assert (risen.state.number, risen.state.started_at) == (1, 2000.0)


def test_what_this_process_has_found_is_counted_apart():
    """The end sums up this process; the table shows all."""
    _, records = lived(UP, UP, DOWN)
    risen = target()
    restore(risen, records)
    risen.record(fold([UP]), ended(UP, at=2000.0))
    assert (risen.checks, risen.checks_now, risen.lateness_max) == (4, 1, 0.25)


WORST = st.builds(
    CheckResult,
    status=st.sampled_from(Status),
    address=st.none() | st.text(max_size=40),
    latency=st.none() | st.floats(0, 1e4),
    phases=st.dictionaries(st.text(max_size=10), st.floats(0, 1e4), max_size=8),
    error=st.none() | st.text(max_size=300) | st.just("\U0001f600" * 300),
    detail=st.dictionaries(st.text(max_size=10), st.text(max_size=300) | st.integers(), max_size=4),
    attempt=st.integers(1, 10),
)


@given(st.lists(WORST, min_size=1, max_size=16))
def test_a_report_always_fits_into_its_record(results):
    """Detail is left out before addresses, and those before the verdict, which is always there."""
    report = report_of(results, lived(UP, DOWN, UP, DOWN, DOWN, DOWN, UP)[0])
    assert len(json.dumps(report)) <= MAX_CHARACTERS
    found, whole = verdict_of_record(record(1000.0, report)), fold(results)
    assert (found.status, found.attempt) == (whole.status, whole.attempt)
    assert (whole.error or "").startswith(found.error or "")
    assert verdict_of(ended(report, at=1000.0)) == whole


def test_a_report_of_one_address_keeps_all_of_it():
    """What the last check measured can be shown again."""
    assert verdict_of_record(record(1000.0, report_of([UP], target()))) == fold([UP])
    assert verdict_of_record(record(1000.0, report_of([UP, DOWN], target()))) == fold([UP, DOWN])


GOOD = dict(report_of([UP], lived(UP, DOWN)[0]))


@pytest.mark.parametrize(
    "result",
    [
        None,
        5,
        "up",
        [],
        {},
        GOOD | {"status": "sideways"},
        GOOD | {"attempt": None},
        GOOD | {"results": [5]},
        {name: value for name, value in GOOD.items() if name != "before"},
        GOOD | {"before": 5},
        GOOD | {"before": GOOD["before"] | {"counts": {"sideways": 1}}},
        GOOD | {"before": GOOD["before"] | {"state": {"number": 1}}},
    ],
)
def test_a_record_of_other_hands_does_no_harm(result):
    """A target of which nothing can be read begins anew, and another record may say more."""
    risen = target()
    assert not restore(risen, [record(1000.0, result)])
    assert standing_is_new(risen)
    assert restore(risen, [record(1010.0, result), record(1000.0, GOOD)])
    assert risen.status is Status.UP


def standing_is_new(each):
    """Whether nothing is known of a target."""
    return (each.status, each.state, each.checks, each.last) == (None, None, 0, None)


def test_a_run_that_was_cut_off_with_its_process_says_nothing():
    """The target is not to blame for the end of the agent."""
    living, records = lived(UP, Outcome.CRASHED)
    assert living.status is Status.UP
    assert verdict_of_record(records[0]) is None


def test_a_check_that_failed_itself_is_unknown_after_a_restart_too():
    """As it was before."""
    living, records = lived(UP, Outcome.FAILED)
    risen = target()
    restore(risen, records)
    assert risen.last == living.last == Verdict(status=Status.UNKNOWN, error="the check itself failed: x")


def test_a_report_is_json_and_carries_its_verdict():
    """History keeps the one, displays use the other: results are folded once, where the report is made."""
    report = report_of([DOWN], target())
    assert isinstance(report, Report)
    assert report.verdict == fold([DOWN])
    assert verdict_of(ended(report, at=1000.0)) is report.verdict
    assert json.loads(json.dumps(report)) == dict(report)
