"""Duties: what one of the agents that share a store does alone, and that is no job of it, such as to probe a server.

A duty belongs to whoever has the shard of its name, so all know whose it is without a word, and it goes to another
agent as jobs do: when its agent dies, leaves, is cut off, or has a clock that is off. Whoever gets one waits until the
one before has seen that it is gone, so no duty is done twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scheduler.stores import LEASE, Sharing, Store, View, shard_of
from timerqueue import boottime

LOOKS_EVERY: Final = 0.2
"""Seconds between two looks at whose duties are whose."""

STALE: Final = LEASE - 0.5
"""Seconds without news of the store after which nothing is ours any more: others have it half a second later."""

SETTLED: Final = 2.0
"""Seconds after which something that has come to us is begun: by then who had it has looked around, too."""


class Duties:
    """The duties of one agent. `view`: asked who has which shard; None: nobody knows. `now`: seconds that count while
    the machine sleeps, too.
    """

    def __init__(self, view: Callable[[], View | None], now: Callable[[], float] = boottime) -> None:
        self._view = view
        self._now = now
        self._seen: View | None = None
        self._seen_at = 0.0
        self._since: dict[tuple[int, int], float] = {}
        """When each shard came to us, by our incarnation and its number."""

    def look(self) -> None:
        """See what is ours by now."""
        view, now = self._view(), self._now()
        if view is not None and view is not self._seen:
            self._seen, self._seen_at = view, now
            self._since = {key: self._since.get(key, now) for key in ((view.me, shard) for shard in view.ours())}
        elif now - self._seen_at > STALE:
            self._since = {}

    def is_ours(self, name: str) -> bool:
        """Whether the duty of that name was ours when we looked last."""
        since = None if self._seen is None else self._since.get((self._seen.me, shard_of(name)))
        return since is not None and self._now() - since >= SETTLED


def duties_of(store: Store | None) -> Duties | None:
    """Make the duties of an agent. None: nobody shares its store, so all that is to be done is for it to do."""
    sharing: Sharing | None = getattr(store, "sharing", None)
    return None if sharing is None else Duties(lambda: sharing.last)
