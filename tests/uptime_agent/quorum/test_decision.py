"""How a target stands by the votes of agents: no false "down", and nothing known while too few know."""

import pytest
from hypothesis import given, strategies as st

from uptime_agent.checks import CheckResult, Status
from uptime_agent.quorum import Quorum, decide

UP, DEGRADED, DOWN, UNKNOWN = Status.UP, Status.DEGRADED, Status.DOWN, Status.UNKNOWN
MARKS = {"u": UP, "s": DEGRADED, "d": DOWN, "?": UNKNOWN}


def votes(marks):
    """Make the votes of agents a, b and so on."""
    return [
        CheckResult(status=MARKS[mark], address="abcdefgh"[place], error=None if mark == "u" else f"error {place}")
        for place, mark in enumerate(marks)
    ]


@pytest.mark.parametrize(
    ("marks", "quorum", "expected"),
    [
        ("uuu", Quorum(agents=3), (UP, None)),
        ("udu", Quorum(agents=3), (DEGRADED, "down at 1 of 3 agents: error 1")),
        ("usu", Quorum(agents=3), (DEGRADED, "degraded at 1 of 3 agents: error 1")),
        ("ddu", Quorum(agents=3), (DOWN, "down at 2 of 3 agents: error 0")),
        ("dd?", Quorum(agents=3), (DOWN, "down at 2 of 3 agents: error 0")),
        ("uu?", Quorum(agents=3), (UP, None)),
        ("ud?", Quorum(agents=3), (UNKNOWN, "1 of 3 agents do not know, 1 found it down: c: error 2")),
        ("u??", Quorum(agents=3), (UNKNOWN, "2 of 3 agents do not know, 0 found it down: b: error 1")),
        ("???", Quorum(agents=3), (UNKNOWN, "3 of 3 agents do not know, 0 found it down: a: error 0")),
        ("d", Quorum(agents=3), (UNKNOWN, "1 agents are there, and 2 are needed")),
        ("d", Quorum(agents=3, least=1), (DOWN, "down at 1 of 1 agents: error 0")),
        ("d", Quorum(where={"region": "eu"}), (DOWN, "down at 1 of 1 agents: error 0")),
        ("", Quorum(where={"region": "eu"}), (UNKNOWN, "0 agents with region=eu are there, and 1 are needed")),
        ("", Quorum(agents=None, least=None), (UNKNOWN, "0 agents are there, and 1 are needed")),
        ("dduuu", Quorum(agents=None), (DEGRADED, "down at 2 of 5 agents: error 0")),
        ("duuuu", Quorum(agents=None, votes=1), (DOWN, "down at 1 of 5 agents: error 0")),
        ("?uuuu", Quorum(agents=None, votes=1), (UNKNOWN, "1 of 5 agents do not know, 0 found it down: a: error 0")),
    ],
)
def test_a_target_stands_as_the_votes_say(marks, quorum, expected):
    """Each line is a promise."""
    assert decide(votes(marks), quorum) == expected


RULES = st.builds(
    Quorum,
    agents=st.none() | st.integers(1, 6),
    votes=st.none() | st.integers(1, 6),
    least=st.none() | st.integers(1, 6),
)


@given(st.text("usd?", max_size=6), RULES)
def test_who_does_not_know_could_not_have_changed_what_was_decided(marks, quorum):
    """Whatever the silent would have said, a target that is told up is not down, and one told down is not up."""
    status, _ = decide(votes(marks), quorum)
    if status is UNKNOWN:
        return
    for said in "ud":
        assert (decide(votes(marks.replace("?", said)), quorum)[0] is DOWN) == (status is DOWN)


@given(st.text("usd?", max_size=6), RULES)
def test_down_takes_as_many_votes_as_the_rule_says(marks, quorum):
    """Of those that are there; and only what is well everywhere is up."""
    status, error = decide(votes(marks), quorum)
    assert (status is DOWN) <= (marks.count("d") >= min(quorum.votes_of(len(marks)), len(marks)))
    assert (status is UP) == (error is None)
    assert (status is UP) <= ("d" not in marks and "s" not in marks and "u" in marks)
    if len(marks) < quorum.least_of(len(marks)):
        assert status is UNKNOWN
