"""Duties: work of one node without a job, such as probing a server.

A duty belongs to the owner of its name's shard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scheduler.stores import LEASE, Store, View, capabilities, shard_of
from timerqueue import boottime

LOOKS_EVERY: Final = 0.2
"""Seconds."""

STALE: Final = LEASE - 0.5
"""Seconds without news: we stop half a second before others take over."""

SETTLED: Final = 2.0
"""Seconds until a duty begins. Its last owner looks meanwhile."""


class Duties:
    """One node's duties. `view` None: unknown. `now`: seconds that count during sleep."""

    def __init__(self, view: Callable[[], View | None], now: Callable[[], float] = boottime) -> None:
        self._view = view
        self._now = now
        self._seen: View | None = None
        self._seen_at = 0.0
        self._since: dict[tuple[int, int], float] = {}
        """When shards came to us, by our incarnation."""

    def look(self) -> None:
        """Update what is ours."""
        view, now = self._view(), self._now()
        if view is not None and view is not self._seen:
            self._seen, self._seen_at = view, now
            self._since = {key: self._since.get(key, now) for key in ((view.me, shard) for shard in view.ours())}
        elif now - self._seen_at > STALE:
            self._since = {}

    def is_ours(self, name: str) -> bool:
        """Whether it was ours at the last look."""
        since = None if self._seen is None else self._since.get((self._seen.me, shard_of(name)))
        return since is not None and self._now() - since >= SETTLED


def duties_of(store: Store | None) -> Duties | None:
    """Make a node's duties. None: its store is not shared."""
    sharing = capabilities(store).sharing
    return None if sharing is None else Duties(lambda: sharing.last)
