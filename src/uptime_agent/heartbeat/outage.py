"""An outage of the store is told over all channels, like a target's."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Final

from scheduler import StoreDown, StoreUp
from timerqueue import Clock

from ..checks import Status
from ..standing import Closed, Incident, Opened

OURS: Final = f"the store of the agent on {platform.node()}"
"""Its name in messages, which are in memory alone."""

TOLD_AFTER: Final = 10.0
"""Seconds."""

LOOK_EVERY: Final = 1.0


class StoreOutage:
    """`tell` gets each outage that lasts, and its end. `is_shared`: other nodes may have our targets meanwhile."""

    def __init__(self, tell: Callable[[Opened | Closed], object], clock: Clock, *, is_shared: bool) -> None:
        self._tell = tell
        self._clock = clock
        self._checks = "checks wait while other agents may have them" if is_shared else "checks go on in memory"
        self._down: StoreDown | None = None
        self._since = 0.0
        self._told: Incident | None = None

    def listen(self, event: StoreDown | StoreUp) -> None:
        """Note that the store fails, or works."""
        if isinstance(event, StoreDown):
            self._since = self._clock.monotonic() if self._down is None else self._since
            self._down = event
            return
        if self._told is not None:
            self._tell(Closed(self._told, self._clock.wall()))
        self._down = self._told = None

    async def run(self) -> None:
        """Tell of outages, until cancelled."""
        while True:
            await self._clock.sleep(LOOK_EVERY)
            if self._down is not None and self._told is None and self._clock.monotonic() - self._since >= TOLD_AFTER:
                self._told = self._incident(self._down)
                self._tell(Opened(self._told))

    def _incident(self, down: StoreDown) -> Incident:
        began = down.at.timestamp()
        id = f"store-{platform.node()}-{int(began * 1000)}"
        error = f"nothing can be stored, and {self._checks}: {down.error}"
        return Incident(id, OURS, began, Status.DOWN, error)
