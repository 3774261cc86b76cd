"""The connections that one store has made, and the sessions of the server whose connections broke."""

from __future__ import annotations

from threading import Lock

from .connection import Asked, Connection


class Made:
    """The connections of one store. Any thread."""

    def __init__(self) -> None:
        self._connections: list[Connection] = []
        self._left: set[int] = set()
        self._lock = Lock()

    def note(self, connection: Connection) -> Connection:
        """Note a new connection, and which of the others have ended. Return it."""
        with self._lock:
            self._left.update(each.pid for each in self._connections if each.closed and each.pid)
            self._connections = [connection, *(each for each in self._connections if not each.closed)]
        return connection

    def ending_left(self, connection: Connection) -> list[Asked]:
        """Return what the connection asks so that the server ends the sessions that were left, if there are any."""
        return [connection.ending(self._left.copy())] if self._left else []

    def have_ended(self, asked: list[Asked]) -> None:
        """Forget the sessions that the server was asked to end."""
        for _, (sessions, _) in asked:
            self._left.difference_update(sessions)

    def count(self) -> int:
        """Return how many connections are open."""
        return sum(not each.closed for each in self._connections)
