"""A failover to a standby that was behind: the store knows nothing of an agent that has joined, and gives its epoch to
the next one. Two agents of one epoch are told apart, and who is unknown joins again.

What the standby does not know of is taken out of the tables here; test_failovers.py has a standby.
"""

import pytest
from psycopg import connect

from kit import until
from scheduler import AgentLost, Scheduler
from scheduler.stores import (
    SHARDS,
    Ask,
    Batch,
    StoredJob,
    StoredState,
    StoredTick,
    StoreTakenOver,
    StoreUnusable,
    Vote,
    Wish,
)

MARK = StoredTick("a", 5, 1, 7 << 32, "running")
ASK = {"http": Ask(2, 1, (Wish(1, 1),))}


@pytest.fixture
def lose(postgres_server, postgres_schema):
    """Take the last opening of a store back, as a server does that knows nothing of it."""

    def lose(store):
        with connect(postgres_server.dsn) as hand:
            hand.execute(f"SET search_path TO {postgres_schema}")
            hand.execute("DELETE FROM agent WHERE epoch = %s", [store.epoch])
            hand.execute("DELETE FROM hand_over")
            hand.execute("UPDATE meta SET epoch = %s", [store.epoch - 1])

    return lose


@pytest.fixture
def known_and_lost(agent, lose):
    """An agent that the store knows, and another one of the same epoch, each with connections from before."""
    agent()
    lost = agent()
    lost.lending.declare({"http": 2}, {})
    lost.commit(Batch(jobs={"a": StoredJob("a", "task", "@every 1m")}))
    lost.lending.round(ASK)
    lost.sharing.renew()
    lost.sharing.claim([])
    lost.voting.votes([("a", 5)])
    lose(lost)
    known = agent()
    assert known.epoch == lost.epoch
    known.lending.declare({"http": 2}, {})
    known.sharing.claim(range(SHARDS))
    known.lending.round(ASK)
    return known, lost


def kept(store):
    """What an agent has in the store, besides what it was told of itself."""
    view = store.sharing.renew()
    return (
        view.owners,
        [(peer.epoch, peer.name, peer.is_unsettled) for peer in view.peers],
        [(loan.epoch, loan.units) for loan in store.lending.loans()],
        store.running(),
        store.voting.votes([("a", 5)]),
    )


@pytest.mark.parametrize(
    "says",
    [
        lambda store: store.commit(Batch(states={"a": StoredState("a", next_us=5)}, marks=[MARK])),
        lambda store: store.changes(),
        lambda store: store.sharing.renew(),
        lambda store: store.sharing.renew(only_look=True),
        lambda store: store.lending.round({"http": Ask(2, 2)}),
        lambda store: store.executions.take([("a", 5)]),
    ],
    ids=["commit", "changes", "renew", "look", "borrow", "take"],
)
def test_an_agent_is_not_taken_for_another_one_of_its_epoch(known_and_lost, says):
    """It hears that it is unknown, over connections that go on: a pooler keeps them while its server is replaced."""
    known, lost = known_and_lost
    before = kept(known)
    with pytest.raises(StoreTakenOver):
        says(lost)
    assert kept(known) == before


@pytest.mark.parametrize(
    "says",
    [
        lambda store: store.sharing.settle(stays=True),
        lambda store: store.sharing.hand_on(range(SHARDS), store.epoch - 1),
        lambda store: store.sharing.leave(),
        lambda store: store.lending.give_back(),
        lambda store: store.voting.cast([Vote("a", 5, store.epoch, "down")]),
    ],
    ids=["settle", "hand on", "leave", "give back", "vote"],
)
def test_an_agent_does_nothing_in_the_name_of_another_one_of_its_epoch(known_and_lost, says):
    """Neither with its shards, nor with its units."""
    known, lost = known_and_lost
    before = kept(known)
    says(lost)
    assert kept(known) == before


def test_an_agent_claims_nothing_in_the_name_of_another_one_of_its_epoch(known_and_lost):
    """It would believe that it has shards which the other one has."""
    known, lost = known_and_lost
    known.sharing.hand_on([1, 2], 1_000)
    assert lost.sharing.claim([1, 2]) == []


def test_a_store_that_knows_nothing_of_an_agent_takes_it_in_again(agent, lose):
    """As somebody new: what it had by its last epoch is not taken for what it has by this one."""
    agent()
    lost = agent()
    before = lost.epoch
    lose(lost)
    with pytest.raises(StoreTakenOver, match="lost its last changes"):
        lost.changes()
    lost.open(0, lambda: None)
    assert lost.epoch == before + 1
    lost.commit(Batch())


def test_who_has_a_store_for_itself_is_told_that_it_is_an_older_copy(agent, lose):
    """It cannot be told from one that somebody has put in its place by mistake. Once another has it that one has it."""
    lost = agent(shared=False)
    lose(lost)
    with pytest.raises(StoreUnusable, match="restored from an older copy") as caught:
        lost.commit(Batch())
    assert not isinstance(caught.value, StoreTakenOver)
    other = agent(shared=False)
    assert other.epoch == lost.epoch
    with pytest.raises(StoreTakenOver, match="taken it over"):
        lost.commit(Batch())
    other.commit(Batch())


async def test_a_scheduler_of_whose_joining_nothing_is_known_joins_again(agent, shared_store, lose):
    """And runs its jobs, of which the store knows as much as the other agents."""
    other, ran, lost = agent(), [], []
    store = shared_store("lost")
    s = Scheduler(store=store, poll="50ms", crash_floor="50ms")  # one that was cut off is a crash
    s.register("work", lambda: ran.append(1))
    s.listen(lost.append, AgentLost)
    async with s:
        s.add("work", "@every 100ms", id="a")
        await s.flush()
        other.sharing.leave()
        await until(lambda: ran)
        before = store.epoch
        lose(store)
        await until(lambda: [event for event in lost if event.is_us])
        await until(lambda: store.epoch_now > before)
        since = len(ran)
        await until(lambda: len(ran) > since + 3)
        await s.flush()
