"""Duties: work without a job that only one of the nodes does, such as probing a server.

A duty belongs to the node that has the shard of its name, so all know the owner without a message. It moves like jobs:
when its node dies, leaves, is cut off, or has a wrong clock. A new owner waits until the old one has noticed, so that
no duty is done twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scheduler.stores import LEASE, Store, View, capabilities, shard_of
from timerqueue import boottime

LOOKS_EVERY: Final = 0.2
"""Seconds between two looks at the owners."""

STALE: Final = LEASE - 0.5
"""Seconds without news of the store after which nothing is ours: others have it half a second later."""

SETTLED: Final = 2.0
"""Seconds until a new duty begins: its last owner has looked again meanwhile."""


class Duties:
    """The duties of one node. `view`: the owner of each shard; None: unknown. `now`: seconds that count during sleep,
    too.
    """

    def __init__(self, view: Callable[[], View | None], now: Callable[[], float] = boottime) -> None:
        self._view = view
        self._now = now
        self._seen: View | None = None
        self._seen_at = 0.0
        self._since: dict[tuple[int, int], float] = {}
        """When each shard came to us, by our incarnation and its number."""

    def look(self) -> None:
        """Find out what is ours now."""
        view, now = self._view(), self._now()
        if view is not None and view is not self._seen:
            self._seen, self._seen_at = view, now
            self._since = {key: self._since.get(key, now) for key in ((view.me, shard) for shard in view.ours())}
        elif now - self._seen_at > STALE:
            self._since = {}

    def is_ours(self, name: str) -> bool:
        """Whether the duty of that name was ours at the last look."""
        since = None if self._seen is None else self._since.get((self._seen.me, shard_of(name)))
        return since is not None and self._now() - since >= SETTLED


def duties_of(store: Store | None) -> Duties | None:
    """Make the duties of a node. None: its store is not shared, so all duties are its own."""
    sharing = capabilities(store).sharing
    return None if sharing is None else Duties(lambda: sharing.last)
