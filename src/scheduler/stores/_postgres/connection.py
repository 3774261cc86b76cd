"""A connection to PostgreSQL on which no wait is long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from threading import Lock, get_ident
from typing import Any, Final, TypeVar

from timerqueue import boottime

from .._store import StoreError, StoreLocked, StoreUnavailable, StoreUnreachable, StoreUnusable, Unstorable

try:
    import psycopg
    from psycopg import sql
    from psycopg.abc import PQGen
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.rows import TupleRow

    from .quiet_pipeline import quiet_pipeline
except ImportError as error:
    msg = f"a PostgresStore needs psycopg 3, which cannot be imported here ({error}): pip install timerqueue[postgres]"
    raise ModuleNotFoundError(msg, name="psycopg") from error

__all__ = [
    "BRIEFLY",
    "ONE_SNAPSHOT",
    "PATIENCE",
    "PID",
    "READ_COMMITTED",
    "Asked",
    "Cursor",
    "Silent",
    "StoreConnection",
    "connect",
    "connect_first",
    "described",
    "one_row",
    "psycopg",
    "software",
    "sql",
    "translated",
]

T = TypeVar("T")

Cursor = psycopg.Cursor[TupleRow]

Asked = tuple[sql.Composed | sql.SQL, Sequence[Any] | Mapping[str, Any]]

PATIENCE: Final = 70
"""Tenths of a second of silence per transaction. Above statement_timeout: the server speaks first."""

TURN: Final = 0.1
"""Seconds."""

DEFAULTS: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
    "application_name": "timerqueue",
}
"""PgBouncer lets all pass."""

SETTINGS: Final = sql.SQL("""
    SELECT set_config('statement_timeout', '5s', true),
        set_config('lock_timeout', '2s', true),
        set_config('idle_in_transaction_session_timeout', '10s', true),
        set_config('synchronous_commit',
            coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true),
        set_config('timerqueue.agent', %s, true)
""")
"""Per transaction, because PgBouncer may change the session."""

BRIEFLY: Final = sql.SQL("SET LOCAL lock_timeout = 300")
"""Statements fail rather than wait for a locked row; the others are then sent without it."""

PID: Final = sql.SQL("SELECT pg_backend_pid()")

END_LEFT: Final = sql.SQL(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY (%s) AND pg_backend_pid() = %s"
    " AND usename = current_user AND state LIKE 'idle in transaction%%'"
)
"""Ends sessions that are idle in a transaction, unless a pooler answers."""


READ_COMMITTED: Final = sql.SQL("READ COMMITTED")
ONE_SNAPSHOT: Final = sql.SQL("REPEATABLE READ READ ONLY")


class Silent(psycopg.OperationalError):
    """The server was silent for too long, or its answer is unwanted."""


class ConnectionRefused(psycopg.OperationalError): ...


class StoreConnection(psycopg.Connection[TupleRow]):
    """Gives up on a silent server: no other timeout ends a wait for a frozen one.

    Any error closes it, which rolls back.
    """

    patience = PATIENCE
    silence = 0
    pid = 0
    """Of the server's session; 0: unknown or behind a pooler."""
    outlives_silence = False
    """Silence does not close it: see `has_caught_up`."""
    _keeps_plans = False
    _is_direct: bool | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._guard = Lock()
        self._waiting = 0
        self._is_ending = False

    def why_unwanted(self) -> str:
        """Return why a wait must end, if so; for replacement. Asked ten times a second."""
        return ""

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        with self._guard:
            self._waiting = get_ident()
        try:
            return super().wait(self._impatient(gen), *args, **kwargs)
        finally:
            with self._guard:
                self._waiting = 0
            if self._is_ending:
                self.close()

    def close(self) -> None:
        """Close. If another thread waits here, it closes within a tenth of a second.

        Freed under that thread, libpq would crash the process.
        """
        with self._guard:
            self._is_ending = self._waiting not in {0, get_ident()}
            if not self._is_ending:
                super().close()

    def _impatient(self, gen: PQGen[T]) -> PQGen[T]:
        """Psycopg resumes a wait every tenth of a second, with READY_NONE (0)."""
        looked = boottime()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready and boottime() - looked < TURN:
                    wanted = gen.send(ready)
                    continue
                looked = boottime()
                if reason := self._is_over(is_silent=not ready):
                    gen.close()
                    if not self.outlives_silence:
                        self.close()
                    raise Silent(reason)
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _is_over(self, *, is_silent: bool) -> str:
        self.silence += is_silent
        if self.silence >= self.patience:
            return f"PostgreSQL has not answered for {self.patience / 10} s"
        return "it is being closed" if self._is_ending else self.why_unwanted()

    def has_caught_up(self) -> bool:
        """Whether the answer has come after all. Does not wait. Raises psycopg.Error if the connection broke."""
        self.pgconn.flush()
        self.pgconn.consume_input()
        while not self.pgconn.is_busy():
            if self.pgconn.get_result() is None:
                return True
        return False

    def take_in(self) -> None:
        """Handle notifications. Does not wait."""
        try:
            self.pgconn.consume_input()
            while (said := self.pgconn.notifies()) is not None:
                if self.pgconn.notify_handler is not None:
                    self.pgconn.notify_handler(said)
        except psycopg.Error:
            self.close()
            raise

    def is_direct(self) -> bool:
        """Whether this is the server itself, not a pooler, which changes sessions."""
        if self._is_direct is None:
            self.note_pid(one_row(self.execute(PID))[0])
        return bool(self._is_direct)

    def note_pid(self, pid: int) -> None:
        self._is_direct = pid == self.info.backend_pid
        self.pid = pid if self._is_direct else 0

    def ending(self, sessions: Iterable[int]) -> Asked:
        """Return the statement that ends broken sessions. Their locks would last ten seconds or more."""
        return END_LEFT, [list(sessions), self.info.backend_pid]

    def keeping_plans(self) -> StoreConnection:
        """Let the server keep plans of writing statements, if the connection is direct."""
        self._keeps_plans = self.is_direct()
        return self

    @contextmanager
    def transaction_as(
        self, agent: str, isolation: sql.SQL = READ_COMMITTED, *, first: Sequence[Asked] = (), writes: bool = False
    ) -> Iterator[list[Cursor]]:
        """Run one transaction, with deadlines, in the name of this node.

        `first`: sent with the beginning; yields the answers. Call `end` in the last pipeline to save a round trip.
        `writes`: plans may be kept.
        """
        self.silence = 0
        self.prepare_threshold = 0 if self._keeps_plans and writes else None
        try:
            with quiet_pipeline(self):
                answers = self._begin(agent, isolation, first)
            yield answers
            if self.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                self.end()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def in_one_way_as(
        self, agent: str, asked: Sequence[Asked], isolation: sql.SQL = READ_COMMITTED, *, writes: bool = False
    ) -> Iterator[list[Cursor]]:
        """Send a whole transaction: no answer is here before its end."""
        self.silence = 0
        self.prepare_threshold = 0 if self._keeps_plans and writes else None
        try:
            with quiet_pipeline(self):
                yield self._begin(agent, isolation, asked)
                self.end()
        except BaseException:
            self.close()
            raise

    def ask_as(self, agent: str, asked: Sequence[Asked], isolation: sql.SQL = READ_COMMITTED) -> list[Cursor]:
        """Carry out all in one transaction and one round trip."""
        with self.in_one_way_as(agent, asked, isolation) as answers:
            return answers

    def _begin(self, agent: str, isolation: sql.SQL, asked: Sequence[Asked]) -> list[Cursor]:
        self.execute(sql.SQL("BEGIN ISOLATION LEVEL ") + isolation)
        self.execute(SETTINGS, [agent])
        return [self.execute(*each) for each in asked]

    def end(self) -> None:
        """Commit. In a pipeline an error skips it."""
        self.execute("COMMIT", prepare=False)  # no plan of it is kept

    def fetch_more(self, fetch: sql.SQL) -> list[TupleRow]:
        """Time between calls is not the server's silence."""
        self.silence = 0
        return self.execute(fetch).fetchall()


def connect(dsn: str) -> StoreConnection:
    """Connect, within some seconds per host."""
    return StoreConnection.connect(_conninfo(dsn), autocommit=True, prepare_threshold=None)


def _conninfo(dsn: str) -> str:
    said = conninfo_to_dict(dsn)
    ours = {name: value for name, value in DEFAULTS.items() if name not in said} | {"client_encoding": "UTF8"}
    return make_conninfo(dsn, **ours)


def connect_first(dsn: str, *, is_known: bool = False) -> StoreConnection:
    """Connect to an unknown server. Raises Refused if it refuses us; other errors may pass.

    A refusal has no code, so we ping: without a login the server says whether it takes connections. `is_known`: no
    ping, which blocks all threads.
    """
    try:
        return connect(dsn)
    except psycopg.OperationalError as error:
        if is_known or _is_for_now(dsn, error):
            raise
    try:
        return connect(dsn)  # it may have come up between the two questions
    except psycopg.OperationalError as error:
        if _is_for_now(dsn, error):
            raise
        raise ConnectionRefused(str(error)) from error


def _is_for_now(dsn: str, error: psycopg.OperationalError) -> bool:
    if isinstance(error, psycopg.errors.ConnectionTimeout) or FOR_NOW.search(str(error)):
        return True
    return bool(psycopg.pq.PGconn.ping(_conninfo(dsn).encode()) != psycopg.pq.Ping.OK)


def software() -> str | None:
    try:
        return version("timerqueue")
    except PackageNotFoundError:
        return None


def one_row(rows: psycopg.Cursor[TupleRow]) -> TupleRow:
    row = rows.fetchone()
    if row is None:
        msg = "a row that must be there is not"
        raise StoreUnusable(msg)
    return row


def described(dsn: str) -> str:
    """Describe a dsn without its password. Raises ValueError if libpq cannot read it."""
    try:
        parameters = conninfo_to_dict(dsn)
    except psycopg.Error:
        # The driver's message would show a part of the text, and that may be the password.
        msg = "not what libpq understands: give a URL as postgresql://user@host/database, or host=... dbname=..."
        raise ValueError(msg) from None
    shown = ("host", "hostaddr", "port", "user", "dbname", "service")
    return " ".join(f"{name}={parameters[name]}" for name in shown if parameters.get(name))


FOR_NOW: Final = re.compile(
    r"too many clients already|remaining connection slots are reserved|too many connections for|no more connections"
    r"|pgbouncer cannot connect|server login has been failing|server_login_retry"
)
"""Messages of full servers, and of poolers without a server."""

LOCKED: Final = "55P03"

BROKEN: Final = (
    "08",
    "57P01",  # the server stops, or the session was ended
    "57P02",
    "57P03",  # it starts
)
"""SQLSTATE prefixes of broken connections. The driver's own errors have none."""

UNUSABLE: Final = (
    "0A",  # a feature this server has not
    "3F",  # no such schema
    "42",  # no such table, no right to it
    "XX001",  # damaged
    "XX002",
)

UNSTORABLE: Final = (
    "22",  # data that it cannot take
    "23502",  # NULL where there must be a value; other constraints may be kept the next time
    "23514",  # what a check refuses
    "54",  # more of it than fits
)


@contextmanager
def translated(where: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise _translation(where, error) from error


def _translation(where: str, error: psycopg.Error) -> StoreError:
    code = error.sqlstate or ""
    # The primary message only: the details may show a row that does not belong in a log.
    reason = " ".join((error.diag.message_primary or str(error)).split()) or type(error).__name__
    if isinstance(error, ConnectionRefused):
        return StoreUnusable(f"{where}: it answers, and refuses us: {reason}: look at user, password and database")
    if code == "42501":
        return StoreUnusable(f"{where}: {reason}: grant the role USAGE on the schema and all rights to its tables")
    if code.startswith(UNSTORABLE):
        return Unstorable(f"{where}: {reason} ({code}): it was given what it cannot hold; please report this")
    if code.startswith(UNUSABLE) or (not code and isinstance(error, psycopg.ProgrammingError | psycopg.DataError)):
        return StoreUnusable(f"{where}: {reason} ({code or type(error).__name__})")
    is_broken = not code or code.startswith(BROKEN)
    kind = StoreUnreachable if is_broken else StoreLocked if code == LOCKED else StoreUnavailable
    return kind(f"{where}: {reason} ({code or type(error).__name__})")
