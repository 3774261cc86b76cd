"""Voting: agents that share a store read what each of them has said of an instant, and of the dead nothing new is."""

from contextlib import closing, suppress
from threading import Thread

import pytest

from kit import wait_until
from scheduler.stores import Batch, StoredTick, StoreError, Vote, postgres
from scheduler.stores.postgres import PostgresStore


@pytest.fixture
def voters(postgres_server, postgres_schema):
    """Open two stores of agents that share."""
    names = {"one": {"region": "eu"}, "two": {"region": "us", "zone": "ü"}}
    stores = [
        PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True, name=name, labels=labels)
        for name, labels in names.items()
    ]
    with closing(stores[0]), closing(stores[1]):
        for store in stores:
            store.open(0, lambda: None)
        yield stores


def test_an_agent_sees_the_names_and_labels_of_all(voters):
    """Who chooses among nodes chooses by these."""
    found = {peer.name: dict(peer.labels) for peer in voters[0].sharing.renew().peers}
    assert found == {"one": {"region": "eu"}, "two": {"region": "us", "zone": "ü"}}
    assert voters[0].sharing.last.me == voters[0].epoch


def test_what_is_said_of_an_instant_is_read_by_all(voters):
    """Its subject may be any text."""
    one, two = voters
    votes = [Vote("a", 5, one.epoch, "up"), Vote('b"\\{,', 5, one.epoch, "日本"), Vote("a", 6, one.epoch, "down")]
    one.voting.cast(votes)
    two.voting.cast([Vote("a", 5, two.epoch, "down")])
    assert one.voting.votes([("a", 5), ('b"\\{,', 5)]) == [votes[0], Vote("a", 5, two.epoch, "down"), votes[1]]
    assert two.voting.votes([("a", 7), ("c", 5)]) == []


def test_the_first_word_counts(voters):
    """Whoever votes twice on one instant, after an answer that was lost, has said what it said first."""
    one = voters[0]
    one.voting.cast([Vote("a", 5, one.epoch, "up")])
    one.voting.cast([Vote("a", 5, one.epoch, "down"), Vote("a", 6, one.epoch, "down")])
    assert [vote.said for vote in one.voting.votes([("a", 5), ("a", 6)])] == ["up", "down"]


def test_votes_of_long_ago_are_forgotten(voters):
    """Nobody will ask for them again."""
    one = voters[0]
    one.voting.cast([Vote("a", due, one.epoch, "up") for due in range(5)])
    assert one.voting.forget(3) == 3
    assert [vote.due_us for vote in one.voting.votes([("a", due) for due in range(5)])] == [3, 4]


def test_the_dead_do_not_vote(voters, postgres_schema):
    """Who has been buried may still believe that it is there."""
    one, two = voters
    with two.transaction() as connection:
        connection.execute(f"DELETE FROM {postgres_schema}.agent WHERE epoch = {one.epoch}")
    with suppress(StoreError):  # its connection is refused: it has been told
        one.voting.cast([Vote("a", 5, one.epoch, "down")])
    assert two.voting.votes([("a", 5)]) == []


def test_what_an_agent_found_before_it_was_buried_is_no_vote_of_its_next_incarnation(voters, postgres_schema):
    """That one has found nothing yet, and would count twice."""
    one, two = voters
    found = Vote("a", 5, one.epoch, "down")
    with two.transaction() as connection:
        connection.execute(f"DELETE FROM {postgres_schema}.agent WHERE epoch = {one.epoch}")
    one.close()
    one.open(0, lambda: None)
    one.voting.cast([found, Vote("b", 5, one.epoch, "up")])
    assert [vote.subject for vote in two.voting.votes([("a", 5), ("b", 5)])] == ["b"]


def test_who_has_a_store_for_itself_has_nobody_to_vote_with(postgres_server, postgres_schema):
    """It has no verbs for it, as it has none for sharing."""
    assert PostgresStore(postgres_server.dsn, schema=postgres_schema).voting is None


def test_the_last_result_of_each_of_many_jobs_is_read_at_once(voters):
    """Whoever has them. What has no result says nothing, and a job of which there is none is left out."""
    one, two = voters

    def tick(job, due_us, result):
        return StoredTick(job, due_us, 1, due_us, "succeeded", due_us, due_us, result=result)

    one.commit(Batch(ended=[tick("a", 5, "1"), tick("a", 7, "2"), tick("a", 9, None), tick('b"\\{,', 5, "3")]))
    found = two.voting.latest(["a", 'b"\\{,', "c"])
    assert {(each.job_id, each.due_us, each.result) for each in found} == {("a", 7, "2"), ('b"\\{,', 5, "3")}


@pytest.mark.parametrize("step", ["dials", "is connected"])
def test_what_reads_while_the_store_is_closed_leaves_no_connection_behind(voters, monkeypatch, step):
    """Nobody may wait for it any more. Its connection was left to the garbage collector."""
    one, found = voters[0], []
    one._listener.close()
    one.beside._connection.close()
    where, name = (postgres, "connect") if step == "dials" else (one.beside, "_connect")
    connect = getattr(where, name)

    def connect_late(*args):
        found.append(connect(*args))
        Thread(target=one.close).start()
        wait_until(lambda: one._opened is None)
        return found[0]

    monkeypatch.setattr(where, name, connect_late)
    with suppress(StoreError):
        one.voting.latest(["a"])
    assert [connection.closed for connection in found] == [True]
