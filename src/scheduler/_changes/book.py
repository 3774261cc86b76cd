"""Where changes are noted: in the store with the change, or without a store in a ring in memory. Any thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Any, Final

from anyio.to_thread import run_sync

from .._loop import Core
from ..stores import MadeChanges, Store, StoredChange, capabilities
from .acting import LONGEST, acting
from .change import Change, change_of, short_text

KEPT: Final = 1_000
"""Changes that are kept without a store."""

TOGETHER_US: Final = 1_000_000
"""Changes this near have instants of their own, in order. Else the clock was set."""


class ChangeBook:
    def __init__(self, core: Core, store: Store | None) -> None:
        self._core = core
        self._rows: MadeChanges | None = capabilities(store).made_changes
        self._is_immediate = store is not None and store.is_immediate
        self._ring: deque[StoredChange] = deque(maxlen=KEPT)
        self._lock = Lock()
        self._last_us = 0

    def made(self, act: str, scope: str, *, reason: str | None = None) -> StoredChange:
        """Return a change by who acts now. Nothing is noted yet."""
        who = acting()
        if reason is None and who is not None:
            reason = who.reason
        reason = None if reason is None else reason[:LONGEST]
        return StoredChange(0, self._now_us(), act, scope, None if who is None else who.actor, reason)

    def note(
        self, change: StoredChange, before: Mapping[str, Any] | None = None, after: Mapping[str, Any] | None = None
    ) -> None:
        """Note the change. With a store on the loop, in the batch of the change."""
        noted = change._replace(before=short_text(before), after=short_text(after))
        if self._rows is None:
            self._ring.append(noted)
        else:
            self._core.loop.call(self._core.journal.made, noted)

    async def read(self, scope: str | None, actor: str | None, limit: int, before_us: int | None) -> list[Change]:
        """Return changes, latest first. Raises StoreError."""
        if self._rows is None:
            return [*map(change_of, self._of_ring(scope, actor, before_us)[:limit])]
        read = partial(self._rows.read, scope=scope, actor=actor, limit=limit, before_us=before_us)
        return [*map(change_of, await self._asked(read))]

    async def _asked(self, read: Callable[[], list[StoredChange]]) -> list[StoredChange]:
        return read() if self._is_immediate else await run_sync(read, abandon_on_cancel=True)

    def _of_ring(self, scope: str | None, actor: str | None, before_us: int | None) -> list[StoredChange]:
        found = [
            each
            for each in self._ring.copy()
            if scope in {None, each.scope}
            and actor in {None, each.actor}
            and (before_us is None or each.at_us < before_us)
        ]
        return sorted(found, key=lambda each: each.at_us, reverse=True)

    def _now_us(self) -> int:
        """No two changes of this process have one instant: pages end between them."""
        now_us = self._core.timeline.us(self._core.monotonic(), steady=False)
        with self._lock:
            if 0 <= self._last_us - now_us < TOGETHER_US:
                now_us = self._last_us + 1
            self._last_us = now_us
            return now_us
