"""Until when we rely on our lease. A run asks before it begins.

Others hear the end of our session at once, and may bury us before the lease ends. So after a broken connection nothing
begins before the store has answered. Present runs go on.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from ...stores import StoreError, StoreTakenOver


class LeaseGuard:
    """Our belief that no other node has our jobs. Any thread.

    `now`: seconds that count while the machine sleeps, too. `hint`: ask the store soon.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.until = 0.0
        self.hint = Event()
        self.doubts = 0
        self.heard_since: float | None = None
        """Since when the store answers each look."""
        self._dispelled = 0

    def is_held(self) -> bool:
        return self.now() < self.until

    def is_sure(self) -> bool:
        """Return whether our jobs may begin: the last doubt is dispelled."""
        return self._dispelled == self.doubts and self.now() < self.until

    def doubt(self, error: StoreError) -> None:
        self.doubts += 1
        if isinstance(error, StoreTakenOver):
            self.until = 0.0
        self.hint.set()

    def dispel(self, doubts: int) -> None:
        """`doubts`: their number when the store was asked."""
        self._dispelled = doubts
        if self.heard_since is None:
            self.heard_since = self.now()
