"""What Heartbeat's tests say of a monitor's state, said of a target's."""

import pytest
from hypothesis import given, strategies as st

from kit import when
from scheduler import Outcome, RunEnded
from uptime_agent.checks.contract.result import Status
from uptime_agent.standing.flapping import TargetStanding, after
from uptime_agent.standing.status import TargetStatus, Verdict

RESULTS = {"u": TargetStanding.UP, "d": TargetStanding.DOWN}
LETTERS = {TargetStanding.UP: "u", TargetStanding.DOWN: "d", TargetStanding.FLAPPING: "f"}

series_of_results = st.text("ud", min_size=1, max_size=40)
thresholds = st.integers(0, 6)


def states(series, *, threshold=3, state=None):
    """Make the state after each of some results; a capital letter is an attempt that is not final."""
    found = []
    for now, letter in enumerate(series):
        state = after(
            state, RESULTS[letter.lower()], float(now), name="api", threshold=threshold, is_final=letter.islower()
        )
        found.append(state)
    return found


def letters(series, **options):
    """Write the standing after each result as a letter."""
    return "".join(LETTERS[each.status] for each in states(series, **options))


@pytest.mark.parametrize(
    ("series", "standings", "opened"),
    [
        ("uuuu", "uuuu", 1),
        ("ud", "uf", 1),
        ("uud", "uuf", 1),
        ("uuud", "uuud", 2),
        ("udududud", "ufffffff", 1),
        ("uddd", "uffd", 2),
        ("uduu", "ufff", 1),
        ("uduuu", "ufffu", 2),
        ("udddd", "uffdd", 2),
        ("uddddduu", "uffddduu", 3),
        ("udddu", "uffdf", 2),
    ],
)
def test_heartbeat_state_by_series(series, standings, opened):
    """A change before the third check is a flapping, which three equal results end; later ones are new states."""
    found = states(series)
    assert "".join(LETTERS[each.status] for each in found) == standings
    assert len({each.id for each in found}) == opened


def test_heartbeat_state_flapping_adds_its_counts_up():
    """An alternating series is one state that has counted everything."""
    last = states("ud" * 10)[-1]
    assert (last.status, last.checks, last.up, last.down) == (TargetStanding.FLAPPING, 20, 10, 10)
    assert last.ends is None


def test_heartbeat_state_a_stable_series_ends_flapping_and_then_one_change_is_a_new_state():
    """The new state begins with the result that ended the flapping."""
    *_, flapping = states("udud")
    *_, stable = states("uuuuuu", state=flapping)
    assert (stable.status, stable.checks, stable.ends.status) == (TargetStanding.UP, 4, TargetStanding.FLAPPING)
    (changed,) = states("d", state=stable)
    assert (changed.status, changed.checks) == (TargetStanding.DOWN, 1)
    assert changed.ends.id == stable.id != flapping.id


def test_heartbeat_state_a_flapping_remembers_no_more_than_its_end_depends_on():
    """A target that flaps for a year holds two results."""
    assert states("ud" * 50)[-1].flap_history == (TargetStanding.UP, TargetStanding.DOWN)


def test_heartbeat_state_duration_grows():
    """It is counted from the first result, and from anew after a change."""
    first, *_, third, changed = states("uuud")
    assert [first.duration(now) for now in (0.0, 1.5, 60.0)] == [0.0, 1.5, 60.0]
    assert third.duration(60.0) == 60.0
    assert changed.duration(60.0) == 57.0


def test_heartbeat_state_a_transition_sets_ends_which_has_no_ends_itself():
    """A state names its predecessor, not the whole past."""
    first, second, third = states("udu", threshold=0)
    assert first.ends is None
    assert second.ends == first
    assert third.ends.id == second.id
    assert third.ends.ends is None


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("api", "api-1500-"),
        ("https://a.example:8443/x?y", "https_a_example_8443_x_y-1500-"),
        ("a-b c", "a_b_c-1500-"),
    ],
)
def test_heartbeat_state_id_is_of_the_sanitised_name_the_milliseconds_and_a_counter(name, start):
    """So two states that begin in the same millisecond differ."""
    first = after(None, TargetStanding.UP, 1.5, name=name, threshold=0)
    second = after(first, TargetStanding.DOWN, 1.5, name=name, threshold=0)
    assert (first.id, second.id) == (start + "0", start + "1")


@pytest.mark.parametrize("threshold", [0, 1])
def test_heartbeat_state_without_flapping_changes_are_plain(threshold):
    """Each change is a state of its own."""
    found = states("uduudd", threshold=threshold)
    assert [each.number for each in found] == [0, 1, 2, 2, 3, 3]
    assert [each.checks for each in found] == [1, 1, 1, 2, 1, 2]
    assert letters("uduudd", threshold=threshold) == "uduudd"


@pytest.mark.parametrize(
    ("series", "standings"),
    [("Duu", "duu"), ("Dddd", "dddd"), ("uDu", "uuu"), ("uuuDd", "uuuud"), ("uDd", "uuf"), ("udDdd", "ufffd")],
)
def test_heartbeat_state_attempts_that_are_not_final_count_and_change_nothing(series, standings):
    """But the very first result opens the first state."""
    threshold = 0 if series == "Duu" else 3
    found = states(series, threshold=threshold)
    assert "".join(LETTERS[each.status] for each in found) == standings
    assert sum(each.checks for each in {state.id: state for state in found}.values()) == len(series)


@given(series_of_results, thresholds)
def test_heartbeat_state_checks_are_those_up_and_those_down(series, threshold):
    """Over all states together too: no result is lost or counted twice."""
    found = states(series, threshold=threshold)
    assert all(each.checks == each.up + each.down for each in found)
    lasts = {each.id: each for each in found}.values()
    assert sum(each.up for each in lasts) == series.count("u")
    assert sum(each.down for each in lasts) == series.count("d")


@given(series_of_results, thresholds, st.sampled_from("ud"))
def test_heartbeat_state_a_stable_series_leaves_flapping(series, threshold, letter):
    """As many equal results as the threshold says are enough."""
    last = states(series + letter * max(threshold, 1), threshold=threshold)[-1]
    assert last.status is RESULTS[letter]
    assert last.flap_history == ()


@given(series_of_results, thresholds)
def test_heartbeat_state_the_chain_of_ends_has_at_most_one_link(series, threshold):
    """And the link is the state before."""
    for state in states(series, threshold=threshold):
        if state.ends is None:
            assert state.number == 0
        else:
            assert state.ends.ends is None
            assert state.ends.number == state.number - 1


def test_heartbeat_state_of_a_target_follows_its_verdicts():
    """Degraded is up, and an unknown verdict says nothing."""
    target = TargetStatus("api", "http://h", "http")
    run = RunEnded("api", when(0.0), when(0.0), when(7.0), 1, 0.0, 0.0, Outcome.SUCCEEDED, None, None, ())
    for status in (Status.UNKNOWN, Status.UP, Status.DEGRADED, Status.UNKNOWN, Status.UP, Status.DOWN):
        target.record(Verdict(status=status), run)
    assert (target.state.status, target.state.started_at, target.state.ends.up) == (TargetStanding.DOWN, 7.0, 3)
