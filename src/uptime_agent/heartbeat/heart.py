"""The heartbeat: the agent reports to a receiver outside that it is well, and its silence is the alarm.

The event loop must be on time, the store take records, no channel be stuck. Each may fail for the grace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import anyio
from attrs import define, field

from timerqueue import Clock

from ..checks import CheckResult, Family, Mode, Resolver, Status, TargetCheck
from ..text import Redactor, wording
from .plan import Heartbeat
from .vitals import Vitals

LOOKS: Final = 5

LATE: Final = 1.0
"""Seconds. A later event loop is not well."""

MAX_REQUEST_S: Final = 10.0
"""Seconds of a request."""


@define(eq=False)
class Bounds:
    """How long trouble has lasted. `grace`: seconds that it may."""

    grace: float
    _well: dict[str, float] = field(factory=dict)

    def look(self, now: float, troubles: Mapping[str, str | None]) -> None:
        """Note troubles. A new thing counts as well until now."""
        for name, trouble in troubles.items():
            if trouble is None:
                self._well[name] = now
            else:
                self._well.setdefault(name, now)

    def trouble(self, now: float, troubles: Mapping[str, str | None]) -> str | None:
        """The first that outlasts the grace."""
        lasting = (trouble for name, trouble in troubles.items() if now - self._well.get(name, now) > self.grace)
        return next((trouble for trouble in lasting if trouble is not None), None)


class Heart:
    """Requests with `check` while `look` returns no lasting trouble; `say` is told of silence."""

    def __init__(
        self,
        plan: Heartbeat,
        check: TargetCheck,
        look: Callable[[], Mapping[str, str | None]],
        clock: Clock,
        say: Callable[[str], object],
    ) -> None:
        self._plan = plan
        self._check = check
        self._look = look
        self._clock = clock
        self._say = say
        self._bounds = Bounds(plan.grace)
        self._silent_for: str | None = None
        self._untaken: str | None = None
        self._is_asking = False

    async def run(self) -> None:
        """Request while well, until cancelled."""
        due = ask_at = self._clock.monotonic()
        async with anyio.create_task_group() as group:
            while True:
                now = self._clock.monotonic()
                trouble = self._trouble(now, now - due)
                if now >= ask_at:
                    ask_at = now + self._plan.interval
                    self._tell_silence(trouble)
                    if trouble is None and not self._is_asking:
                        self._is_asking = True
                        group.start_soon(self._ask)
                wait = min(self._plan.grace / LOOKS, ask_at - now)
                due = now + wait
                await self._clock.sleep(wait)

    def _trouble(self, now: float, lateness: float) -> str | None:
        late = f"this process is late by {wording.latency(lateness)}" if lateness > LATE else None
        troubles = {"loop": late, **self._look()}
        self._bounds.look(now, troubles)
        return self._bounds.trouble(now, troubles)

    async def _ask(self) -> None:
        try:
            found = await self._check.run()
        finally:
            self._is_asking = False
        is_taken = isinstance(found, CheckResult) and found.status is Status.UP
        error = None if is_taken or not isinstance(found, CheckResult) else found.error
        if error is not None and self._untaken is None:
            self._say(f"the heartbeat is not taken: {error}")
        elif error is None and self._untaken is not None:
            self._say("the heartbeat is taken again")
        self._untaken = error

    def _tell_silence(self, trouble: str | None) -> None:
        if trouble is not None and self._silent_for is None:
            self._say(f"no heartbeat is sent: {trouble}")
        elif trouble is None and self._silent_for is not None:
            self._say("heartbeats are sent again")
        self._silent_for = trouble


def heart_of(
    plan: Heartbeat | None,
    vitals: Vitals,
    *,
    resolver: Resolver,
    clock: Clock,
    redactor: Redactor,
    say: Callable[[str], object],
) -> Heart | None:
    """Make a heart, if configured."""
    if plan is None:
        return None
    check = TargetCheck(
        check=plan.check,
        needs=(),
        timeout=min(plan.interval, MAX_REQUEST_S),
        mode=Mode.ANY,
        family=Family.ANY,
        degraded_above=None,
        resolver=resolver,
        clock=clock,
        redactor=redactor,
    )
    return Heart(plan, check, vitals.look, clock, say)
