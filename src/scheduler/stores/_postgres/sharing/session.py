"""The session that renews the lease, and whose lock shows other nodes that we live.

Our neighbour takes the session's end for our death, so a slow server must not close it. It is set aside with its
unanswered question, and a substitute renews the lease. Once the session answers, it is used again. If it breaks, the
substitute takes the lock (test_slow_renewals.py).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from ..connection import Silent, StoreConnection, one_row, psycopg, sql
from ..spare import Spare
from ..table import Row
from .statements import Presence

PATIENCE: Final = 15
"""Tenths of a second of silence: half a lease."""


class LeaseSession:
    """One thread uses it. `asked`, `answered`: of the last statement, by `now`."""

    def __init__(
        self, connect: Callable[[], StoreConnection], presence: Presence, now: Callable[[], float], spare: Spare
    ) -> None:
        self._connect = connect
        self._presence = presence
        self._now = now
        self._spare = spare
        self._current: StoreConnection | None = None
        self._aside: StoreConnection | None = None
        self.in_session = False
        """Whether others hear its end."""
        self.asked = self.answered = 0.0
        self._closings = 0
        self._closing = Lock()

    def ask(self, epoch: int, statement: sql.Composed, said: dict[str, Any]) -> Row:
        connection = self._chosen()
        try:
            self.in_session = self._presence.show(connection, epoch)  # the others wait for its end
            self.asked = self._now()
            row = one_row(connection.execute(statement, said | {"in_session": self.in_session}))
        except Silent:
            self._give_up(connection)
            raise
        except BaseException:
            connection.close()
            raise
        self.answered = self._now()
        return row

    def close(self) -> None:
        """Any thread."""
        with self._closing:
            self._closings += 1
            for connection in (self._current, self._aside):
                if connection is not None:
                    connection.close()
            self._current = None
        self._set_aside(None)

    def _chosen(self) -> StoreConnection:
        if self._has_come_back():
            if self._current is not None:
                self._current.close()
            self._current, self.in_session = self._aside, True
            self._set_aside(None)
        connection = self._current
        if connection is None or connection.closed:
            connection = self._made()
        connection.silence = 0
        connection.patience = PATIENCE
        if self._aside is None:
            connection.outlives_silence = True
        else:
            connection.why_unwanted = self._why_unwanted  # type: ignore[method-assign]
        return connection

    def _made(self) -> StoreConnection:
        closings, connection = self._closings, self._connect()
        with self._closing:
            if self._closings == closings:
                self._current, self.in_session = connection, False
                return connection
        connection.close()
        msg = "the store was closed while its lease connected"
        raise psycopg.OperationalError(msg)

    def _give_up(self, connection: StoreConnection) -> None:
        """Set it aside if others hear its end, else close it."""
        if self._aside is None and self.in_session and not connection.closed:
            self._current = None
            self._set_aside(connection)
        else:
            connection.close()

    def _set_aside(self, connection: StoreConnection | None) -> None:
        """With two sessions, do not hear the neighbour over a third."""
        self._aside = connection
        if connection is None:
            self._spare.let_be(self)
        else:
            self._spare.need(self)

    def _why_unwanted(self) -> str:
        return "the session that was set aside has answered" if self._has_come_back() else ""

    def _has_come_back(self) -> bool:
        aside = self._aside
        if aside is None:
            return False
        try:
            return aside.has_caught_up()
        except psycopg.Error:
            aside.close()
            self._set_aside(None)
            return False
