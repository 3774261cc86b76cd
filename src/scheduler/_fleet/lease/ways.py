"""A node's connections to its store, besides its lease's. On the loop.

A node may keep its lease and get no other connection: the server is full, or the password has changed. Others leave it
its shards, so it must find out itself whether they could serve them.
"""

from __future__ import annotations

from ...stores import StoreBusy, StoreUnreachable
from .lease_guard import LeaseGuard


class StoreWays:
    def __init__(self, lease_guard: LeaseGuard) -> None:
        self._lease_guard = lease_guard
        self._closed: dict[str, float] = {}

    def tried(self, way: str, error: Exception | None) -> None:
        """A store that answers with an error has been reached."""
        if isinstance(error, StoreUnreachable):
            self._closed.setdefault(way, self._lease_guard.now())
        elif not isinstance(error, StoreBusy):
            self._closed.pop(way, None)

    def closed_for(self, *ways: str) -> float:
        """Return for how many seconds one of these ways, by default any, was closed while the lease was renewed."""
        heard_since = self._lease_guard.heard_since
        since = [at for way, at in self._closed.items() if not ways or way in ways]
        if heard_since is None or not since:
            return 0.0
        return self._lease_guard.now() - max(heard_since, min(since))

    def forget(self) -> None:
        self._closed.clear()
