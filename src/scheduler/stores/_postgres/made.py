from __future__ import annotations

from threading import Lock

from .connection import Asked, StoreConnection


class Made:
    """One store's connections, and the sessions of broken ones. Any thread."""

    def __init__(self) -> None:
        self._connections: list[StoreConnection] = []
        self._left: set[int] = set()
        self._lock = Lock()

    def note(self, connection: StoreConnection) -> StoreConnection:
        with self._lock:
            self._left.update(each.pid for each in self._connections if each.closed and each.pid)
            self._connections = [connection, *(each for each in self._connections if not each.closed)]
        return connection

    def ending_left(self, connection: StoreConnection) -> list[Asked]:
        return [connection.ending(self._left.copy())] if self._left else []

    def have_ended(self, asked: list[Asked]) -> None:
        for _, (sessions, _) in asked:
            self._left.difference_update(sessions)

    def count(self) -> int:
        return sum(not each.closed for each in self._connections)
