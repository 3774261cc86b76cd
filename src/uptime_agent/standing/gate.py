"""The gate: whether this machine is online, asked when a check has failed.

While no probe answers, a failure says nothing about its target. One answer is enough, but must be younger than the
failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
from attrs import frozen

from timerqueue import Clock

from ..checks import CheckResult, Status, TargetCheck

_MOST_NAMED: Final = 3


@frozen
class OnlineTarget:
    """A probe. `name`: for people."""

    name: str
    check: TargetCheck


class Gate:
    """Always open without probes. `every`: least seconds between rounds."""

    def __init__(self, clock: Clock, probes: Sequence[OnlineTarget] = (), every: float = 0.0) -> None:
        self._clock = clock
        self._probes = probes
        self._every = every
        self._asked: float | None = None
        self._was_offline: float | None = None
        self._trouble: str | None = None
        self._asking: anyio.Event | None = None
        self.rounds = 0

    async def why_offline(self, began: float) -> str | None:
        """Why this machine was offline at some time since `began` (monotonic seconds), or None."""
        if not self._probes:
            return None
        failed = self._clock.monotonic()
        while self._asked is None or self._asked < failed:
            if self._was_offline is not None and self._was_offline >= began:
                break
            if self._asking is None:
                await self._ask()
            else:
                await self._asking.wait()
        return self._trouble if self._was_offline is not None and self._was_offline >= began else None

    async def _ask(self) -> None:
        self._asking = asking = anyio.Event()
        try:
            if self._asked is not None:
                await self._clock.sleep(max(self._asked + self._every - self._clock.monotonic(), 0.0))
            asked, self.rounds = self._clock.monotonic(), self.rounds + 1
            troubles = await self._round()
            self._asked = asked
            if troubles is not None:
                self._was_offline, self._trouble = asked, _offline(troubles)
        finally:
            self._asking = None
            asking.set()

    async def _round(self) -> dict[str, str] | None:
        """Returns troubles by name. None: a probe has answered."""
        troubles: dict[str, str] = {}

        async def ask(probe: OnlineTarget) -> None:
            found = await probe.check.run()
            if isinstance(found, CheckResult) and found.status in (Status.DOWN, Status.UNKNOWN):
                troubles[probe.name] = found.error or found.status.value
            else:
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for probe in self._probes:
                group.start_soon(ask, probe)
        has_answered = len(troubles) < len(self._probes)
        return None if has_answered else {each.name: troubles[each.name] for each in self._probes}


def _offline(troubles: dict[str, str]) -> str:
    names = list(troubles)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"we are offline: no answer from {', '.join(names[:_MOST_NAMED])}{more} ({troubles[names[0]]})"
