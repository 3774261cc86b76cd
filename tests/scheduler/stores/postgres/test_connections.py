"""How many connections a node has to its server at once, and how those share one that do not write."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import anyio
import pytest
from psycopg import sql

from kit import PATIENCE, until, wait_until
from proxy import Proxy
from schedule import Every
from scheduler import Scheduler, fleet
from scheduler.stores import StoreBusy, StoreLocked, StoreUnavailable, StoreUnreachable, shard_of
from scheduler.stores._postgres.connection import Silent, StoreConnection, connect
from scheduler.stores._postgres.spare import Spare
from scheduler.stores.postgres import PostgresStore
from server_outages import altered

MOST = 4


@pytest.fixture
def most(monkeypatch):
    """Note how many connections of this process are open when one more has been made, by the store's name."""
    counts, opened, made = {}, [], StoreConnection.connect

    def counted(dsn, **options):
        connection = made(dsn, **options)
        opened.append((connection.info.get_parameters().get("application_name"), connection))
        for name, _ in opened:
            now = sum(other == name and not each.closed for other, each in opened)
            counts[name] = max(counts.get(name, 0), now)
        return connection

    monkeypatch.setattr(StoreConnection, "connect", counted)
    return counts


def store_of(postgres_server, schema, name):
    return PostgresStore(f"{postgres_server.dsn} application_name='{name}'", schema=schema, shared=True, name=name)


def scheduler_of(store):
    s = Scheduler(store=store, poll="50ms", limits={"http": fleet(3)})

    async def work():
        await anyio.sleep(0.001)

    s.register("work", work)
    return s


async def test_a_node_has_at_most_four_connections(postgres_server, postgres_schema, most):
    """It had up to nine: for commits, lease, neighbour, shards, units, votes, history, hints and rows."""
    one, two = (store_of(postgres_server, postgres_schema, name) for name in ("one", "two"))
    async with scheduler_of(one) as s:
        for number in range(40):
            s.add("work", Every("100ms"), id=f"job {number}", needs="http")
        async with scheduler_of(two) as other:
            await until(lambda: len({job.agent for job in s.jobs()}) == 2)
            for _ in range(3):
                await s.history("job 1")
                await anyio.to_thread.run_sync(one.voting.latest, ["job 1"])
                await anyio.to_thread.run_sync(one.lending.loans)
                await anyio.to_thread.run_sync(one.fleet)
                await anyio.to_thread.run_sync(lambda: list(one.sharing.load_others([])))
            await until(lambda: (other.statistics().fleet.me, len(s.statistics().fleet.agents)) == ("two", 2))
        await until(lambda: {job.agent for job in s.jobs()} == {"one"})
    assert {name: count for name, count in most.items() if name in {"one", "two"} and count > MOST} == {}
    assert most["one"] >= MOST - 1


def test_the_number_of_connections_is_told_to_whoever_looks(agent):
    """With the lease of each."""
    one, two = agent(), agent(shared=True)
    for store in (one, two):
        store.sharing.renew()
        store.sharing.settle(stays=True)
        store.sharing.renew()
    told = [row.connections for row in one.fleet().agents]
    assert told == [one.connections, two.connections]
    assert all(count in range(2, MOST + 1) for count in told)


@pytest.mark.parametrize("reads", ["SELECT pg_sleep(60)", "SELECT * FROM generate_series(1, 40000000)"])
def test_a_long_reading_gives_way_to_whoever_waits(agent, by_hand, reads):
    """And says so. Nobody else is held up by it for longer than half a second, and the server goes on for nobody."""
    store, begun = agent(), threading.Event()
    found = []

    def read_long():
        try:
            with store.beside.transaction(is_reader=True) as connection:
                begun.set()
                connection.execute(reads)
        except StoreUnavailable as error:
            found.append(str(error))

    reader = threading.Thread(target=read_long)
    reader.start()
    assert begun.wait(PATIENCE)
    store.sharing.settle(stays=True)
    reader.join()
    assert len(found) == 1
    assert "others needed the connection" in found[0]
    still = "SELECT count(*) FROM pg_stat_activity WHERE query = %s AND state = 'active'"
    wait_until(lambda: by_hand(still.replace("{}", ""), reads).fetchone() == (0,))


def test_many_who_read_keep_nobody_waiting_for_more_than_one_of_them(postgres_server, postgres_schema):
    """Each claim came to the end of the line, and gave up there: far from the server ten readers were enough."""
    with (
        Proxy(postgres_server.folder / ".s.PGSQL.5432", distance=0.02) as proxy,
        closing(PostgresStore(proxy.dsn, schema=postgres_schema, shared=True)) as store,
    ):
        store.open(0, lambda: None)
        store.sharing.renew()
        store.sharing.settle(stays=True)
        readers = [threading.Thread(target=store.history) for _ in range(30)]
        for reader in readers:
            reader.start()
        claimed = [store.sharing.claim([number]) for number in (1, 2)]
        were_reading = any(reader.is_alive() for reader in readers)
        for reader in readers:
            reader.join()
    assert (claimed, were_reading) == ([[1], [2]], True)


def test_who_renews_the_lease_waits_for_nobody(agent):
    """Shards are claimed with the next turn, and the dead buried: the lease is worth more."""
    store = agent()
    store.sharing.renew()
    store.sharing.settle(stays=True)
    with store.beside.lend():
        for ask in (lambda: store.sharing.claim([1, 2]), lambda: store.sharing.bury([store.epoch])):
            with pytest.raises(StoreBusy, match=r"others have been asking it for 0\.3 s"):
                ask()
    assert store.sharing.claim([1, 2]) == [1, 2]


def test_who_renews_the_lease_makes_no_connection(agent, monkeypatch):
    """That may take five seconds. Somebody else makes it, and says why if there is none."""
    store, connect, goes_on = agent(), PostgresStore.connect, threading.Event()
    store.sharing.renew()
    store.sharing.settle(stays=True)

    def slow(self, **options):
        assert goes_on.wait(PATIENCE)
        return connect(self, **options)

    monkeypatch.setattr(PostgresStore, "connect", slow)
    store.beside._connection.close()
    with pytest.raises(StoreBusy, match="a connection is still being made"):
        store.sharing.claim([1])
    goes_on.set()
    wait_until(lambda: not store.beside._connection.closed)
    assert store.sharing.claim([1]) == [1]


def test_who_renews_the_lease_is_told_of_a_lock_before_it_stops_waiting(agent, postgres_server, postgres_schema):
    """It took the server for out of reach, and after some seconds of that a healthy node resigned."""
    store, other = agent(), agent()
    store.sharing.renew()
    store.sharing.settle(stays=True)
    with altered(postgres_server, postgres_schema):
        for ask in (lambda: store.sharing.claim([1]), lambda: store.sharing.bury([other.epoch], [other.epoch])):
            wait_until(lambda: not store.beside._connection.closed)
            with pytest.raises(StoreLocked):
                ask()


def test_a_shard_that_is_given_away_waits_for_no_lock_for_longer_than_its_node(
    agent, postgres_server, postgres_schema, by_hand
):
    """The node gave up after seven seconds, and the server gave the shard minutes later, when it was another's."""
    store, other = agent(), agent()
    store.sharing.renew()
    store.sharing.settle(stays=True)
    assert store.sharing.claim([1]) == [1]
    with altered(postgres_server, postgres_schema), pytest.raises(StoreLocked):
        store.sharing.hand_on([1], other.epoch)
    assert by_hand("SELECT owner FROM {}.shard WHERE number = 1").fetchone() == (store.epoch,)


def test_who_waits_behind_one_who_waits_for_a_lock_is_busy_and_not_cut_off(agent, by_hand):
    """The server says so within two seconds. Until then it is silent, and would answer others."""
    store, begun, found = agent(), threading.Event(), []

    def ask():
        try:
            with store.beside.transaction() as connection:
                begun.set()
                connection.execute(sql.SQL("SELECT FROM {}.job").format(sql.Identifier(store._schema)))
        except StoreLocked as error:
            found.append(error)

    with by_hand("SELECT 1").connection.transaction():
        by_hand("LOCK TABLE {}.job")
        asking = threading.Thread(target=ask)
        asking.start()
        assert begun.wait(PATIENCE)
        wait_until(lambda: store.beside._connection.silence > 12)
        with pytest.raises(StoreBusy):
            store.sharing.claim([1])
        asking.join()
    assert len(found) == 1


def test_who_renews_the_lease_makes_no_connection_in_place_of_one_that_is_closed_as_it_waits(agent):
    """Any error of whoever had it closes it. The lease ended while its thread connected."""
    store, found = agent(), []
    store.sharing.renew()
    store.sharing.settle(stays=True)
    store._listener.close()  # nobody else connects

    def claim():
        try:
            store.sharing.claim([1])
        except StoreBusy as error:
            found.append(str(error))

    claiming = threading.Thread(target=claim)
    with store.beside.lend() as connection:
        claiming.start()
        wait_until(lambda: store.beside._waiting)
        connection.close()
    claiming.join()
    assert len(found) == 1
    assert "a connection must be made first" in found[0]


def test_who_waits_behind_a_server_that_does_not_answer_has_not_reached_it(agent):
    """A node may be cut off in this way, and is to find out."""
    store, begun = agent(), threading.Event()

    def ask():
        with store.beside.transaction() as connection:
            begun.set()
            connection.execute("SELECT pg_sleep(4)")

    asking = threading.Thread(target=ask)
    asking.start()
    assert begun.wait(PATIENCE)
    wait_until(lambda: store.beside._connection.silence > 25)
    with pytest.raises(StoreUnreachable, match="it has not answered others of us"):
        store.sharing.claim([1])
    asking.join()


def test_jobs_on_a_table_that_is_locked_are_locked_and_not_out_of_reach(agent, by_hand):
    """Their node is not cut off for that, and nobody else could read them."""
    store = agent()
    with by_hand("SELECT 1").connection.transaction():
        by_hand("LOCK TABLE {}.job")
        with pytest.raises(StoreLocked):
            list(store.sharing.load([1]))


def test_hints_are_heard_over_any_descriptor(agent, by_hand, monkeypatch):
    """A server of many checks has more than 1,023 of them, and no more are known to `select`."""
    store, hints, connect = agent(), threading.Semaphore(0), PostgresStore.connect
    wait_until(lambda: store.beside._connection is not None)
    with ExitStack() as many, monkeypatch.context() as until_then:
        for _ in range(1_100):
            many.enter_context(open("/dev/null"))  # noqa: PTH123 - a descriptor is all that is wanted

        def high(self, **options):
            many.enter_context(open("/dev/null"))  # noqa: PTH123 - it has the number that was free
            return connect(self, **options)

        until_then.setattr(PostgresStore, "connect", high)
        store.beside._connection.close()
        store.beside.ask((sql.SQL("SELECT 1"), []))
        assert store.beside._connection.fileno() > 1_023
        store._listener._hint = hints.release
        by_hand("INSERT INTO {}.pause (scope) VALUES ('tag:x')")
        assert hints.acquire(timeout=PATIENCE)


def test_a_hint_that_comes_with_an_answer_is_given(agent, by_hand):
    """Whoever asks over the connection takes in what is said meanwhile."""
    hints = threading.Semaphore(0)
    store = agent()
    store._listener._hint = hints.release
    with store.beside.lend() as connection:
        by_hand("INSERT INTO {}.pause (scope) VALUES ('tag:x')")
        wait_until(lambda: connection.execute("SELECT 1") and hints.acquire(blocking=False))


def test_nobody_hears_the_neighbour_while_the_connection_is_needed(agent):
    """There are four, whoever has the fourth."""
    store, other = agent(), agent()
    for each in (store, other):
        each.sharing.renew()
    heard = []

    def hear():
        try:
            heard.append(store.sharing.hear(other.epoch, lambda: False))
        except StoreUnavailable as error:
            heard.append(str(error))

    hearing = threading.Thread(target=hear)
    hearing.start()
    wait_until(lambda: store.connections == MOST)
    with store.spare.lend():
        hearing.join()
        assert "needed for something else" in heard[0]
        assert store.connections == MOST
        with pytest.raises(StoreUnavailable, match="needed for something else"):
            store.sharing.hear(other.epoch, lambda: False)
    assert store.connections == MOST - 1


def test_a_reader_of_all_jobs_that_never_goes_on_keeps_no_connection_of_a_store_that_is_closed(
    postgres_server, postgres_schema, by_hand
):
    """Whoever has the iterator, and rests. It kept a session, and kept a store that was opened again from reading."""
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema)
    store.open(0, lambda: None)
    by_hand("INSERT INTO {}.job (id, task, schedule) SELECT n, 't', '@every 1h' FROM generate_series(0, 2499) n")
    rests = store.load()
    next(rests)
    (connection,) = [each for each in store._made._connections if each is store.spare._lent]
    store.close()
    assert connection.closed
    with closing(store):
        store.open(0, lambda: None)
        assert sum(len(page) for page in store.load()) == 2_500
        with pytest.raises(StoreUnavailable):
            next(rests)
        assert sum(len(page) for page in store.load()) == 2_500


def test_jobs_are_read_page_by_page_and_no_transaction_lasts_for_all(agent, by_hand):
    """Three nodes that read all jobs at once, each with a cursor, kept all sessions of a pooler with three."""
    store, mine = agent(), [shard_of(str(number)) for number in range(2_500)]
    by_hand("INSERT INTO {}.job (id, task, schedule) SELECT n, 't', '@every 1h' FROM generate_series(0, 2499) n")
    open_ones = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY (%s) AND state LIKE 'idle in transaction%%'"
    pages = []
    for page in store.sharing.load(mine):
        pages.append(len(page))
        pids = [connection.info.backend_pid for connection in store._made._connections]
        assert by_hand(open_ones, pids).fetchone() == (0,)
        by_hand("UPDATE {}.job SET name = 'later'")
    assert pages == [1_000, 1_000, 500]
    assert {row.name for row, _ in page} == {"later"}
    assert sum(map(len, store.sharing.load_others(mine[:1]))) == 2_500 - sum(each == mine[0] for each in mine)


class ToldConnection:
    """A connection that calls `told` when it is told why it is not wanted."""

    def __init__(self, told):
        self.lock = threading.Lock()
        self.closed = False
        self._told = told

    @property
    def why_unwanted(self):
        return None

    @why_unwanted.setter
    def why_unwanted(self, _):
        self._told()

    def close(self):
        self.closed = True


def test_a_store_that_closes_while_hearing_begins_does_not_disturb_it():
    """The reader goes at the last moment, and the hearing thread takes its place before the store has closed."""
    moments = []
    spare = Spare(lambda: ToldConnection(lambda: moments.pop(0)() if moments else None))
    lending, hearing = spare.lend(), spare.hear(lambda _: None, lambda: False)
    lending.__enter__()
    moments += [lambda: (lending.__exit__(None, None, None), hearing.__enter__())]
    spare.end()
    hearing.__exit__(None, None, None)
    with spare.lend() as connection:
        assert not connection.closed


def test_a_wait_ends_when_another_thread_closes_the_connection(postgres_server):
    """A store that is closed while its lease waits for the server does not wait along."""
    connection = connect(postgres_server.dsn)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(connection.execute, "SELECT pg_sleep(3600)")
        while not connection.lock.locked():
            time.sleep(0.001)
        connection.close()
        with pytest.raises(Silent, match="it is being closed"):
            asked.result(PATIENCE)
    assert connection.closed


CLOSED_UNDER_THEIR_USERS = """
import sys, threading
from scheduler.stores._postgres.connection import connect, psycopg

def use(connection, begun):
    try:
        while True:
            connection.execute("SELECT 1", prepare=False)
            begun.set()
    except psycopg.Error:
        pass

for _ in range(300):
    connection, begun = connect(sys.argv[1]), threading.Event()
    thread = threading.Thread(target=use, args=(connection, begun))
    thread.start()
    begun.wait()
    connection.close()
    thread.join()
"""


def test_no_process_crashes_when_a_thread_closes_what_another_one_uses(postgres_server):
    """The connection was freed while libpq sent a statement over it: one of a thousand closings killed the process."""
    ended = subprocess.run(
        [sys.executable, "-c", CLOSED_UNDER_THEIR_USERS, postgres_server.dsn],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
