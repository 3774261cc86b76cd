"""Ways: the connections of a node to its store, other than that of its lease.

A node may keep its lease and yet be unable to commit, or to read jobs. Its connection broke, and it gets no other: the
server is full, the password was changed or the host name is gone. The other nodes leave its shards to it, because its
lease is renewed. So the node itself must find out whether the others can do what it cannot.
"""

from __future__ import annotations

from ...stores import StoreBusy, StoreUnreachable
from .lease_guard import LeaseGuard


class Ways:
    """The ways of one node to its store. On the loop. A way is closed while calls find no connection."""

    def __init__(self, lease_guard: LeaseGuard) -> None:
        self._lease_guard = lease_guard
        self._closed: dict[str, float] = {}

    def tried(self, way: str, error: Exception | None) -> None:
        """Note the outcome of a call. A store that answers with an error has been reached."""
        if isinstance(error, StoreUnreachable):
            self._closed.setdefault(way, self._lease_guard.now())
        elif not isinstance(error, StoreBusy):
            self._closed.pop(way, None)

    def closed_for(self, *ways: str) -> float:
        """Return the seconds for which one of these ways, by default any, has been closed while the lease was renewed.

        A way that closed when the whole store was away counts from the store's next answer to the lease.
        """
        heard_since = self._lease_guard.heard_since
        since = [at for way, at in self._closed.items() if not ways or way in ways]
        if heard_since is None or not since:
            return 0.0
        return self._lease_guard.now() - max(heard_since, min(since))

    def forget(self) -> None:
        """Start counting again: all connections are new."""
        self._closed.clear()
