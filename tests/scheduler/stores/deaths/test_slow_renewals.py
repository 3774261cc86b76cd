"""A renewal that takes long costs nobody its life: the session whose end the others would hear goes on."""

from contextlib import closing, suppress
from threading import Event, Thread

import pytest
from psycopg import connect

from kit import PATIENCE, wait_until
from proxy import Proxy
from scheduler.stores import StoreError, StoreUnavailable
from scheduler.stores.postgres import PostgresStore

RENEWAL = b"lease SET until"


@pytest.fixture
def proxy(postgres_server):
    with Proxy(postgres_server.folder / ".s.PGSQL.5432") as proxy:
        yield proxy


@pytest.fixture
def far(proxy, postgres_schema):
    """A node behind the proxy, whose session the others can hear."""
    with closing(PostgresStore(proxy.dsn, schema=postgres_schema, shared=True, name="far")) as store:
        store.open(0, lambda: None)
        store.sharing.renew()
        yield store


@pytest.fixture
def holder(far, postgres_server, postgres_schema):
    """Say which session holds the lock of that node, by the number of its process."""

    def holder():
        with connect(postgres_server.dsn) as hand:
            asked = (
                "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = hashtext(%s)::oid AND objid = %s"
            )
            return [pid for (pid,) in hand.execute(asked, [f"timerqueue {postgres_schema}", far.epoch])]

    return holder


def seen(store, far):
    """What another node sees of it: how much is left of its lease, and whether it can be heard."""
    (peer,) = (peer for peer in store.sharing.renew().peers if peer.epoch == far.epoch)
    return peer.left > 0, peer.is_heard


def test_a_renewal_that_is_not_answered_is_made_over_another_session_and_the_first_goes_on(agent, far, proxy, holder):
    """It was closed after 1.5 s, and a neighbour took its end for a death while the lease still stood."""
    near, before = agent(), holder()
    assert len(before) == 1
    proxy.hold(RENEWAL)
    with pytest.raises(StoreUnavailable, match=r"not answered for 1.5 s"):
        far.sharing.renew()
    assert holder() == before
    far.sharing.renew()
    assert (seen(near, far), holder()) == ((True, False), before)
    proxy.let_go()
    wait_until(lambda: far.sharing.renew() and seen(near, far) == (True, True))
    assert holder() == before


def test_a_session_that_breaks_while_it_is_set_aside_leaves_the_lock_to_the_other(agent, far, proxy, holder):
    """And is not waited for."""
    near, before = agent(), holder()
    proxy.hold(RENEWAL)
    with pytest.raises(StoreUnavailable, match=r"not answered for 1.5 s"):
        far.sharing.renew()
    proxy.reset()
    wait_until(lambda: far.sharing.renew() and seen(near, far) == (True, True))
    assert len(holder()) == 1
    assert holder() != before


def test_a_store_that_is_closed_while_its_lease_connects_keeps_no_session(far, monkeypatch):
    """It kept that one, and with it the lock by which the others hear that it lives."""
    session, connects, goes_on = far.sharing._session, Event(), Event()
    connect = session._connect

    def slow():
        connection = connect()
        connects.set()
        assert goes_on.wait(PATIENCE)
        return connection

    def renew():
        with suppress(StoreError):
            far.sharing.renew()

    monkeypatch.setattr(session, "_connect", slow)
    session._current.close()
    renewing = Thread(target=renew)
    renewing.start()
    assert connects.wait(PATIENCE)
    far.close()
    goes_on.set()
    renewing.join()
    assert far.connections == 0


def test_a_lock_on_the_table_of_leases_ends_no_session(far, holder, postgres_server, postgres_schema):
    """As each step of the schema takes it. The server is slow then, and not the way to it."""
    before = holder()
    with connect(postgres_server.dsn) as hand:
        hand.execute(f"LOCK TABLE {postgres_schema}.lease")
        with pytest.raises(StoreUnavailable, match=r"not answered for 1.5 s"):
            far.sharing.renew()
    wait_until(lambda: (renewal := renewed(far)) and renewal.peers[0].is_heard)
    assert holder() == before


def renewed(store):
    """Renew the lease. Nothing comes of it if the session gives way to one that was set aside and has answered."""
    with suppress(StoreUnavailable):
        return store.sharing.renew()
