"""A standby takes the place of the server, and does not know of the last transactions: one of each kind of store lives
through that, and the tests look at what came of it.
"""

from types import SimpleNamespace

import pytest

from kit import no_hint
from postgres_pair import Pair
from scheduler.stores import Batch, StoreTakenOver, StoreUnavailable
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
        pair.fall_behind()
        lost = store("joins", shared=True)
        lost.sharing.renew()
        pair.fail_over()
        yield SimpleNamespace(store=store, stays=stays, lost=lost)


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
