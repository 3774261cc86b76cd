"""The connection over which a node commits, and its number in the row of the node.

A commit goes to the server in one way, with everything that it writes. The node may give the connection up because the
server is silent for too long. Then the commit may still be on its way, and arrive after commits that the node has sent
later, over its next connection. Its values would replace newer ones.

So each connection has a number. The node writes the number of a new connection into its row before it commits over it.
Each commit locks the row, and fails unless the number there is its own. Who waits for the lock looks again when it has
it. (test_postgres_faults.py holds one back.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..._store import Opened, StoreUnavailable
from ..connection import Connection, psycopg
from ..statements import Statements


class CommitSession:
    """The connection of the commits of one store. One thread uses it.

    `connect`: makes a connection, and writes its number if it has one.
    """

    def __init__(self, connect: Callable[[int], Connection], statements: Statements) -> None:
        self._connect = connect
        self._statements = statements
        self.connection: Connection | None = None
        self._number = 0

    def begin(self, connection: Connection) -> None:
        """Commit over this connection, by which the store was opened: a row that is new has the number 0."""
        self.connection, self._number = connection.keeping_plans(), 0

    def connected(self) -> Connection:
        """Return the connection. Make one if it broke. Raises psycopg.Error, or StoreError if the store is not ours."""
        if self.connection is None or self.connection.closed:
            self._number += 1
            self.connection = self._connect(self._number).keeping_plans()
        return self.connection

    @contextmanager
    def in_one_way(self, opened: Opened) -> Iterator[Connection]:
        """Open a transaction under the row of the node, in which nothing is answered before its end.

        Raises StoreTakenOver if the node has the store no more, StoreUnavailable if the server knows another number.
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
        """Let go of the connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
