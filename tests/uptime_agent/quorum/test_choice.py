"""Which agents check a target: the same wherever it is asked, in different zones as far as there are, evenly."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from scheduler.stores import Peer
from uptime_agent.quorum import Quorum, chosen


def peer(number, left=3.0, **labels):
    """Make an agent that is there."""
    return Peer(epoch=number, name=f"agent {number}", left=left, format=1, opened_us=0, labels=labels)


PEERS = st.lists(st.integers(1, 30), unique=True, max_size=8).flatmap(
    lambda numbers: st.tuples(*(st.builds(peer, st.just(n), zone=st.sampled_from("abc")) for n in numbers))
)


@given(PEERS, st.integers(1, 5), st.randoms(use_true_random=False))
def test_all_agents_choose_the_same(peers, agents, random):
    """In whichever order they know each other."""
    shuffled = list(peers)
    random.shuffle(shuffled)
    assert chosen("t", peers, Quorum(agents=agents)) == chosen("t", shuffled, Quorum(agents=agents))


@given(PEERS, st.integers(1, 5))
def test_as_many_zones_as_there_are(peers, agents):
    """So many agents as are asked for, in as many zones as so few agents can be in."""
    found = chosen("t", peers, Quorum(agents=agents))
    assert len(found) == len(set(found)) == min(agents, len(peers))
    assert len({each.labels["zone"] for each in found}) == min(agents, len({each.labels["zone"] for each in peers}))


@given(PEERS, st.integers(1, 5))
def test_when_one_goes_only_its_place_is_filled_anew(peers, agents):
    """Without zones nobody else has to leave. Targets of others do not move at all."""
    plain = [peer(each.epoch) for each in peers]
    before = chosen("t", plain, Quorum(agents=agents))
    for gone in plain:
        after = chosen("t", [each for each in plain if each != gone], Quorum(agents=agents))
        assert set(before) - {gone} <= set(after)


def test_agents_have_like_shares():
    """Of 3,000 targets on three of six agents each has about 1,500."""
    peers = [peer(number) for number in range(6)]
    counts = Counter(each.epoch for n in range(3_000) for each in chosen(f"t{n}", peers, Quorum(agents=3)))
    assert sum(counts.values()) == 9_000
    assert all(1_350 < count < 1_650 for count in counts.values())


def test_a_restart_moves_nothing():
    """The draw goes by the name of an agent: its next incarnation has the same targets."""
    peers = [peer(number) for number in range(6)]
    again = [Peer(epoch=each.epoch + 100, name=each.name, left=3.0, format=1, opened_us=0) for each in peers]
    for n in range(50):
        before, after = (chosen(f"t{n}", those, Quorum(agents=2)) for those in (peers, again))
        assert [each.name for each in before] == [each.name for each in after]


@pytest.mark.parametrize(
    ("quorum", "expected"),
    [
        (Quorum(where={"region": "eu"}, agents=None), {1, 2}),
        (Quorum(where={"region": "eu", "zone": "b"}, agents=5), {2}),
        (Quorum(where={"region": "asia"}), set()),
        (Quorum(agents=None), {1, 2, 3}),
        (Quorum(where={"unknown": ""}), set()),
    ],
)
def test_only_agents_with_the_labels_that_are_there(quorum, expected):
    """One whose lease has ended is not asked."""
    peers = [peer(1, region="eu", zone="a"), peer(2, region="eu", zone="b"), peer(3), peer(4, -0.1, region="eu")]
    assert {each.epoch for each in chosen("t", peers, quorum)} == expected
