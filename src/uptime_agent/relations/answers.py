"""Answers of parents on other nodes, for which a failed check waits.

Other nodes send no message, so their reports are read repeatedly, ever less often.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from logging import getLogger
from typing import Final

import anyio
from attrs import define

from scheduler import StoreError
from timerqueue import Clock

from ..standing import Checked, News, Recheck
from .elsewhere import Elsewhere

logger = getLogger(__name__)

LOOKS_EVERY: Final = 0.2
"""Seconds."""

SLOWER: Final = 0.1
"""Seconds added per second without an answer."""

GIVEN_UP: Final = 600.0
"""Seconds until the target is checked without the answer."""


@define
class _Asked:
    """A parent. `since`: monotonic seconds. `last`: when its previous check was due."""

    since: float
    last: datetime | None


class Answers:
    """Waits for parents on other nodes, and tells `recheck`."""

    def __init__(self, elsewhere: Elsewhere, is_here: Callable[[str], bool], recheck: Recheck, clock: Clock) -> None:
        self._elsewhere = elsewhere
        self._is_here = is_here
        self._recheck = recheck
        self._clock = clock
        self._asked: dict[str, _Asked] = {}
        self._wanted = anyio.Event()

    def hear(self, news: News) -> None:
        """Await the answers that a checked target needs. Call `Recheck.hear` first."""
        if not isinstance(news, Checked) or news.target.last is None:
            return
        for name in news.target.last.asks:
            if name not in self._asked and self._recheck.waits_for(name) and not self._is_here(name):
                self._asked[name] = _Asked(self._clock.monotonic(), self._last(name))
                self._wanted.set()

    async def run(self) -> None:
        """Read answers until cancelled."""
        while True:
            await self._wanted.wait()
            if not self._asked:
                self._wanted = anyio.Event()
                continue
            now = self._clock.monotonic()
            waited = min(now - each.since for each in self._asked.values())
            await self._clock.sleep(LOOKS_EVERY + SLOWER * waited)
            try:
                await self._elsewhere.read(self._asked)
            except StoreError as exc:
                logger.warning("targets above others cannot be looked at: %s", exc)
            for name, asked in list(self._asked.items()):
                self._look(name, asked)

    def _look(self, name: str, asked: _Asked) -> None:
        target = self._elsewhere.of(name)
        has_answered = target.last is not None and target.last.is_final and self._last(name) != asked.last
        is_late = self._clock.monotonic() - asked.since > GIVEN_UP
        if has_answered or is_late or not self._recheck.waits_for(name):
            del self._asked[name]
            self._recheck.answered(name, self._clock.wall())

    def _last(self, name: str) -> datetime | None:
        run = self._elsewhere.of(name).last_run
        return None if run is None else run.due
