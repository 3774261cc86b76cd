"""A standby takes the place of the server, and does not know of the last transactions: one of each kind of store lives
through that, and the tests look at what came of it.
"""

from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from psycopg import connect

from kit import no_hint
from postgres_pair import Pair
from scheduler.stores import Ask, Batch, StoreTakenOver, StoreUnavailable, Wish
from scheduler.stores.postgres import PostgresStore


@pytest.fixture(scope="module")
def story():
    """What has become of some stores, each in a schema of its own."""
    with Pair() as pair:

        def store(schema, **options):
            found = PostgresStore(pair.dsn, schema=schema, **options)
            found.open(0, no_hint)
            return found

        stays = store("joins", shared=True)
        behind, caught_up = store("behind"), store("caught_up", shared=True)
        pair.fall_behind()
        lost = store("joins", shared=True)
        lost.sharing.renew()
        put(pair.primary, "behind", "forgotten")
        pass_by(pair.primary, 1_000)
        told = [set(behind.changes().jobs), set(caught_up.changes().jobs)]
        assert told == [{"forgotten"}, set()]
        pair.fail_over()
        put(pair.standby, "behind", "new")
        put(pair.standby, "caught_up", "new")
        first = asked(behind.changes), asked(behind.changes)
        rows = [row.id for page in behind.load() for row, _ in page]
        pass_by(pair.standby, 2_000)
        yield SimpleNamespace(
            store=store,
            stays=stays,
            lost=lost,
            first=first,
            rows=rows,
            then=asked(behind.changes),
            is_news=asked(caught_up.sharing.renew).is_news,
            caught_up=asked(caught_up.changes),
        )
        behind.close()
        caught_up.close()


def put(server, schema, job_id):
    """Write a job by hand."""
    with connect(server.dsn, autocommit=True) as hand:
        hand.execute(f"INSERT INTO {schema}.job (id, task, schedule) VALUES (%s, 't', 's')", [job_id])


def borrow(store, size):
    """Borrow a unit of a limit that has so many. Returns how many are lent."""
    store.lending.declare({"http": size}, {})
    return store.lending.round({"http": Ask(size, 0, (Wish(1, 1),))})["http"].held


def sizes(server, schema):
    """Say what agents say of how many units the limits have."""
    with connect(server.dsn) as hand:
        return [units for (units,) in hand.execute(f"SELECT units FROM {schema}.fleet_limit")]


def pass_by(server, count):
    """Let transactions pass that have nothing to do with any store."""
    with connect(server.dsn, autocommit=True) as hand, hand.pipeline():
        for _ in range(count):
            hand.execute("SELECT pg_current_xact_id()")


def asked(call):
    """Call a store. Each connection that it had was to the other server."""
    for _ in range(5):
        try:
            return call()
        except StoreUnavailable as error:
            last = error
    raise last


def test_an_agent_whose_joining_was_lost_joins_again(story):
    """Whoever joins first gets the epoch that it had. Neither is taken for the other."""
    with pytest.raises(StoreTakenOver, match="lost its last changes"):
        asked(story.lost.changes)
    other, before = story.store("joins", shared=True), story.lost.epoch
    assert other.epoch == before
    for call in (story.lost.sharing.renew, lambda: story.lost.commit(Batch())):
        with pytest.raises(StoreTakenOver):
            asked(call)
    story.lost.open(0, no_hint)
    assert story.lost.epoch > before
    for store in (story.stays, story.lost, other):
        asked(store.sharing.renew)
        asked(lambda store=store: store.commit(Batch()))
        store.close()


def test_who_has_seen_what_the_standby_did_not_is_to_read_all_rows_anew(story):
    """The standby gives the numbers of these transactions again, and what is changed by them would count as seen."""
    assert [changes.is_behind for changes in story.first] == [True, True]
    assert story.rows == ["new"]
    assert not story.then


def test_what_is_changed_after_a_failover_is_seen_even_if_the_standby_counts_as_far_by_now(story):
    """That it has forgotten transactions does not show in its count any more. All that its log has is news, once."""
    assert story.is_news
    assert set(story.caught_up.jobs) == {"new"}


def test_what_the_standby_did_not_know_of_units_is_said_again():
    """Of one agent it knew that it had joined, and not that it borrows: no round of it was carried out any more. Of the
    other it knew an older size of a limit, and the others kept to that.
    """
    with Pair() as pair, ExitStack() as opened:
        lends, resized = (PostgresStore(pair.dsn, schema=name, shared=True) for name in ("lends", "resized"))
        for each in (lends, resized):
            each.open(0, no_hint)
            opened.callback(each.close)
        borrow(resized, 3)
        pair.fall_behind()
        borrow(lends, 2)
        borrow(resized, 2)
        pair.fail_over()
        held = [asked(lambda each=each: borrow(each, 2)) for each in (lends, resized)]
        assert (held, sizes(pair.standby, "lends"), sizes(pair.standby, "resized")) == ([1, 1], [2], [2])
