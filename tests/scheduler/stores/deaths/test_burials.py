"""Burials: of an agent whose lease has ended, beside its last commit, its renewal, and the same burial by others."""

import threading
from contextlib import suppress

import pytest
from psycopg import OperationalError, connect

from kit import wait_until
from scheduler.stores import SHARDS, Batch, StoredJob, StoreError

ALL = list(range(SHARDS))
JOB = StoredJob("a", "task", "@every 1m")

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'"
HOLD = "SELECT FROM {schema}.agent WHERE epoch = {epoch} FOR NO KEY UPDATE"

SLOW = """
SET search_path TO {schema};
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.6); RETURN OLD; END $$;
CREATE TRIGGER slow BEFORE DELETE ON lease FOR EACH ROW EXECUTE FUNCTION slow();
"""


def test_a_last_commit_that_hangs_holds_no_burial_up(agent, end_lease, postgres_server, postgres_schema):
    """The process has been stopped in the middle of it, say. What it had written is not there then."""
    one, two = agent(), agent()
    one.commit(Batch(jobs={"a": JOB}))
    with connect(postgres_server.dsn) as stopped:
        stopped.execute(HOLD.format(schema=postgres_schema, epoch=one.epoch))
        stopped.execute(f"DELETE FROM {postgres_schema}.job")
        end_lease(one)
        assert two.sharing.bury([one.epoch]) == [one.epoch]
        with pytest.raises(OperationalError):
            stopped.commit()
    assert [row.id for row, _ in next(two.sharing.load(ALL))] == ["a"]


def test_burials_of_one_agent_do_not_end_each_other(agent, end_lease, postgres_server, postgres_schema):
    """All who are left begin at the same moment. On a busy server each took the other for one that hangs, for good."""
    one, two, three = agent(), agent(), agent()
    with connect(postgres_server.dsn, autocommit=True) as hand:
        hand.execute(SLOW.format(schema=postgres_schema))
    end_lease(one)
    gone, troubles = [], []

    def bury(store):
        try:
            gone.extend(store.sharing.bury([one.epoch]))
        except StoreError as trouble:
            troubles.append(trouble)

    burials = [threading.Thread(target=bury, args=[store]) for store in (two, three)]
    for burial in burials:
        burial.start()
    for burial in burials:
        burial.join()
    assert (gone, troubles) == ([one.epoch], [])


def test_who_renews_its_lease_while_its_last_commit_is_waited_for_lives(
    agent, end_lease, postgres_server, postgres_schema
):
    """It would go on as if its lease held, and begin what others take for crashed by then."""
    one, two = agent(), agent()
    two.sharing.renew()
    buried = []
    with connect(postgres_server.dsn) as last, connect(postgres_server.dsn, autocommit=True) as hand:
        last.execute(HOLD.format(schema=postgres_schema, epoch=one.epoch))
        end_lease(one)
        burial = threading.Thread(target=lambda: buried.append(two.sharing.bury([one.epoch])))
        burial.start()
        wait_until(lambda: hand.execute(WAITING).fetchone()[0])
        one.sharing.renew()
        with suppress(OperationalError):  # it is ended soon, being one that is waited for
            last.commit()
        burial.join()
    assert buried == [[]]
    one.commit(Batch(jobs={"a": JOB}))
