"""What the agent remembers of its targets: read once for each, before it is checked for the first time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from logging import getLogger
from typing import Final

import anyio

from scheduler import Scheduler, SchedulerState, StoreError

from .record import restore
from .status import TargetStatus

logger = getLogger(__name__)

FIRST_LOOK: Final = 10
"""Records of a target among which there nearly always is a report."""

SECOND_LOOK: Final = 500


class Past:
    """Lets targets stand as they did when an earlier process last checked them.

    `tell` is called with each target that has a past.
    """

    def __init__(
        self, scheduler: Scheduler, targets: Mapping[str, TargetStatus], tell: Callable[[TargetStatus], None]
    ) -> None:
        self._scheduler = scheduler
        self._targets = targets
        self._tell = tell
        self._recalled: dict[str, anyio.Event] = {}

    async def recall_all(self) -> None:
        """All targets, one after another."""
        for name in self._targets:
            await self.recall(name)

    async def recall(self, name: str) -> None:
        """Return when it is known how the target stood. A second caller waits for the first."""
        event = self._recalled.get(name)
        if event is not None:
            await event.wait()
            return
        self._recalled[name] = event = anyio.Event()
        try:
            await self._recall(self._targets[name])
        except StoreError as exc:
            if self._scheduler.state is SchedulerState.STOPPED:  # and has closed its store
                return
            logger.warning("what was known of %r cannot be read, so it begins anew: %s", name, exc)
        finally:
            event.set()

    async def _recall(self, target: TargetStatus) -> None:
        for limit in (FIRST_LOOK, SECOND_LOOK):
            records = await self._scheduler.history(target.name, limit=limit)
            if restore(target, records):
                self._tell(target)
                return
            if len(records) < limit:
                return
