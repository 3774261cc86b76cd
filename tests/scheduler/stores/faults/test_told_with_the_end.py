"""What a listener adds when a run ends is stored with the record of that run: both are there, or neither is."""

import json

import pytest

pytestmark = pytest.mark.slow

KILLED = -9
JOBS = [{"schedule": "@every 50ms", "id": "check"}]
POINTS = 8
"""Places within a commit at which an agent dies, spread over all calls that it makes."""


@pytest.fixture
def live(agents, place, tmp_path):
    """Let an agent live whose listener adds one-shots: how it ended, and how many calls a commit of an end made."""
    effects = tmp_path / "effects"

    def live(point, tells, runs=2):
        config = {"store": place.spec, "effects": str(effects), "add": JOBS, "runs": runs, "tells": tells}
        status = agents.live(**config, point=point)
        *_, (*_, last) = map(json.loads, effects.read_text().splitlines())
        return status, last

    return live


def check_that_all_or_nothing_is_there(place, tells):
    """See that each run that is recorded as ended has all of its one-shots, and no other run has any."""
    rows, ticks = place.content()
    ended = {tick.due_us for tick in ticks["check"] if tick.outcome in {"succeeded", "crashed"}}
    told = {job_id for job_id in rows if job_id.startswith("told")}
    assert told == {f"told {due} {number}" for due in ended for number in range(tells)}
    assert all(rows[job_id][1] is not None for job_id in told), "without a state its start would be forgotten"
    return ended


def test_every_call_of_the_commit_is_a_point_at_which_both_or_neither_are_stored(live, place):
    """An alarm that is added when a check ends is as durable as what that check has found."""
    status, calls = live("call 0", tells=3)
    assert status == 0
    assert calls > POINTS
    before = len(check_that_all_or_nothing_is_there(place, 3))
    assert before
    deaths = 0
    for number in range(1, calls, max(calls // POINTS, 1)):
        deaths += live(f"call {number}", tells=3)[0] == KILLED  # no two commits make equally many calls
        check_that_all_or_nothing_is_there(place, 3)
        assert live("call 0", tells=3)[0] == 0  # or the third death in a row would put the job into quarantine
        check_that_all_or_nothing_is_there(place, 3)
    assert deaths > POINTS / 2
    before = len(check_that_all_or_nothing_is_there(place, 3))
    assert live("after end", tells=3)[0] == KILLED
    assert len(check_that_all_or_nothing_is_there(place, 3)) > before


@pytest.mark.parametrize("point", ["before end", "after end", "call 1"])
def test_more_one_shots_than_a_batch_has_room_for_are_stored_with_the_end(live, place, point):
    """A network that fails brings down thousands of targets at once, and each has several channels."""
    tells = 2_100
    assert live(point, tells=tells)[0] == KILLED
    ended = check_that_all_or_nothing_is_there(place, tells)
    assert bool(ended) == (point == "after end")
