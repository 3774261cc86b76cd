"""Sharing a store: each shard has one owner, leases end, the dead are buried, and nothing of theirs is written then."""

from contextlib import ExitStack, contextmanager
from threading import Semaphore

import pytest
from anyio import create_task_group, fail_after
from anyio.to_thread import run_sync
from psycopg import connect

from debian_servers import PgBouncer
from kit import PATIENCE, until
from scheduler.stores import (
    SHARDS,
    Assignment,
    Batch,
    StoredJob,
    StoredState,
    StoredTick,
    StoreTakenOver,
    StoreUnavailable,
    StoreUnusable,
    rightful_owners,
    shard_of,
)
from scheduler.stores.postgres import PostgresStore

ALL = list(range(SHARDS))
IDS = ["a", "b", "ünicode", "x" * 300, "日本"]


def job(id):
    return StoredJob(id, "task", "@every 1m")


def put(store, *ids):
    store.commit(Batch(jobs={id: job(id) for id in ids}, states={id: StoredState(id, next_us=5) for id in ids}))


def test_the_tables_have_the_same_shards_as_we(agent, postgres_server, postgres_schema):
    """A job that somebody writes by hand has an owner at once."""
    put(agent(), *IDS)
    with connect(postgres_server.dsn) as hand:
        found = dict(hand.execute(f"SELECT id, shard FROM {postgres_schema}.job").fetchall())
    assert found == {id: shard_of(id) for id in IDS}


def test_a_shard_has_one_owner(agent):
    """Who comes first has it."""
    one, two = agent(), agent()
    assert one.sharing.claim(ALL[:600]) == ALL[:600]
    assert two.sharing.claim(ALL[500:]) == ALL[600:]
    view = two.sharing.renew()
    assert view.owners == (one.epoch,) * 600 + (two.epoch,) * 424
    assert [peer.epoch for peer in view.peers] == [one.epoch, two.epoch]
    assert all(0 < peer.left <= 3 for peer in view.peers)


def test_an_owner_gives_a_shard_to_another(agent):
    """To one that has gone it gives it to nobody."""
    one, two, three = agent(), agent(), agent()
    one.sharing.claim([1, 2, 3])
    one.sharing.hand_on([1], two.epoch)
    three.sharing.leave()
    one.sharing.hand_on([2], three.epoch)
    two.sharing.hand_on([3], two.epoch)  # which is not its own
    assert one.sharing.renew().owners[1:4] == (two.epoch, 0, one.epoch)


def test_who_is_given_a_shard_is_told_and_nobody_else(shared_store):
    """All looked around at each portion, of which a join has dozens. All are told of one that nobody has."""
    with ExitStack() as stack:
        stores, hints = [shared_store() for _ in range(3)], [Semaphore(0) for _ in range(3)]
        for store, hint in zip(stores, hints, strict=True):
            stack.callback(store.close)
            store.open(0, hint.release)
            assert hint.acquire(timeout=PATIENCE)  # it listens
        one, two, _ = stores
        one.sharing.claim([1, 2])
        one.sharing.hand_on([1], two.epoch)
        assert hints[1].acquire(timeout=PATIENCE)
        one.sharing.hand_on([2], 1_000_000)
        assert all(hint.acquire(timeout=PATIENCE) for hint in hints)
        assert not any(hint.acquire(blocking=False) for hint in hints)


def test_who_lives_is_not_buried(agent, end_lease):
    """The store's clock says who does."""
    one, two = agent(), agent()
    one.sharing.claim(ALL)
    assert two.sharing.bury([one.epoch]) == []
    two.sharing.renew()
    end_lease(one)
    assert two.sharing.bury([one.epoch]) == [one.epoch]
    assert two.sharing.last.owners == (two.epoch,) * SHARDS
    assert two.sharing.renew().owners == (two.epoch,) * SHARDS
    assert two.sharing.bury([one.epoch]) == []


def test_the_shards_of_who_goes_are_the_others_at_once(agent, end_lease):
    """Each has its rightful part in the commit of the burial, or of the good-bye, and nobody has to claim it."""
    one, two, three = agent(), agent(), agent()
    one.sharing.claim(ALL)
    end_lease(one)
    two.sharing.renew()
    two.sharing.bury([one.epoch])
    rightful = tuple(rightful_owners([two.epoch, three.epoch]))
    assert three.sharing.renew().owners == two.sharing.last.owners == rightful
    two.sharing.leave()
    assert three.sharing.renew().owners == (three.epoch,) * SHARDS


def test_who_is_unsettled_has_no_right_to_what_others_could_have(agent):
    """Until it has read the store. Where all are, or nobody else has the labels, it counts at once."""
    one, two = agent(), agent(region="eu")
    two.commit(Batch(jobs={"a": job("a")._replace(options='{"where": "region=eu"}')}))
    labelled = shard_of("a", "region=eu")

    def owners():
        rightful = Assignment(one.sharing.renew())
        return {rightful[shard] for shard in ALL}, rightful[labelled]

    both, fits = owners()
    assert both == {one.epoch, two.epoch}
    assert fits == two.epoch
    one.sharing.settle(stays=True)
    assert owners() == ({one.epoch}, two.epoch)
    assert Assignment(one.sharing.last, gone=[one.epoch])[0] == two.epoch
    two.sharing.settle(stays=True)
    assert owners() == (both, two.epoch)
    one.sharing.settle(stays=False)
    assert owners() == ({two.epoch}, two.epoch)


def test_an_older_agent_would_give_back_what_it_gets_of_who_is_unsettled(agent, postgres_server, postgres_schema):
    """While it is there, it is given nothing by who is about to leave."""
    one, two = agent(), agent()
    assert one.sharing.renew().heeds_unsettled
    with connect(postgres_server.dsn, autocommit=True) as hand:
        hand.execute(f"UPDATE {postgres_schema}.lease SET format = 1 WHERE epoch = {two.epoch}")
    assert not one.sharing.renew().heeds_unsettled


def test_who_only_looks_holds_no_lease(agent, end_lease):
    """It sees what others do, costs no write, and is told if it has been buried."""
    one, two = agent(), agent()
    one.sharing.renew()
    end_lease(one)
    assert one.sharing.renew(only_look=True).peers[0].epoch == one.epoch
    assert two.sharing.bury([one.epoch]) == [one.epoch]
    with pytest.raises(StoreTakenOver):
        one.sharing.renew(only_look=True)


def test_a_renewal_says_whether_others_have_changed_anything(agent):
    """Until that has been asked for. What we write ourselves is no news."""
    one, two = agent(), agent()
    put(one, "a")
    assert not one.sharing.renew().is_news
    assert two.sharing.renew().is_news
    assert two.sharing.renew().is_news
    assert set(two.changes().jobs) == {"a"}
    assert not two.sharing.renew().is_news
    put(one, "b")
    assert set(two.changes().jobs) == {"b"}


def test_nothing_of_the_buried_is_written(agent, end_lease):
    """Neither a mark nor an end; and it is told so when it looks around."""
    one, two = agent(), agent()
    put(one, "a")
    end_lease(one)
    two.sharing.bury([one.epoch])
    with pytest.raises(StoreTakenOver):
        one.commit(Batch(marks=[StoredTick("a", 5, 1, 1 << 32, "running")]))
    with pytest.raises(StoreTakenOver):
        one.sharing.renew()
    assert two.history("a") == []


def test_who_takes_a_shard_reads_its_jobs_and_what_was_cut_off(agent):
    """The others' jobs and ticks are not among them. A job that owes a tick is due at once, and comes first."""
    one, two = agent(), agent()
    put(one, *IDS)
    fence = one.epoch << 32
    ticks = [StoredTick(id, 5, 1, fence + number, "running") for number, id in enumerate(IDS)]
    one.commit(Batch(marks=ticks))
    mine = [shard_of("a"), shard_of("b")]
    found = [row for chunk in two.sharing.load(mine) for row in chunk]
    assert {row.id for row, _ in found} == {"a", "b"}
    assert all(state.next_us == 5 for _, state in found)
    assert {tick.job_id for tick in two.sharing.running(mine)} == {"a", "b"}
    one.commit(Batch(ended=[ticks[0]._replace(outcome="crashed", owed=True)]))
    assert [tick.job_id for tick in two.sharing.owed(mine)] == ["a"]
    one.commit(Batch(states={"a": StoredState("a", next_us=9), "b": StoredState("b", next_us=11, retry_at_us=8)}))
    for until_us, most, found in ((None, 10, ["a", "b"]), (8, 10, ["a", "b"]), (7, 10, ["a"]), (8, 1, ["a"])):
        taken = two.sharing.take(mine, most, until_us)
        assert [row.id for row, _ in taken.jobs] == found
        assert len(taken.running) == len(taken.owed) == 1


@pytest.mark.parametrize("end", ["stopped", "killed", "behind a pooler"])
def test_who_had_the_store_for_itself_and_has_gone_keeps_nobody_from_sharing_it(
    agent, postgres_server, postgres_schema, end
):
    """Its row stays, and kept everybody from it for good. Should it live after all, it has lost the store."""
    pooler = PgBouncer(postgres_server) if end == "behind a pooler" else None
    dsn = postgres_server.dsn if pooler is None else pooler.dsn
    alone = PostgresStore(dsn, schema=postgres_schema)
    try:
        alone.open(0, lambda: None)
        if end == "stopped":
            alone.close()
        elif end == "killed":
            with connect(postgres_server.dsn, autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                    " AND backend_type = 'client backend'"
                )
        assert agent().sharing.renew().peers
        if end == "killed":
            with pytest.raises(StoreUnavailable):  # its session has ended
                alone.commit(Batch(states={"a": StoredState("a")}))
        if end != "stopped":
            with pytest.raises(StoreTakenOver):
                alone.commit(Batch(states={"a": StoredState("a")}))
    finally:
        alone.close()
        if pooler is not None:
            pooler.close()


def test_who_has_the_store_for_itself_is_seen_again_after_a_restart_of_the_server(agent, postgres_server):
    """Its lock went with the session, and comes with the next."""
    alone = agent(shared=False)
    postgres_server.restart("immediate")
    with pytest.raises(StoreUnavailable):
        alone.commit(Batch(states={"a": StoredState("a")}))
    alone.commit(Batch(states={"a": StoredState("a")}))
    with pytest.raises(StoreUnusable, match="for itself"):
        agent()


@pytest.mark.parametrize("shared", [True, False])
def test_who_shares_and_who_does_not_are_kept_apart(agent, shared):
    """While they live, each is told whom it would disturb."""
    first = agent(shared=shared)
    with pytest.raises(StoreUnusable, match=f"process .*shared={shared}"):
        agent(shared=not shared)
    first.commit(Batch(jobs={"a": job("a")}))


async def test_the_end_of_a_session_is_heard(agent):
    """Its lease would go on for seconds; who only waits in vain hears nothing, and buries nobody."""
    one, two = agent(), agent()
    one.sharing.renew()
    assert [peer.is_heard for peer in two.sharing.renew().peers] == [True, True]
    assert two.sharing.bury([one.epoch], [one.epoch]) == []
    heard, dies = [], one.epoch
    with fail_after(PATIENCE):
        async with create_task_group() as group:

            async def hear():
                heard.append(await run_sync(two.sharing.hear, dies, lambda: False))

            group.start_soon(hear)
            one.close()
    assert heard == [True]
    gone = two.sharing.renew().peers[0]
    assert gone.left > 0
    assert two.sharing.bury([gone.epoch], [gone.epoch]) == [gone.epoch]


async def test_who_waits_for_a_session_holds_no_old_snapshot(agent, postgres_server, postgres_schema):
    """Else no row of any table that has been replaced since would be cleaned up; its one statement goes on for long."""
    one, two = agent(), agent()
    one.sharing.renew()
    waiting = (
        "SELECT query_start, backend_xmin::text::bigint FROM pg_stat_activity"
        f" WHERE wait_event = 'advisory' AND strpos(query, 'timerqueue {postgres_schema}') > 0"
    )
    with connect(postgres_server.dsn, autocommit=True) as hand:
        async with create_task_group() as group:
            group.start_soon(run_sync, two.sharing.hear, one.epoch, lambda: False)
            await until(lambda: hand.execute(waiting).fetchone())
            began, _ = hand.execute(waiting).fetchone()
            newest = int(hand.execute("SELECT pg_current_xact_id()").fetchone()[0])
            await until(lambda: (hand.execute(waiting).fetchone() or (began, 0))[1] > newest)
            assert hand.execute(waiting).fetchone()[0] == began
            one.close()


async def test_who_waits_for_a_session_does_so_whatever_its_role_says_of_timeouts(agent, shared_store, postgres_server):
    """Else it would hear nothing for two seconds after each of these."""
    one, two = agent(), agent()
    one.sharing.renew()
    with connect(postgres_server.dsn, autocommit=True) as hand:
        hand.execute("ALTER ROLE postgres SET statement_timeout = '500ms'")
        try:
            async with create_task_group() as group:
                group.start_soon(run_sync, two.sharing.hear, one.epoch, lambda: False)
                waits = "SELECT now() - query_start > '1s' FROM pg_stat_activity WHERE wait_event = 'advisory'"
                await until(lambda: (hand.execute(waits).fetchone() or [False])[0])
                one.close()
        finally:
            hand.execute("ALTER ROLE postgres RESET statement_timeout")


@pytest.fixture
def last_session(postgres_server, postgres_schema):
    """End all sessions at the server, but for what is left there of that of one agent: a lock."""

    @contextmanager
    def last_session(store):
        with connect(postgres_server.dsn, autocommit=True) as last:
            last.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
            lock = f"(hashtext('timerqueue {postgres_schema}'), {store.epoch})"
            last.execute(f"SELECT pg_advisory_lock{lock}")
            yield
            last.execute(f"SELECT pg_advisory_unlock{lock}")

    return last_session


def test_a_session_is_shown_once_the_server_has_seen_the_end_of_the_last_one(agent, last_session):
    """A connection that was given up may have work to end there. Until then a death is known by the lease alone."""
    one = agent()
    assert one.sharing.renew().peers[0].is_heard
    with last_session(one):
        with pytest.raises(StoreUnavailable):
            one.sharing.renew()
        assert not one.sharing.renew().peers[0].is_heard
    assert one.sharing.renew().peers[0].is_heard


def test_who_has_the_store_for_itself_is_seen_once_the_server_has_seen_the_end_of_its_last_session(agent, last_session):
    """Else nobody would know that it lives, and who shares the store would take it from it."""
    alone, batch = agent(shared=False), Batch(states={"a": StoredState("a")})
    with last_session(alone):
        with pytest.raises(StoreUnavailable):
            alone.commit(batch)
        alone.commit(batch)
    alone.commit(batch)
    with pytest.raises(StoreUnusable, match="for itself"):
        agent()


def test_who_waits_for_a_session_can_be_called_off(agent):
    """As when another agent has become its neighbour."""
    one, two = agent(), agent()
    one.sharing.renew()
    with pytest.raises(StoreUnavailable):
        two.sharing.hear(one.epoch, lambda: True)


def test_behind_a_pooler_no_session_is_heard(postgres_server, postgres_schema):
    """It is no session of the agent's, and the lock would stay with somebody else's."""
    pooler = PgBouncer(postgres_server)
    store = PostgresStore(pooler.dsn, schema=postgres_schema, shared=True)
    try:
        store.open(0, lambda: None)
        assert [peer.is_heard for peer in store.sharing.renew().peers] == [False]
        with pytest.raises(StoreUnusable, match="pooler"):
            store.sharing.hear(store.epoch, lambda: False)
    finally:
        store.close()
        pooler.close()
