"""Transactions of an open store, over its commit connection: one after another, in the line of its commits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from timerqueue import Resident

from ..._store import Opened, StoreUnusable
from ..connection import Asked, Cursor, StoreConnection, one_row, sql, translated
from ..sharing import PostgresSharing, Presence, check_ours
from ..statements import Statements
from .session import CommitSession


class PostgresTransactions(Resident):
    """The transactions of `PostgresStore`, which sets these attributes."""

    _where: str
    _statements: Statements
    _commits: CommitSession
    _presence: Presence
    _sharing: PostgresSharing | None
    _opened: Opened | None

    @property
    def _is_open(self) -> Opened:
        if self._opened is None:
            msg = f"{self._where}: it is not open: call open first"
            raise StoreUnusable(msg)
        return self._opened

    @property
    def _agent(self) -> str:
        return str(self._is_open.epoch)

    @contextmanager
    def transaction(self) -> Iterator[StoreConnection]:
        """Open a transaction under our fence."""
        opened = self._is_open
        with translated(self._where):
            connection = self._connected()
            with connection.transaction_as(str(opened.epoch)):
                yield connection

    @contextmanager
    def _under_our_row(self, hold: sql.Composed, *asked: Asked) -> Iterator[tuple[StoreConnection, list[Cursor]]]:
        """Open a transaction, and yield the answers to `asked`. Raises StoreTakenOver after a takeover.

        The lock keeps other nodes from taking over, and two commits apart: the server may still be busy with a lost
        commit. So no write is sent before we have the lock.
        """
        opened = self._is_open
        first = (hold, [opened.epoch, opened.incarnation, opened.instance])
        with translated(self._where):
            connection = self._connected()
            with connection.transaction_as(str(opened.epoch), first=(first, *asked), writes=True) as (held, *answers):
                if not held.rowcount:
                    self._judge(connection, connection.execute(*self._who(opened)), opened)
                yield connection, answers

    def ask_once(self, *asked: Asked) -> list[Cursor]:
        """Ask in one transaction and one way."""
        with translated(self._where):
            return self._connected().ask_as(self._agent, asked)

    def _connected(self) -> StoreConnection:
        connection = self._commits.connected()
        if self._sharing is None:
            self._presence.show(connection, self._is_open.epoch)
        return connection

    @contextmanager
    def writing(self) -> Iterator[StoreConnection]:
        """Open a writing transaction. Raises StoreTakenOver after a takeover."""
        with self._under_our_row(self._statements.hold_by_keys) as (connection, _):
            yield connection

    @contextmanager
    def writing_if(self, asked: Asked) -> Iterator[StoreConnection | None]:
        """Like `writing`, but not only by keys. None: the answer to `asked` is no."""
        with self._under_our_row(self._statements.hold, asked) as (connection, (answer,)):
            yield connection if one_row(answer)[0] else None

    @contextmanager
    def in_one_way(self) -> Iterator[StoreConnection]:
        """Like `writing`, but no answer is here before its end."""
        opened = self._is_open
        with translated(self._where):
            self._connected()
            with self._commits.in_one_way(opened) as connection:
                yield connection

    def _who(self, opened: Opened) -> Asked:
        return self._statements.who, [opened.epoch, opened.incarnation]

    def _judge(self, connection: StoreConnection, who: Cursor, opened: Opened, *, only_reads: bool = False) -> None:
        is_shared = self._sharing is not None
        check_ours(connection, who, self._where, opened, is_shared=is_shared, only_reads=only_reads)
