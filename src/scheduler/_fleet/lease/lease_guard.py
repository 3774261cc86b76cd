"""LeaseGuard: until when we rely on our lease. A run asks before it begins. A call that cannot reach the store doubts.

The lease continues for a while after the last answer of the store. Meanwhile the others may bury us, because they hear
the end of our session at once. What ends a session ends other connections, too. So a call that finds its connection
broken doubts, and nothing begins before the store has answered again. Runs go on as long as the lease does.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from ...stores import StoreError, StoreTakenOver


class LeaseGuard:
    """Our belief that no other node has our jobs. `now`: seconds that count while the machine sleeps too. Any thread.

    `until`: the end of the belief, by that clock. `hint`: set when the store should be asked soon. `doubts`: how often
    there was a reason to ask.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.until = 0.0
        self.hint = Event()
        self.doubts = 0
        self.heard_since: float | None = None
        """Since when the store has answered each look. None: it did not answer the last one."""
        self._dispelled = 0

    def is_held(self) -> bool:
        """Return whether no other node can have our jobs, as far as we know."""
        return self.now() < self.until

    def is_sure(self) -> bool:
        """Return whether the belief was confirmed after the last doubt: our jobs may begin."""
        return self._dispelled == self.doubts and self.now() < self.until

    def doubt(self, error: StoreError) -> None:
        """Begin nothing before the store has been asked: it did not answer, or says that we have been buried."""
        self.doubts += 1
        if isinstance(error, StoreTakenOver):
            self.until = 0.0
        self.hint.set()

    def dispel(self, doubts: int) -> None:
        """Note that the store has confirmed us. `doubts`: the number of doubts when it was asked."""
        self._dispelled = doubts
        if self.heard_since is None:
            self.heard_since = self.now()
