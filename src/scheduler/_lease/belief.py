"""Belief: until when we rely on our lease. Whoever begins a run asks, and whoever cannot reach the store doubts.

The lease goes on for a while after the store was asked last, and yet the others may have buried us: they hear the end
of our session at once. What ends that ends other connections, too. So who finds one broken says so here, and nothing
begins before the store has answered again that we are there. What runs goes on as long as the lease does.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from ..stores import StoreError, StoreTakenOver


class Belief:
    """Our belief that nobody else has what is ours. `now`: seconds that count while the machine sleeps too. Any thread.

    `until`: the end of it, by that clock. `hint` is set when the store is to be asked soon. `doubts`: how often there
    was reason to ask.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.until = 0.0
        self.hint = Event()
        self.doubts = 0
        self.heard_since: float | None = None
        """Since when the store has answered each look; None: it did not answer the last one."""
        self._dispelled = 0

    def is_held(self) -> bool:
        """Whether nobody else can have what is ours, as far as we know."""
        return self.now() < self.until

    def is_sure(self) -> bool:
        """Whether that has been said since we doubted it last: what is ours may begin."""
        return self._dispelled == self.doubts and self.now() < self.until

    def doubt(self, error: StoreError) -> None:
        """Begin nothing before the store has been asked: it did not answer, or says that we have been buried."""
        self.doubts += 1
        if isinstance(error, StoreTakenOver):
            self.until = 0.0
        self.hint.set()

    def dispel(self, doubts: int) -> None:
        """Take note that we are there, as the store says that was asked when there were so many doubts."""
        self._dispelled = doubts
        if self.heard_since is None:
            self.heard_since = self.now()
