"""Vital parts besides the event loop."""

from __future__ import annotations

from scheduler import Scheduler, StoreStatistics

from ..notify import Outbox


class Vitals:
    """The store and the channels."""

    def __init__(self, scheduler: Scheduler, outbox: Outbox) -> None:
        self._scheduler = scheduler
        self._outbox = outbox
        self._commits = 0

    def look(self) -> dict[str, str | None]:
        """Troubles since the last call, in words."""
        stuck = self._outbox.stuck()
        of_channels = {
            f"channel {name}": f"channel {name} takes no messages" if is_stuck else None
            for name, is_stuck in stuck.items()
        }
        return {"store": self._trouble_of(self._scheduler.statistics().store), **of_channels}

    def _trouble_of(self, store: StoreStatistics | None) -> str | None:
        if store is None:
            return None
        commits, self._commits = self._commits, store.commits
        if store.trouble is not None:
            return f"nothing can be stored: {store.trouble}"
        return "the store does not answer" if store.unsaved and store.commits == commits else None
