"""The connection over which a node commits, and its number in the node's row.

When a silent server makes the node give the connection up, the last commit may still arrive after later ones, and
replace newer values. So a new connection first writes its number into the row. Each commit locks the row, and fails
unless its own number is there (test_postgres_faults.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..._store import Opened, StoreUnavailable
from ..connection import StoreConnection, psycopg
from ..statements import Statements


class CommitSession:
    """One thread uses it. `connect` also writes the number, if not 0."""

    def __init__(self, connect: Callable[[int], StoreConnection], statements: Statements) -> None:
        self._connect = connect
        self._statements = statements
        self.connection: StoreConnection | None = None
        self._number = 0

    def begin(self, connection: StoreConnection) -> None:
        """Commit over the connection of `open`: a new row has the number 0."""
        self.connection, self._number = connection.keeping_plans(), 0

    def connected(self) -> StoreConnection:
        """Raises psycopg.Error, or StoreError if the store is not ours."""
        if self.connection is None or self.connection.closed:
            self._number += 1
            self.connection = self._connect(self._number).keeping_plans()
        return self.connection

    @contextmanager
    def in_one_way(self, opened: Opened) -> Iterator[StoreConnection]:
        """Open a transaction under the node's row, without answers before its end.

        Raises StoreTakenOver if the store is not ours, StoreUnavailable if the server has another number.
        """
        connection = self.connected()
        hold = self._statements.hold_session, [opened.epoch, opened.incarnation, opened.instance, self._number]
        try:
            with connection.in_one_way_as(str(opened.epoch), [hold], writes=True):
                yield connection
        except (psycopg.errors.DivisionByZero, psycopg.errors.PipelineAborted) as error:
            self.connected()  # it is closed now, and the next one is judged
            msg = "the server does not know the connection of this commit: it is sent again over another"
            raise StoreUnavailable(msg) from error

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None
