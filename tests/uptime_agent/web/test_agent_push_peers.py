"""Who may have a connection to the push port, and who gives way."""

import pytest
from hypothesis import given, settings, strategies as st

from kit import examples
from uptime_agent.web import peers as module
from uptime_agent.web.peers import Peers, peer_of


class Port:
    """Places of 20, and who has left his."""

    def __init__(self):
        self.peers, self.left, self.open = Peers(20), [], []

    def enter(self, peer):
        name = f"{peer}-{len(self.open) + len(self.left)}"
        place = self.peers.enter(peer, lambda: self.left.append(name))
        if place is not None:
            self.open.append(place)
        return place


def test_one_peer_has_half_of_the_places_and_its_oldest_silent_one_gives_way():
    """Others lose none by it."""
    port = Port()
    port.enter("other")
    for _ in range(15):
        port.enter("many")
    assert port.left == ["many-1", "many-2", "many-3", "many-4", "many-5"]
    assert len(port.peers) == 11


def test_strangers_together_leave_a_quarter_to_those_who_are_known():
    """From however many addresses they come."""
    port = Port()
    port.peers.know("mine")
    for number in range(100):
        port.enter(f"stranger {number}")
    assert len(port.peers) == 15
    assert all(port.enter("mine") is not None for _ in range(5))
    assert not any(each.startswith("mine") for each in port.left)


def test_where_all_places_are_taken_a_stranger_gives_way_to_who_is_known():
    """Though a known one may have been silent for longer."""
    port = Port()
    port.peers.know("mine")
    for _ in range(8):
        port.enter("mine")
    for number in range(12):
        port.enter(f"stranger {number}")
    port.peers.know("yours")
    assert port.enter("yours") is not None
    assert port.left == ["stranger 0-8"]


def test_who_is_heard_keeps_its_place():
    """Then who comes gets none, and that counts as missed."""
    port = Port()
    for number in range(15):
        port.enter(f"stranger {number}").is_heard = True
    assert port.enter("late") is None
    assert port.left == []
    assert port.peers.losses(None).count == 1


def test_who_has_been_answered_gives_way_first_and_has_missed_nothing():
    """It only waits for its peer to close."""
    port = Port()
    places = [port.enter(f"stranger {number}") for number in range(15)]
    places[9].is_heard = places[9].is_answered = True
    assert port.enter("late") is not None
    assert port.left == ["stranger 9-9"]
    assert port.peers.lost == 0


def test_what_was_missed_is_counted_for_who_is_known_and_for_all_strangers_together():
    """A known target is not in doubt because strangers were turned away; one that nobody knows yet is."""
    peers = Peers(2)
    peers.know("mine")
    peers.turned_away("somebody")
    assert (peers.losses("mine").count, peers.losses("moved").count, peers.losses(None).count) == (0, 1, 1)
    peers.turned_away("mine")
    peers.deaf()
    assert (peers.losses("mine").count, peers.losses(None).count) == (2, 2)
    assert peers.lost == 3


def test_peers_are_remembered_within_bounds(monkeypatch):
    """Who has been silent for longest is a stranger again."""
    monkeypatch.setattr(module, "MOST_KNOWN", 2)
    peers = Peers(4)
    for each in ("one", "two", "one", "three"):
        peers.know(each)
    peers.turned_away("two")
    assert [peers.losses(each).count for each in ("one", "two", "three", None)] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_who_has_a_network_is_one_peer(address, peer):
    """An address of IPv6 costs nothing: whoever has one has 2 ** 64."""
    assert peer_of(address) == peer


PEERS = st.sampled_from(["mine", "yours", "a", "b", "c", "d"])


@settings(max_examples=examples(300))
@given(
    st.lists(st.tuples(st.sampled_from(["enter", "hear", "answer", "leave"]), PEERS, st.integers(0, 30)), max_size=60)
)
def test_no_bound_is_ever_exceeded(acts):
    """Whatever happens in whatever order; and who is heard is never sent away."""
    peers, open_places, sent_away = Peers(8), {}, []
    peers.know("mine")
    peers.know("yours")
    for number, (act, peer, which) in enumerate(acts):
        chosen = list(open_places)[which % len(open_places)] if open_places else None
        if act == "enter":
            place = peers.enter(peer, lambda number=number: sent_away.append(number))
            if place is not None:
                open_places[place] = number
        elif chosen is not None and act == "hear":
            chosen.is_heard = True
        elif chosen is not None and act == "answer":
            chosen.is_heard = chosen.is_answered = True
        elif chosen is not None:
            peers.left(chosen)
            del open_places[chosen]
        for place in [place for place, number in open_places.items() if number in sent_away]:
            assert place.is_answered or not place.is_heard
            del open_places[place]
        who = [place.peer for place in open_places]
        assert len(peers) == len(who) <= 8
        assert all(who.count(each) <= 4 for each in who)
        assert sum(each not in {"mine", "yours"} for each in who) <= 6
