"""The third connection, besides those of the commits and of the lease: shards, units, votes and history share it.

One thread at a time has it, and also takes notifications; in between the listener does. Reading history may take
seconds, so a reader that keeps others waiting is broken off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from select import POLLIN, poll
from threading import Event, Lock
from typing import Final

from timerqueue import boottime

from .._store import StoreBusy, StoreError, StoreUnreachable
from .connection import READ_COMMITTED, Asked, Cursor, StoreConnection, psycopg, sql, translated

LONGEST_WAIT: Final = 5.0
"""Seconds."""

READS_ON: Final = 0.5
"""Seconds a reader may go on while others wait."""

BRIEFLY: Final = 0.3
"""Seconds a brief caller waits: the lease's renewal comes again."""

BRIEF: Final = 15
"""Tenths of a second a brief caller waits for an answer: half a lease."""

BRIEF_LOCK: Final[Asked] = sql.SQL("SET LOCAL lock_timeout = 1000"), ()
"""Shorter than BRIEF: the server speaks first."""

SILENT: Final = 25
"""Tenths of a second, above lock_timeout, after which the server is silent to others too."""

LONGEST_CLOSING: Final = 1.0
"""Seconds: a call in progress notices within 0.1 s unless it connects."""


class _LentReader:
    def __init__(self, now: Callable[[], float], are_others_waiting: Callable[[], bool]) -> None:
        self._now = now
        self._are_others_waiting = are_others_waiting
        self._since = now()
        self.is_stopped = False

    def look(self, connection: StoreConnection) -> None:
        """Stop a late reader. Without a cancel the server would go on in vain."""
        if self.is_stopped or not self._are_others_waiting() or self._now() - self._since < READS_ON:
            return
        self.is_stopped = True
        connection.cancel_safe(timeout=1.0)


class LentConnection:
    def __init__(self, connect: Callable[[], StoreConnection], where: str, now: Callable[[], float] = boottime) -> None:
        self._now = now
        self._connect = connect
        self._where = where
        self._connection: StoreConnection | None = None
        self._one_at_a_time = Lock()
        self._one_reader = Lock()
        self._count = Lock()
        self._waiting = 0
        self._is_connecting = False
        self._why_none = ""
        self._moment = Event()
        self._closings = 0
        self._prepare: Callable[[StoreConnection], object] | None = None

    @contextmanager
    def lend(
        self, *, wait: float | None = LONGEST_WAIT, is_reader: bool = False, is_brief: bool = False
    ) -> Iterator[StoreConnection]:
        """Lend the connection. Raises StoreBusy if others have had it for `wait` seconds; None: no bound.

        Readers queue. While others wait, a reader has READS_ON seconds; then StoreBusy. A brief caller makes no
        connection, and waits for no answer longer than BRIEF.
        """
        closings = self._closings
        if is_brief:
            self._await_connection()
        if not self._have(wait, is_reader=is_reader):
            raise self._why_not(wait)
        try:
            with translated(self._where):
                connection = self._open_one() if is_brief else self._connected()
                reader = _LentReader(self._now, lambda: self._waiting > 0) if is_reader else None

                def why_unwanted() -> str:
                    if self._closings != closings:
                        return "the store is being closed"
                    if reader is not None:
                        reader.look(connection)
                    return ""

                connection.silence = 0
                connection.patience = BRIEF if is_brief else StoreConnection.patience
                connection.why_unwanted = why_unwanted  # type: ignore[method-assign]
                try:
                    yield connection
                except psycopg.errors.QueryCanceled as error:
                    if reader is None or not reader.is_stopped:
                        raise
                    msg = f"{self._where}: it was reading for long, and others needed the connection"
                    raise StoreBusy(msg) from error
        finally:
            if self._closings != closings:
                self._hang_up()
            self._one_at_a_time.release()
            if is_reader:
                self._one_reader.release()

    @contextmanager
    def transaction(self, *, is_reader: bool = False) -> Iterator[StoreConnection]:
        with self.lend(is_reader=is_reader) as connection, connection.transaction_as(""):
            yield connection

    @contextmanager
    def brief_transaction(self) -> Iterator[StoreConnection]:
        """Like `lend` for a brief caller."""
        with (
            self.lend(wait=BRIEFLY, is_brief=True) as connection,
            connection.transaction_as("", first=[BRIEF_LOCK]),
        ):
            yield connection

    def ask(self, *asked: Asked, isolation: sql.SQL = READ_COMMITTED, is_reader: bool = False) -> list[Cursor]:
        """Carry out all in one transaction and one round trip."""
        with self.lend(is_reader=is_reader) as connection:
            return connection.ask_as("", asked, isolation)

    def ask_briefly(self, *asked: Asked) -> list[Cursor]:
        """Like `ask` for a brief caller."""
        with self.lend(wait=BRIEFLY, is_brief=True) as connection:
            return connection.ask_as("", [BRIEF_LOCK, *asked])[1:]

    def prepare_with(self, prepare: Callable[[StoreConnection], object]) -> None:
        """Call `prepare` first on each new connection. It may raise psycopg.Error."""
        self._prepare = prepare

    def listen(self, seconds: float) -> None:
        """Take notifications for up to that many seconds. Raises StoreError if there is no connection."""
        with self.lend(wait=None) as connection:
            pass
        said = poll()  # not select, which takes no descriptor over 1,023
        try:
            said.register(connection.fileno(), POLLIN)
        except psycopg.Error:  # another thread has just closed it
            return
        if said.poll(seconds * 1_000):
            with self.lend(wait=None) as again:
                if again is connection:
                    again.take_in()

    def close(self) -> None:
        """A call in progress closes at its end."""
        self._closings += 1
        self._why_none = ""
        if self._one_at_a_time.acquire(timeout=LONGEST_CLOSING):
            self._hang_up()
            self._one_at_a_time.release()

    def _have(self, wait: float | None, *, is_reader: bool) -> bool:
        """Readers queue first, so others wait for one reader at most."""
        if not is_reader:
            return self._have_among_others(wait)
        if not self._one_reader.acquire(timeout=-1 if wait is None else wait):
            return False
        if self._have_among_others(wait):
            return True
        self._one_reader.release()
        return False

    def _have_among_others(self, wait: float | None) -> bool:
        if self._one_at_a_time.acquire(blocking=wait is None):
            return True
        assert wait is not None
        with self._count:
            self._waiting += 1
        try:
            return self._one_at_a_time.acquire(timeout=wait)
        finally:
            with self._count:
                self._waiting -= 1

    def _why_not(self, wait: float | None) -> StoreError:
        connection = self._connection
        if self._is_connecting or (connection is not None and connection.silence >= SILENT):
            return StoreUnreachable(f"{self._where}: it has not answered others of us for {wait:g} s")
        return StoreBusy(f"{self._where}: others have been asking it for {wait:g} s")

    def _await_connection(self) -> None:
        since = self._now()
        while self._connection is None or self._connection.closed:
            if self._why_none:
                raise StoreUnreachable(f"{self._where}: {self._why_none}")
            if self._now() - since > BRIEFLY:
                raise StoreBusy(f"{self._where}: a connection is still being made")
            self._moment.wait(0.01)

    def _open_one(self) -> StoreConnection:
        if self._connection is None or self._connection.closed:
            raise StoreBusy(f"{self._where}: a connection must be made first")
        return self._connection

    def _connected(self) -> StoreConnection:
        if self._connection is None or self._connection.closed:
            self._is_connecting = True
            try:
                self._connection = connection = self._connect()
                if self._prepare is not None:
                    self._prepare(connection)
                self._why_none = ""
            except BaseException as error:
                self._why_none = str(error) or type(error).__name__
                self._hang_up()
                raise
            finally:
                self._is_connecting = False
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
