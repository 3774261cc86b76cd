"""Answers to what we have asked of others: also those that nobody can read end a wait, and keep nobody else waiting."""

import pytest

from scheduler import MissedReason, Outcome
from scheduler._fleet.answers import end_of
from scheduler.stores import Answer, StoredTick

ENDED = StoredTick("job", 1_000_000, 1, 1, "succeeded", 1_000_000, 2_000_000, result="7")


def test_the_end_of_a_run_is_told_with_its_result():
    """As its record says."""
    end = end_of(Answer(1, True, due_us=1_000_000, tick=ENDED), "job", 0)
    assert (end.outcome, end.result) == (Outcome.SUCCEEDED, 7)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(1, True, reason="it rained"), id="reason"),
        pytest.param(Answer(1, True, tick=ENDED._replace(outcome="missed", reason="it rained")), id="reason of a tick"),
        pytest.param(Answer(1, True, tick=ENDED._replace(outcome="exploded")), id="outcome"),
    ],
)
def test_an_answer_of_a_version_that_knows_more_is_one(answer):
    """It raised, and whoever had asked beside it waited as well."""
    assert end_of(answer, "job", 0).reason is MissedReason.STOPPED


def test_a_result_that_is_no_json_is_left_out():
    """Somebody has written it by hand."""
    end = end_of(Answer(1, True, tick=ENDED._replace(result="{")), "job", 0)
    assert (end.outcome, end.results) == (Outcome.SUCCEEDED, ())
