"""A store in PostgreSQL, 13 or later. It needs `pip install timerqueue[postgres]`."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from uuid import UUID

from .._placement import checked_labels
from ._postgres.beside import LentConnection
from ._postgres.changes import ChangeLog, Listener, MadeStatements, PostgresChanges
from ._postgres.commits import CommitSession, PostgresTransactions, PruneCandidates, send, write
from ._postgres.connection import (
    ONE_SNAPSHOT,
    StoreConnection,
    connect,
    connect_first,
    described,
    one_row,
    software,
    translated,
)
from ._postgres.execution_statements import ExecutionStatements
from ._postgres.executions import PostgresExecutions
from ._postgres.made import Made
from ._postgres.schema import preflight, prepare
from ._postgres.sharing import PostgresSharing, Presence, SharingStatements, make_way
from ._postgres.spare import Spare
from ._postgres.statements import Statements
from ._postgres.table import loaded, stood, storable
from ._postgres.units import HINT, PostgresLending, UnitStatements
from ._postgres.visits import PostgresVisit, read_fleet, read_server
from ._postgres.voting import PostgresVoting, VotingStatements
from ._rows import Batch, Changes, Receipt, Retention, Stood, StoredJob, StoredPause, StoredState, StoredTick
from ._sharing import FORMAT, LEASE, MAX_SKEW, FleetView, Sharing, StoreServer
from ._store import Opened, StoreForked
from ._units import Lending
from ._voting import Voting

__all__ = ["PostgresStore"]

LONGEST_NAME = 63
"""Bytes. PostgreSQL silently truncates longer identifiers."""

LATEST = 2**63 - 1


class PostgresStore(PostgresTransactions):
    """A store in one PostgreSQL schema, for one node at a time, or with `shared` for several.

    You may write jobs by hand: `INSERT INTO timerqueue.job (id, task, schedule) VALUES (...)`. The scheduler notices. A
    node that opens the store takes it over: the previous node's next call raises StoreTakenOver. With `shared`, nodes
    divide the jobs and take over each other's.

    The first role with the right to do so makes the tables. An everyday role needs USAGE on the schema, and SELECT,
    INSERT, UPDATE and DELETE on its tables. The store works behind PgBouncer in transaction mode, but without NOTIFY.
    Then it sees changes by hand within about a second, and a node's death when its lease ends.
    """

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "timerqueue",
        shared: bool = False,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        max_skew: float | None = MAX_SKEW,
    ) -> None:
        """Set up; nothing connects before `open`. `dsn`: a libpq URL or `host=... dbname=...`.

        `shared`: all nodes must set it. `name`: shown to other nodes; None: our process and host. `labels`, such as
        `{"region": "eu"}`: for jobs with `where`. `max_skew`: seconds by which our clock may be off; None: no bound.
        Raises ValueError if `schema` is no valid name.
        """
        if (
            not schema
            or len(schema.encode("utf-8", "replace")) > LONGEST_NAME
            or storable(schema.replace("%", "\0")) != schema
        ):
            msg = f"schema={schema!r} is not a name for a schema: give 1 to {LONGEST_NAME} bytes, without % and NUL"
            raise ValueError(msg)
        self._where = f"PostgreSQL at {described(dsn) or 'its default place'}, schema {schema}"
        self._dsn = dsn
        self._schema = schema
        self._name = name
        self._labels = json.dumps(checked_labels(labels))
        self._statements = Statements(schema, shared=shared)
        self._of_sharing = SharingStatements(self._statements, schema)
        self._made = Made()
        self.beside = LentConnection(lambda: self.connect(only_reads=True), self._where)
        self.spare = Spare(self.connect)
        self._sharing = PostgresSharing(self, self._of_sharing, schema, max_skew) if shared else None
        self._presence = Presence(self._of_sharing)
        self._voting = PostgresVoting(self, VotingStatements(self._statements)) if shared else None
        self._lending = PostgresLending(self, UnitStatements(self._statements), schema) if shared else None
        self._of_executions = ExecutionStatements(self._statements)
        self._opened: Opened | None = None
        self._last_epoch = 0  # of ours: tells what we have by it from what we have by a later epoch
        self.log = ChangeLog(self._statements, None if self._sharing is None else self._sharing.read_requests)
        self._commits = CommitSession(lambda number: self.connect(number=number), self._statements)
        self._listener: Listener | None = None
        self._pruning = PruneCandidates(self._statements)

    def __repr__(self) -> str:
        return f"PostgresStore({self._where})"

    @property
    def is_immediate(self) -> bool:
        """False: it waits for a server."""
        return False

    @property
    def sharing(self) -> Sharing | None:
        """None without `shared`."""
        return self._sharing

    @property
    def voting(self) -> Voting | None:
        """None without `shared`."""
        return self._voting

    @property
    def lending(self) -> Lending | None:
        """None without `shared`."""
        return self._lending

    @property
    def executions(self) -> PostgresExecutions:
        """Starts in an external queue."""
        return PostgresExecutions(self, self._of_executions, self._schema)

    @property
    def made_changes(self) -> PostgresChanges:
        """Who changed what. The store need not be open."""
        return PostgresChanges(self._reading, MadeStatements(self._statements))

    @property
    def where(self) -> str:
        """The store's place in words."""
        return self._where

    @property
    def epoch(self) -> int:
        """Our epoch. Raises StoreUnusable unless it is open."""
        return self._is_open.epoch

    @property
    def incarnation(self) -> UUID | None:
        """The UUID of this opening: two may have one epoch. Raises StoreUnusable unless it is open."""
        return self._is_open.incarnation

    @property
    def epoch_now(self) -> int:
        """Our epoch; 0: not open."""
        opened = self._opened
        return 0 if opened is None else opened.epoch

    def preflight(self) -> None:
        """Raise the errors of `open` that show without changing anything."""
        with translated(self._where), closing(connect(self._dsn)) as connection:
            preflight(connection, self._schema)

    def open(self, now_us: int, hint: Callable[[], None]) -> Opened:
        """Make or migrate the tables, and take over from a previous owner."""
        self.close()
        self._bind_to_process("PostgresStore", "_where", error=StoreForked)
        try:
            with translated(self._where):
                connection = self._made.note(connect_first(self._dsn, is_known=bool(self.log.seen)))
                self._commits.begin(connection)
                prepare(connection, self._schema)
                with connection.transaction_as(""):
                    opened = self._take(connection, now_us)
                self.log.begin(self.log.now(connection))
        except BaseException:
            self.close()
            raise
        self._opened, self._last_epoch = opened, opened.epoch
        self._pruning = PruneCandidates(self._statements)
        others = {} if self._lending is None else {HINT: self._lending.hint}
        is_for_us = None if self._sharing is None else self._sharing.is_for_us
        self._listener = Listener(self.beside, self._schema, hint, others, is_for_us)
        return opened

    def _take(self, connection: StoreConnection, now_us: int) -> Opened:
        epoch, instance = one_row(connection.execute(self._statements.take_epoch, [self._last_epoch]))
        make_way(connection, self._of_sharing, self._where, shared=self._sharing is not None)
        name = f"process {os.getpid()} on {platform.node()}" if self._name is None else self._name
        us = [epoch, storable(name), now_us, self._labels, software()]
        incarnation = one_row(connection.execute(self._statements.add_agent, us))[0]
        if self._sharing is None:
            self._presence.show(connection, epoch)
        else:
            connection.execute(self._of_sharing.join, [epoch, LEASE, FORMAT])
        return Opened(epoch, instance, incarnation)

    def load(self) -> Iterator[list[tuple[StoredJob, StoredState | None]]]:
        """Yield all jobs as at one moment, over its own connection. If shared, each list has its own moment."""
        agent = self._agent
        if self._sharing is not None:
            with self.beside.transaction() as connection:
                self.log.begin(self.log.now(connection))
            yield from self._sharing.load_others([])
            return
        with (
            translated(self._where),
            self.spare.lend() as connection,
            connection.transaction_as(agent, ONE_SNAPSHOT),
        ):
            seen = self.log.now(connection)
            connection.execute(self._statements.declare_load)
            self.log.begin(seen)
            while rows := connection.fetch_more(self._statements.fetch_load):
                yield [loaded(row) for row in rows]

    def pauses(self) -> list[StoredPause]:
        """See Store."""
        with self.transaction() as connection:
            return [StoredPause(*row) for row in connection.execute(self._statements.pauses)]

    def running(self) -> list[StoredTick]:
        """See Store."""
        with self.transaction() as connection:
            return [StoredTick(*row) for row in connection.execute(self._statements.running)]

    def owed(self) -> list[StoredTick]:
        """See Store."""
        with self.transaction() as connection:
            return [StoredTick(*row) for row in connection.execute(self._statements.owed)]

    def commit(self, batch: Batch) -> Receipt:
        """Commit in one transaction. Raises StoreTakenOver after a takeover."""
        self._pruning.note(batch)
        opened, statements = self._is_open, (self._statements, self._of_executions)
        if batch.added:  # what stands in their places decides what is written
            with self.writing() as connection:
                return write(connection, *statements, batch, opened.epoch)
        with self.in_one_way() as connection:
            sent = send(connection, *statements, batch, opened.epoch)
        return sent.receipt(batch)

    def locked(self, batches: Sequence[Batch]) -> set[str]:
        """Return the jobs of these batches that another session has locked."""
        with self.transaction() as connection:
            return self._of_executions.locks.of(connection, batches)

    def changes(self) -> Changes:
        """Return a page of the changes by others.

        They are behind, until `load`, if a standby that missed the last changes replaced the server.
        """
        opened, told = self._is_open, self.log.told
        agent = str(opened.epoch)
        questions = [self._who(opened), *self.log.asks(agent, told)]  # at once: other callers wait behind them
        with translated(self._where):  # commits would wait for each page; where nodes share the store none does
            lent = nullcontext(self._connected()) if self._sharing is None else self.beside.lend()
            with lent as connection, connection.transaction_as(agent, ONE_SNAPSHOT, first=questions) as answers:
                who, look, page = answers
                self._judge(connection, who, opened)
                changes, then = self.log.read(connection, look, page, told)
        self.log.tell(told, then)
        return changes

    def history(self, job_id: str | None = None, *, limit: int = 100, before_us: int | None = None) -> list[StoredTick]:
        """See Store. The store need not be open."""
        statements, page = self._statements, [LATEST if before_us is None else before_us, limit]
        asked = (statements.history, page) if job_id is None else (statements.history_of_job, [storable(job_id), *page])
        if self._opened is not None:
            (found,) = self.beside.ask(asked, is_reader=True)
            return [StoredTick(*row) for row in found]
        with self._reading() as reader:
            return [StoredTick(*row) for row in reader.execute(*asked)]

    def standing(self, job_id: str) -> Stood:
        """Return a job's row and state, and all pauses. The store need not be open."""
        with self._reading() as reader:
            found = [*reader.execute(self._statements.standing, [storable(job_id)])]
            return stood(found, reader.execute(self._statements.pauses))

    def read_jobs(self) -> list[tuple[StoredJob, StoredState | None]]:
        """Return all jobs. The store need not be open."""
        with self._reading() as reader:
            reader.execute(self._statements.declare_load)
            pages = iter(lambda: reader.fetch_more(self._statements.fetch_load), [])
            return [loaded(row) for page in pages for row in page]

    def fleet(self) -> FleetView:
        """Return this store's nodes. It need not be open. Raises NoTables."""
        with self._reading() as reader:
            return read_fleet(reader, self._statements, self._schema)

    def server(self) -> StoreServer:
        """Return whether a failover would lose commits. The store need not be open, nor have tables."""
        with self._reading() as reader:
            return read_server(reader)

    @contextmanager
    def visit(self) -> Iterator[PostgresVisit]:
        """Let a visitor audit the rows over its own connection. The store need not be open."""
        with translated(self._where), closing(connect(self._dsn)) as connection:
            yield PostgresVisit(connection, self._statements, self._of_executions, self._schema)

    def prune(self, retention: Retention, now_us: int) -> int:
        """Delete some thousands of records, of 1,000 jobs."""
        return self._pruning.prune(self.ask_once, retention, now_us, self.log.seen)

    def close(self) -> None:
        """Release everything within some seconds, and break off another thread's reading."""
        self._opened = None
        if self._sharing is not None:
            self._sharing.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.beside.close()
        self.spare.end()
        self._commits.close()

    def connect(self, *, only_reads: bool = False, number: int = 0) -> StoreConnection:
        """Connect to the opened store only. `only_reads`: even after a takeover. `number`: of a commit connection."""
        opened = self._is_open  # another thread may close the store while this one connects
        connection = self._made.note(connect(self._dsn))
        ends = self._made.ending_left(connection)
        begins = [(self._statements.begin_session, [number, opened.epoch, opened.incarnation])] if number else []
        try:  # in one round trip: a node that is far away connects again after each outage
            who = connection.ask_as(str(opened.epoch), [self._who(opened), *ends, *begins])[0]
            self._judge(connection, who, opened, only_reads=only_reads)
        except BaseException:
            connection.close()
            raise
        if connection.is_direct():
            self._made.have_ended(ends)
        return connection

    @property
    def connections(self) -> int:
        """Open connections."""
        return self._made.count()

    @contextmanager
    def _reading(self) -> Iterator[StoreConnection]:
        if self._opened is not None:
            with self.beside.transaction(is_reader=True) as connection:
                yield connection
            return
        with translated(self._where), closing(connect(self._dsn)) as connection, connection.transaction_as(""):
            yield connection
