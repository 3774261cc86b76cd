"""Parts of jobs that several agents run: their texts, who may have one, and who has which."""

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from scheduler._placement import (
    OfAgent,
    OneOf,
    assigned,
    chosen,
    fits,
    is_part,
    labels_of,
    lack_text,
    lacks,
    read_part,
)
from scheduler.stores import SHARDS, Assignment, LabelledShard, Peer, View, shard_of

LABELS = st.sampled_from([None, "region=eu", "region=eu, zone=a", "a=|"])
PARTS = st.one_of(
    st.integers(1, 9).flatmap(
        lambda count: st.builds(OneOf, LABELS, st.integers(1, count), st.just(count), st.sampled_from(["zone", "x|y"]))
    ),
    st.builds(OfAgent, LABELS, st.text(max_size=20)),
)


def peer(number, **more):
    """Make an agent that is there."""
    return Peer(**{"epoch": number, "name": f"agent {number}", "left": 3.0, "format": 1, "opened_us": 0} | more)


@given(PARTS)
def test_a_text_reads_back_as_the_same_part(part):
    """And is no text of labels: who knows no parts has none."""
    assert read_part(part.text) == part
    assert is_part(part.text)
    with pytest.raises(ValueError, match="is no label"):
        labels_of(part.text)


@pytest.mark.parametrize(
    "text",
    [
        "region=eu",
        "",
        "any",
        "any | ",
        "any | 1 of 3",
        "any | 0 of 3 apart by zone",
        "any | 4 of 3 apart by zone",
        "any | 1 of 3 apart by a=b",
        "region | agent a",
        "| agent a",
        "any|agent a",
    ],
)
def test_what_is_no_part_is_none(text):
    """It may be labels, or nothing that means anything."""
    assert read_part(text) is None
    assert not is_part(text)


def test_who_may_have_a_part():
    """Who has the labels; and the name, if it is for one agent."""
    web = peer(1, name="web", labels={"region": "eu"})
    assert fits(web, "region=eu | 2 of 3 apart by zone")
    assert fits(web, "any | 2 of 3 apart by zone")
    assert not fits(web, "region=us | 2 of 3 apart by zone")
    assert fits(web, "any | agent web")
    assert fits(web, "region=eu | agent web")
    assert not fits(web, "region=us | agent web")
    assert not fits(web, "region=eu | agent other")


def test_what_is_lacking_is_said():
    """Of a number all are wanted, whichever part it is."""
    agents = [peer(number, labels={"region": "eu"}) for number in (1, 2)]
    for where, text in {
        "region=us": "no node has region=us",
        "any | 1 of 3 apart by zone": "fewer than 3 nodes are there",
        "region=eu | 3 of 3 apart by zone": "fewer than 3 nodes have region=eu",
        "any | agent web": "node 'web' is not there",
        "region=eu | agent web": "no node 'web' has region=eu",
    }.items():
        assert lacks(where, agents)
        assert lack_text(where) == text
    assert not lacks("any | 2 of 2 apart by zone", agents)
    assert not lacks("region=eu | agent agent 1", agents)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.lists(st.integers(1, 6), unique=True, max_size=5))
def test_each_of_the_chosen_has_one_part(owners, found):
    """As many as there are parts. Who is chosen and has one keeps it."""
    found = found[: len(owners)]
    now = assigned(owners, found)
    assert len(now) == len(owners)
    assert sorted(filter(None, now)) == sorted(found)
    for part, owner in enumerate(owners):
        if owner in found and owner not in owners[:part]:
            assert now[part] == owner


ZONES = st.lists(st.sampled_from("abc"), max_size=6)


def view_of(agents, owners, shards):
    """How one agent sees the others, and who has the parts."""
    labelled = {
        shard: LabelledShard(part.text, owner) for (part, shard), owner in zip(shards.items(), owners, strict=True)
    }
    return View(me=1, peers=tuple(agents), owners=(0,) * SHARDS, at_us=0, labelled=labelled)


@given(st.integers(1, 4), st.lists(ZONES, min_size=1, max_size=5), st.text(max_size=3))
def test_whoever_comes_and_goes_the_chosen_have_one_part_each(count, lives, place):
    """They are those that a choice among all that are there gives: as many as wanted, in as many zones as there are.
    Who stays among them does not change its part.
    """
    shards = {part: shard_of(place, part.text) for part in OneOf(None, 1, count, "zone").siblings()}
    owners = [0] * count
    for zones in lives:
        agents = [peer(number, labels={"zone": zone}) for number, zone in enumerate(zones, 1)]
        rightful = Assignment(view_of(agents, owners, shards))
        now = [rightful[shard] for shard in shards.values()]
        there = [owner for owner in now if owner]
        assert len(there) == len(set(there)) == min(count, len(zones))
        assert len({zones[owner - 1] for owner in there}) == min(count, len(set(zones)))
        for before, after in zip(owners, now, strict=True):
            assert before in {0, after} or before not in there
        owners = now


@given(st.integers(1, 4), ZONES, st.data())
def test_agents_that_see_the_same_agree(count, zones, data):
    """In whichever order they know each other, also of what becomes of the parts of those that go."""
    shards = {part: shard_of("job", part.text) for part in OneOf(None, 1, count, "zone").siblings()}
    agents = [peer(number, labels={"zone": zone}) for number, zone in enumerate(zones, 1)]
    owners = [data.draw(st.integers(0, len(zones))) for _ in range(count)]
    gone = data.draw(st.sets(st.integers(1, 6)))
    view = view_of(agents, owners, shards)
    found = [Assignment(view, gone)[shard] for shard in shards.values()]
    other = evolve(view, me=2, peers=tuple(data.draw(st.permutations(agents))))
    assert [Assignment(other, gone)[shard] for shard in reversed(shards.values())] == found[::-1]
    assert gone.isdisjoint(found)


def test_the_part_of_an_agent_is_that_of_its_name():
    """A restart does not change it. While it is away nobody has it."""
    part = OfAgent("region=eu", "web")
    shard = shard_of("job", part.text)
    web, other = peer(7, name="web", labels={"region": "eu"}), peer(8, name="other", labels={"region": "eu"})

    def owner(*agents):
        return Assignment(
            View(me=8, peers=agents, owners=(0,) * SHARDS, at_us=0, labelled={shard: LabelledShard(part.text, 0)})
        )[shard]

    assert owner(web, other) == 7
    assert owner(other) == 0
    assert owner(other, evolve(web, epoch=9)) == 9
    assert owner(evolve(web, labels={}), other) == 0


def test_parts_are_spread_over_agents():
    """Of 16 places with two of four agents each, all four have some."""
    agents = [peer(number) for number in range(1, 5)]
    found = {each.epoch for place in range(16) for each in chosen(str(place), agents, 2, "zone")}
    assert found == {1, 2, 3, 4}
