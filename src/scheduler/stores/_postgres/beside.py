"""The connection beside those of the commits and of the lease: shards, units, votes and history share it.

It is lent to one thread at a time. Most have it for a way or two to the server and back. History may take seconds to
read, and a shard that moves is not to wait for that: so a reader that keeps others waiting is broken off. Notifications
come over it as well, whoever has it just then; in between the listener waits for them. That is why one suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from select import select
from threading import Lock
from typing import Any, Final

from timerqueue import boottime

from .._store import StoreUnavailable, StoreUnreachable
from .connection import READ_COMMITTED, Connection, sql, translated
from .table import Row

LONGEST_WAIT: Final = 5.0
"""Seconds that one thread waits for the others, unless it says otherwise."""

READS_ON: Final = 0.5
"""Seconds for which a reader may have the connection while others wait for it."""

LONGEST_CLOSING: Final = 1.0
"""Seconds for which closing waits for a call that goes on. It notices within a tenth of one, unless it connects."""


class Busy(StoreUnavailable):
    """Others have the connection."""


class Beside:
    """One connection of a store, lent to one thread at a time. `connect`: makes it. `where`: the store, in words."""

    def __init__(self, connect: Callable[[], Connection], where: str, now: Callable[[], float] = boottime) -> None:
        self._now = now
        self._connect = connect
        self._where = where
        self._connection: Connection | None = None
        self._one_at_a_time = Lock()
        self._count = Lock()
        self._waiting = 0
        self._is_connecting = False
        self._closings = 0
        """How often this was closed: a store may be opened again."""
        self.connected: Callable[[Connection], object] | None = None
        """Told of each new connection, before anything else is asked over it. Raises psycopg.Error."""

    @contextmanager
    def lend(self, *, wait: float | None = LONGEST_WAIT, is_reader: bool = False) -> Iterator[Connection]:
        """Lend the connection. Raises Busy if others have had it for `wait` seconds; None: it can wait. One `is_reader`
        has it for no longer than READS_ON while others wait: StoreUnreachable then.
        """
        closings = self._closings
        if not self._have(wait):
            if self._is_connecting:
                raise StoreUnreachable(f"{self._where}: it has not let us in for {wait:g} s")
            raise Busy(f"{self._where}: others have been asking it for {wait:g} s")
        try:
            with translated(self._where):
                connection, since = self._connected(), self._now()

                def why_unwanted() -> str:
                    if self._closings != closings:
                        return "the store is being closed"
                    is_in_the_way = is_reader and self._waiting > 0 and self._now() - since > READS_ON
                    return "it was reading for long, and others needed the connection" if is_in_the_way else ""

                connection.silence = 0
                connection.why_unwanted = why_unwanted  # type: ignore[method-assign]
                yield connection
        finally:
            if self._closings != closings:
                self._hang_up()
            self._one_at_a_time.release()

    @contextmanager
    def transaction(
        self, isolation: sql.SQL = READ_COMMITTED, *, wait: float = LONGEST_WAIT, is_reader: bool = False
    ) -> Iterator[Connection]:
        """Open a transaction over it."""
        with self.lend(wait=wait, is_reader=is_reader) as connection, connection.transaction_as("", isolation):
            yield connection

    def at_once(
        self, statement: sql.Composed, asked: Sequence[Any] | Mapping[str, Any], *, wait: float = LONGEST_WAIT
    ) -> list[Row]:
        """Ask one question, in one way to the server and back."""
        with self.lend(wait=wait) as connection:
            try:
                return connection.execute(statement, asked).fetchall()
            except BaseException:
                connection.close()
                raise

    def listen(self, seconds: float) -> None:
        """Take in notifications that come within so many seconds. Raises StoreError: there is no connection."""
        with self.lend(wait=None) as connection:
            pass
        try:
            is_there = select([connection.fileno()], [], [], seconds)[0]
        except (OSError, ValueError):  # it is closed, or about to be
            return
        if is_there:
            with self.lend(wait=None) as again:
                if again is connection:
                    again.take_in()

    def close(self) -> None:
        """Let go of the connection. A call that goes on, for which nobody may wait any more, does so as it ends."""
        self._closings += 1
        if self._one_at_a_time.acquire(timeout=LONGEST_CLOSING):
            self._hang_up()
            self._one_at_a_time.release()

    def _have(self, wait: float | None) -> bool:
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

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._is_connecting = True
            try:
                self._connection = connection = self._connect()
                if self.connected is not None:
                    self.connected(connection)
            except BaseException:
                self._hang_up()
                raise
            finally:
                self._is_connecting = False
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
