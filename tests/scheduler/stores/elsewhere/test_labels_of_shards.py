"""Shards of jobs that are for agents with some labels: who may have them by right, and what becomes of them."""

import json

import pytest
from psycopg import connect

from scheduler.stores import (
    SHARDS,
    Assignment,
    Batch,
    Peer,
    StoredJob,
    StoredState,
    StoredTick,
    StoreUnavailable,
    View,
    labels_of,
    shard_of,
)
from scheduler.stores._sharing import LabelledShard
from scheduler.stores.postgres import PostgresStore

EU = "region=eu"


def put(store, *ids, where=EU):
    """Store jobs for agents with these labels. Return their shards."""
    options = json.dumps({"where": where} if where else {})
    rows = {id: StoredJob(id, "task", "@every 1m", options=options) for id in ids}
    store.commit(Batch(jobs=rows, states={id: StoredState(id, next_us=5) for id in ids}))
    return sorted({shard_of(id, where) for id in ids})


def test_labels_are_read():
    """Spaces about a comma mean nothing."""
    assert labels_of("region=eu") == {"region": "eu"}
    assert labels_of("region=eu, zone=a") == {"region": "eu", "zone": "a"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("region", "'region' is no label"),
        ("region=", "'region=' is no label"),
        ("region=eu,", "'' is no label"),
        ("region=eu west", "'region=eu west' is no label"),
        ("a=b=c", "'a=b=c' is no label"),
        ("region=eu,region=us", "'region' cannot be both 'eu' and 'us'"),
    ],
)
def test_what_is_no_label_is_named(text, complaint):
    """And what is wrong with it."""
    with pytest.raises(ValueError, match=complaint):
        labels_of(text)


@pytest.mark.parametrize("labels", [{"region": 1}, {"re gion": "eu"}, {"region": "a,b"}, {"": "eu"}, {"region": ""}])
def test_an_agent_cannot_have_labels_that_nobody_could_ask_for(labels):
    """It is told which, and what to write."""
    with pytest.raises(ValueError, match=r'labels has .* such as \{"region": "eu"\}'):
        PostgresStore("", shared=True, labels=labels)


def test_the_tables_have_the_same_shards_of_labels_as_we(agent, postgres_server, postgres_schema):
    """Whatever somebody has written by hand: what cannot be read is no label."""
    agent()
    options = {
        "a": ('{"where": "region=eu"}', "region=eu", None),
        "b": ('{"where": "zone=a,  region=eu"}', "zone=a,  region=eu", None),
        "ünicode": ('{"where": "stadt=köln", "place": "host:x"}', "stadt=köln", "host:x"),
        "d": ('{"where": nonsense', None, None),
        "e": ('{"where": null}', None, None),
        "f": ('{"where": 5}', "5", None),
        "g": ('{"needs": "where"}', None, None),
    }
    with connect(postgres_server.dsn, autocommit=True) as hand:
        for id, (text, *_) in options.items():
            hand.execute(
                f"INSERT INTO {postgres_schema}.job (id, task, schedule, options) VALUES (%s, 't', '@daily', %s)",
                [id, text],
            )
        found = dict(hand.execute(f"SELECT id, shard FROM {postgres_schema}.job").fetchall())
        made = dict(hand.execute(f"SELECT number, labels FROM {postgres_schema}.labelled_shard").fetchall())
    assert found == {id: shard_of(place or id, where) for id, (_, where, place) in options.items()}
    assert made == {found[id]: where for id, (_, where, _) in options.items() if where is not None}


def test_a_shard_of_labels_is_there_once_a_job_asks_for_it(agent):
    """All agents see it, with what it is for, and that nobody has it."""
    one, two = agent(), agent()
    assert one.sharing.renew().labelled == {}
    shards = put(one, *map(str, range(200)))
    put(one, *map(str, range(200)))
    assert len(shards) == 16
    for store in (one, two):
        view = store.sharing.renew()
        assert {n: (shard.where, shard.owner) for n, shard in view.labelled.items()} == dict.fromkeys(shards, (EU, 0))


def test_a_shard_of_labels_has_one_owner_who_gives_it_on(agent):
    """As any other shard."""
    one, two = agent(region="eu"), agent(region="eu")
    shards = put(one, "a", "b", "c")
    assert one.sharing.claim([*shards, 7]) == [7, *shards]
    assert two.sharing.claim(shards) == []
    one.sharing.hand_on([shards[0], 7], two.epoch)
    view = two.sharing.renew()
    assert view.ours() == {shards[0], 7}
    assert [view.owner_of(shard) for shard in shards] == [two.epoch, *[one.epoch] * (len(shards) - 1)]
    two.sharing.hand_on([shards[0]], 0)
    assert one.sharing.renew().owner_of(shards[0]) == 0


def test_a_shard_of_labels_goes_once_no_job_asks_for_it(agent):
    """But for those of others, who may be about to put a job there. It comes again with the next job."""
    one, two = agent(region="eu"), agent(region="eu")
    ours, theirs, free = shards = put(one, "a", "b", "e")
    one.sharing.claim([ours])
    two.sharing.claim([theirs])
    assert one.sharing.forget_empty() == []
    one.commit(Batch(jobs=dict.fromkeys("abe")))
    assert sorted(one.sharing.forget_empty()) == sorted([ours, free])
    assert one.sharing.renew().labelled.keys() == {theirs}
    put(two, "a", "b", "e")
    view = one.sharing.renew()
    assert {shard: view.owner_of(shard) for shard in shards} == {ours: 0, theirs: two.epoch, free: 0}


def test_a_shard_stays_into_which_a_job_comes_just_then(agent, postgres_server, postgres_schema):
    """Who removes it does not wait for long, and nobody waits behind it."""
    store = agent(region="eu")
    shards = put(store, "a")
    store.commit(Batch(jobs={"a": None}))
    with connect(postgres_server.dsn) as hand:
        hand.execute(
            f"INSERT INTO {postgres_schema}.job (id, task, schedule, options) VALUES ('a', 't', '@daily', %s)",
            ['{"where": "region=eu"}'],
        )
        with pytest.raises(StoreUnavailable):
            store.sharing.forget_empty()
    assert store.sharing.forget_empty() == []
    assert [*store.sharing.renew().labelled] == shards


def test_who_has_the_labels_has_a_right_to_their_shards():
    """Of several that have them each gets a part. Whose clock is off, whose lease has ended and who goes gets none."""
    shards = [shard_of(str(number), EU) for number in range(200)]
    labelled = dict.fromkeys(shards, LabelledShard(EU, 0))
    eu, both, us, off, dead = (
        Peer(epoch=epoch, name="", left=left, format=1, opened_us=0, labels=labels, is_off=is_off)
        for epoch, labels, left, is_off in [
            (1, {"region": "eu"}, 1, False),
            (2, {"region": "eu", "zone": "a"}, 1, False),
            (3, {"region": "us"}, 1, False),
            (4, {"region": "eu"}, 1, True),
            (5, {"region": "eu"}, -1, False),
        ]
    )
    owners = (0,) * SHARDS
    view = View(me=1, peers=(eu, both, us, off, dead), owners=owners, at_us=0, labelled=labelled)
    rightful = Assignment(view)
    assert {rightful[shard] for shard in shards} == {1, 2}
    assert {rightful[shard] for shard in range(SHARDS)} == {1, 2, 3}
    assert {Assignment(view, gone=[2])[shard] for shard in shards} == {1}
    assert {Assignment(view, gone=[1, 2])[shard] for shard in shards} == {0}
    assert Assignment(view)[shard_of("a", "of a row that somebody has deleted")] == 0


@pytest.mark.parametrize("end", ["leaves", "dies"])
def test_the_shards_of_labels_of_who_goes_are_those_of_who_fits(agent, end, postgres_server, postgres_schema):
    """In the same commit. Where nobody fits they are nobody's."""
    one, two, other = agent(region="eu"), agent(region="eu"), agent(region="us")
    shards = put(one, "a", "b", "c")
    one.sharing.claim(shards)

    def go(store, by):
        by.sharing.renew()
        if end == "leaves":
            store.sharing.renew()
            store.sharing.leave()
            return
        with connect(postgres_server.dsn, autocommit=True) as hand:
            ended = "until = now() - interval '1s'"
            hand.execute(f"UPDATE {postgres_schema}.lease SET {ended} WHERE epoch = %s", [store.epoch])
        assert by.sharing.bury([store.epoch]) == [store.epoch]

    go(one, two)
    assert other.sharing.renew().ours() >= set()
    assert two.sharing.renew().ours() >= set(shards)
    go(two, other)
    view = other.sharing.renew()
    assert view.ours().isdisjoint(shards)
    assert {view.owner_of(shard) for shard in shards} == {0}


def test_who_takes_a_shard_of_labels_reads_its_jobs_and_what_was_cut_off(agent):
    """The others' are not among them; nor those in other shards, which are read by whom that concerns."""
    one, two = agent(), agent(region="eu")
    put(one, "a", "b")
    put(one, "near", where=None)
    one.commit(Batch(marks=[StoredTick(id, 5, 1, (one.epoch << 32) + n, "running") for n, id in enumerate("ab")]))
    mine = [shard_of("a", EU)]
    assert [row.id for row, _ in two.sharing.take(mine, 10).jobs] == ["a"]
    assert [row.id for chunk in two.sharing.load(mine) for row, _ in chunk] == ["a"]
    assert {tick.job_id for tick in two.sharing.running(mine)} == {"a"}
    assert {row.id for chunk in two.sharing.load_others(mine) for row, _ in chunk} == {"b", "near"}
    assert {row.id for chunk in two.sharing.load_others([]) for row, _ in chunk} == {"a", "b", "near"}


def test_jobs_that_wait_for_labels_are_counted(agent):
    """Those of labels that somebody has are not: they come to him in a moment."""
    one = agent(region="eu")
    put(one, "a", "b")
    put(one, "c", where="region=us,zone=a")
    assert one.fleet().waiting == {"region=us,zone=a": 1}
    one.sharing.claim([shard_of("a", EU), shard_of("b", EU)])
    [row] = one.fleet().agents
    assert row.jobs == 2
    assert row.labels == {"region": "eu"}
