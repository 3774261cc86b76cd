"""Recall targets from history, before their first checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from logging import getLogger
from typing import Final

import anyio

from scheduler import JobNotFound, Record, Scheduler, SchedulerState, StoreError, StoreUnavailable
from timerqueue import Clock

from .reading import restore
from .status import TargetStatus

logger = getLogger(__name__)

FIRST_LOOK: Final = 10
"""Records. They nearly always include a report."""

SECOND_LOOK: Final = 500

ROUNDING: Final = 0.001
"""Seconds by which stored instants may differ from a job's."""

PATIENCE: Final = 4.0
"""Seconds. Then a target starts without a past."""

WAITS: Final = (0.5, 2.0)
"""Seconds between attempts."""


class Recall:
    """Restores targets from history. `tell` gets targets with a past. `clean` masks secrets.

    `is_new`: a target added since its last check begins again. `is_ours`: no other node has it.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        targets: Mapping[str, TargetStatus],
        tell: Callable[[TargetStatus], None],
        clock: Clock,
        clean: Callable[[str], str] = str,
        *,
        is_new: Callable[[str], bool] = lambda _name: False,
        is_ours: Callable[[str], bool] = lambda _name: True,
    ) -> None:
        self._is_new = is_new
        self._is_ours = is_ours
        self._scheduler = scheduler
        self._clock = clock
        self._clean = clean
        self._targets = targets
        self._tell = tell
        self._recalled: dict[str, anyio.Event] = {}
        self._said: dict[str, str] = {}

    def forget(self, name: str) -> None:
        """Forget a target."""
        self._recalled.pop(name, None)
        self._said.pop(name, None)

    def has(self, name: str) -> bool:
        """Whether the past is known, or known to be missing."""
        event = self._recalled.get(name)
        return event is not None and event.is_set()

    async def recall_all(self) -> None:
        """Recall our targets, unless the store is empty."""
        if not await self._is_there_a_past():
            for name in self._targets.keys() - self._recalled.keys():
                self._recalled[name] = event = anyio.Event()
                event.set()
        for name in list(self._targets):  # they change with the configuration
            if name in self._targets and self._is_ours(name):
                await self.recall(name)

    async def recall(self, name: str) -> None:
        """Recall a target once. If the first caller is cancelled, the next continues."""
        while not self.has(name) and name in self._targets:
            event = self._recalled.get(name)
            if event is None:
                await self._begin(name)
            else:
                await event.wait()

    async def _begin(self, name: str) -> None:
        self._recalled[name] = event = anyio.Event()
        try:
            with anyio.move_on_after(PATIENCE) as scope:
                await self._recall(self._targets[name])
            if scope.cancelled_caught:
                said = self._said.get(name)
                self._start_over(name, f"no answer within {PATIENCE:g} s" if said is None else said)
        except StoreError as exc:
            self._start_over(name, str(exc))
        except anyio.get_cancelled_exc_class():
            if self._recalled.get(name) is event:  # others wait: a check that was cut off must not answer them
                del self._recalled[name]
            raise
        finally:
            event.set()

    async def _is_there_a_past(self) -> bool:
        try:
            return bool(await self._scheduler.history(limit=1))
        except StoreError:  # `recall` of a target says why
            return True

    def _start_over(self, name: str, reason: str) -> None:
        if self._scheduler.state is not SchedulerState.STOPPED:  # a stopped scheduler has closed its store
            logger.warning("what was known of %r cannot be read, so it begins anew: %s", name, reason)

    async def _recall(self, target: TargetStatus) -> None:
        for limit in (FIRST_LOOK, SECOND_LOOK):
            records = await self._ask(target.name, limit)
            if limit == FIRST_LOOK and self._is_set_back(target.name, records):
                continue
            if restore(target, records, self._clean):
                if self._is_new(target.name):
                    target.begin_anew()
                elif target.status is not None and target.last is not None:
                    self._tell(target)
                return
            if len(records) < limit:
                return

    def _is_set_back(self, name: str, records: Sequence[Record]) -> bool:
        """Whether the clock was set back. Then the last run is far behind."""
        begun = next((record.started.timestamp() for record in records if record.started is not None), None)
        try:
            last = self._scheduler.get(name).statistics().last_start
        except JobNotFound:  # its schedule has ended
            return False
        return begun is not None and last is not None and begun > last + ROUNDING

    async def _ask(self, name: str, limit: int) -> list[Record]:
        for wait in WAITS:
            try:
                return await self._scheduler.history(name, limit=limit)
            except StoreUnavailable as exc:
                self._said[name] = str(exc)
                if self._scheduler.state is SchedulerState.STOPPED:
                    raise
            await self._clock.sleep(wait)
        return await self._scheduler.history(name, limit=limit)
