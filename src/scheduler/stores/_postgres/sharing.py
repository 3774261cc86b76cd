"""Sharing a store in PostgreSQL: leases by the server's clock, owners of shards, and who is buried.

Leases stand in a table of their own: a commit holds its agent's row, and one that takes long must cost no lease. They
are renewed over a connection of their own for the same reason, in one statement that also says who else is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from threading import Event, Lock, Thread
from typing import Final, Protocol

from .._rows import StoredTick
from .._sharing import LEASE, Peer, Rows, View
from .._store import StoreError, StoreTakenOver
from .connection import ONE_SNAPSHOT, Connection, one_row, sql, translated
from .statements import Statements
from .table import JOB, STATE, TICK, Row, loaded, number_array

HINT: Final = "fleet"

PATIENCE: Final = 15
"""Tenths of a second that the server may be silent for when a lease is renewed: half of what that is worth."""

STUCK: Final = 0.2
"""Seconds that a burial waits for the last commit of who is buried. One that takes longer will not come to its end: the
process has been stopped, or cut off, with its transaction open.
"""


class Place(Protocol):
    """The store that is shared."""

    @property
    def where(self) -> str:
        """The place in words for people."""

    @property
    def epoch(self) -> int:
        """Our epoch, since it was opened."""

    def connect(self) -> Connection:
        """Connect to it, and to no other that has been put in its place."""

    def transaction(self) -> AbstractContextManager[Connection]:
        """Open a transaction in which our commits are, too."""


class SharingStatements:
    """The statements of sharing, in one schema."""

    def __init__(self, statements: Statements) -> None:
        of = statements.of
        self.join = of(
            "INSERT INTO {schema}.lease (epoch, until, format) VALUES (%s, clock_timestamp() + %s * interval '1s', %s)"
        )
        self.others = of(
            "SELECT name FROM {schema}.agent JOIN {schema}.lease USING (epoch) WHERE until > clock_timestamp() LIMIT 1"
        )
        self.unshared = of(
            "SELECT name FROM {schema}.agent WHERE NOT EXISTS (SELECT FROM {schema}.lease WHERE lease.epoch ="
            " agent.epoch) LIMIT 1"
        )
        self.renew = of(
            "WITH renewed AS (UPDATE {schema}.lease SET until = clock_timestamp() + %s * interval '1s'"
            " WHERE epoch = %s RETURNING set_config('synchronous_commit',"
            " coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true))"
            " SELECT EXISTS (SELECT FROM renewed), floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint,"
            " (SELECT array_agg(coalesce(owner, 0) ORDER BY number) FROM {schema}.shard),"
            " (SELECT json_agg(json_build_array(epoch, name, extract(epoch FROM until - clock_timestamp()), format,"
            " opened_us, labels) ORDER BY epoch) FROM {schema}.agent JOIN {schema}.lease USING (epoch))"
        )
        self.bury = of(
            "DELETE FROM {schema}.agent USING {schema}.lease WHERE agent.epoch = ANY (%s::bigint[])"
            " AND lease.epoch = agent.epoch AND lease.until < clock_timestamp() RETURNING agent.epoch"
        )
        self.leave = of("DELETE FROM {schema}.agent WHERE epoch = %s")
        self.claim = of(
            "UPDATE {schema}.shard SET owner = %s WHERE number = ANY (%s::smallint[]) AND owner IS NULL"
            " RETURNING number"
        )
        self.hand_on = of(
            "UPDATE {schema}.shard SET owner = (SELECT epoch FROM {schema}.agent WHERE epoch = %s)"
            " WHERE number = ANY (%s::smallint[]) AND owner = %s"
        )
        self.pid = sql.SQL("SELECT pg_backend_pid()")
        self.break_off = sql.SQL(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids(%s))"
            " AND wait_event_type IS DISTINCT FROM 'Lock'"
        )
        self.hint = of("SELECT pg_notify(%s, %s)")
        self.declare_load = of(
            "DECLARE jobs NO SCROLL CURSOR FOR SELECT {job}, {state} FROM {schema}.job"
            " LEFT JOIN {schema}.job_state ON job_state.job_id = job.id WHERE job.shard = ANY (%s::smallint[])"
            " ORDER BY job_state.job_id IS NULL, least(job_state.next_us, job_state.retry_at_us), job.id",
            job=JOB.qualified,
            state=STATE.qualified,
        )
        self.running = of(
            "SELECT {columns} FROM {schema}.tick LEFT JOIN {schema}.job ON job.id = job_id WHERE outcome = 'running'"
            " AND coalesce(shard, {schema}.shard_of(job_id)) = ANY (%s::smallint[])",
            TICK,
        )
        self.owed = of(
            "SELECT {columns} FROM {schema}.tick LEFT JOIN {schema}.job ON job.id = job_id WHERE owed"
            " AND coalesce(shard, {schema}.shard_of(job_id)) = ANY (%s::smallint[])",
            TICK,
        )


class PostgresSharing:
    """Our part in sharing one store, from its opening on."""

    def __init__(self, place: Place, statements: SharingStatements, fetch_load: sql.SQL, channel: str) -> None:
        self._place = place
        self._statements = statements
        self._fetch_load = fetch_load
        self._channel = channel
        self._lease: Connection | None = None
        self._other: Connection | None = None
        self._is_asked = Lock()
        self.last: View | None = None

    def renew(self) -> View:
        """Hold our lease from now on, and look around. Raises StoreTakenOver if we have been buried."""
        me = self._place.epoch
        with translated(self._place.where):
            is_there, at_us, owners, agents = self._renewed(me)
        if not is_there:
            raise StoreTakenOver(f"{self._place.where}: its lease has ended, and another agent has buried it")
        peers = tuple(
            Peer(
                epoch=epoch,
                name=name or "",
                left=LEASE if epoch == me else float(left),
                format=form,
                opened_us=us,
                labels=labels,
            )
            for epoch, name, left, form, us, labels in agents
        )
        self.last = View(me=me, peers=peers, owners=tuple(owners), at_us=at_us)
        return self.last

    def _renewed(self, me: int) -> Row:
        if self._lease is None or self._lease.closed:
            self._lease = self._place.connect()
        connection = self._lease
        connection.patience, connection.silence = PATIENCE, 0
        try:
            return one_row(connection.execute(self._statements.renew, [LEASE, me]))
        except BaseException:
            connection.close()
            raise

    def bury(self, epochs: Sequence[int]) -> list[int]:
        """Remove agents whose leases have ended. Their rows are locked by their commits: that waits for the last, or
        breaks it off.
        """
        with self._asked() as connection:
            pid = one_row(connection.execute(self._statements.pid))[0]
            is_over = Event()
            Thread(target=self._break_off, args=[pid, is_over], name="scheduler burial", daemon=True).start()
            try:
                gone = [row[0] for row in connection.execute(self._statements.bury, [number_array(epochs)])]
            finally:
                is_over.set()
            self._tell_others(connection)
        return gone

    def _break_off(self, pid: int, is_over: Event) -> None:
        """End the sessions for whose locks that one waits for too long, unless they wait for one themselves."""
        if is_over.wait(STUCK):
            return
        with suppress(StoreError), translated(self._place.where), closing(self._place.connect()) as connection:
            connection.execute(self._statements.break_off, [pid])

    def claim(self, shards: Sequence[int]) -> list[int]:
        """Take shards that nobody has. Return those that are ours now."""
        with self._asked() as connection:
            rows = connection.execute(self._statements.claim, [self._place.epoch, number_array(shards)])
            return [row[0] for row in rows]

    def leave(self) -> None:
        """Say good-bye."""
        try:
            with self._asked() as connection:
                connection.execute(self._statements.leave, [self._place.epoch])
                self._tell_others(connection)
        finally:
            self.close()

    def hand_on(self, shards: Sequence[int], to: int) -> None:
        """Give shards of ours to another agent."""
        with self._place.transaction() as connection:
            connection.execute(self._statements.hand_on, [to, number_array(shards), self._place.epoch])
            self._tell_others(connection)

    def load(self, shards: Sequence[int]) -> Rows:
        """Yield the jobs of these shards as they were at one moment, over a connection of its own."""
        with (
            translated(self._place.where),
            closing(self._place.connect()) as connection,
            connection.transaction_as("", ONE_SNAPSHOT),
        ):
            connection.execute(self._statements.declare_load, [number_array(shards)])
            while rows := connection.fetch_more(self._fetch_load):
                yield [loaded(row) for row in rows]

    def running(self, shards: Sequence[int]) -> list[StoredTick]:
        """Return the ticks of these shards that are RUNNING."""
        return self._ticks(self._statements.running, shards)

    def owed(self, shards: Sequence[int]) -> list[StoredTick]:
        """Return the ticks of these shards that are owed."""
        return self._ticks(self._statements.owed, shards)

    def close(self) -> None:
        """Let go of our own connections."""
        for connection in (self._lease, self._other):
            if connection is not None:
                connection.close()
        self._lease = self._other = None

    def _ticks(self, statement: sql.Composed, shards: Sequence[int]) -> list[StoredTick]:
        with self._asked() as connection:
            return [StoredTick(*row) for row in connection.execute(statement, [number_array(shards)])]

    def _tell_others(self, connection: Connection) -> None:
        connection.execute(self._statements.hint, [self._channel, HINT])

    @contextmanager
    def _asked(self) -> Iterator[Connection]:
        """Open a transaction over a connection of our own beside that of the lease. One thread at a time."""
        with self._is_asked, translated(self._place.where):
            if self._other is None or self._other.closed:
                self._other = self._place.connect()
            with self._other.transaction_as(""):
                yield self._other
