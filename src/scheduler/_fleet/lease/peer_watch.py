"""A node waits for the end of its neighbour's session: a death is known at once.

Nodes stand in a ring by epoch. The end of a session is a hint: the store looks again before a burial. A node that only
lost its session loses its incarnation, but no tick. Without sessions (behind a pooler) leases end after their time. In
its own thread.
"""

from __future__ import annotations

from collections.abc import Collection
from logging import getLogger
from threading import Event, Thread
from typing import Final

from ...stores import Sharing, StoreError, View

logger = getLogger(__name__)

DEAF: Final = 2.0
"""Seconds between attempts, after a failure."""

TURN: Final = 0.02
"""Seconds from a session's end until it is told.

Until a healthy node learns that itself, it begins durable ticks.
"""


class PeerWatch:
    def __init__(self, sharing: Sharing, hint: Event) -> None:
        self._sharing = sharing
        self._hint = hint
        self._neighbour: int | None = None
        self._heard: set[int] = set()
        self._change = Event()
        self._is_over = True
        self._thread: Thread | None = None

    def begin(self) -> None:
        self._neighbour, self._is_over = None, False

    def end(self) -> None:
        """The thread ends within some tenths of a second."""
        self._is_over = True
        self._change.set()

    def join(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(seconds)

    def heard(self) -> Collection[int]:
        """Return the epochs of sessions that have ended since the last call."""
        heard, self._heard = self._heard, set()
        return heard

    def again(self, heard: Collection[int]) -> None:
        """Let `heard` return these epochs again: they are not buried yet."""
        self._heard.update(heard)

    def follow(self, view: View) -> None:
        neighbour = _neighbour(view)
        if neighbour == self._neighbour or self._is_over:
            return
        self._neighbour = neighbour
        self._change.set()
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._listen, name="scheduler hearing", daemon=True)
            self._thread.start()

    def _listen(self) -> None:
        while not self._is_over:
            self._change.clear()
            neighbour = self._neighbour
            if neighbour is None:
                self._change.wait()
                continue
            try:
                if not self._sharing.hear(neighbour, lambda each=neighbour: self._is_over or self._neighbour != each):  # type: ignore[misc]
                    continue
                self._change.wait(TURN)
                self._heard.add(neighbour)
                self._hint.set()
            except StoreError as exc:
                logger.debug("the neighbour is not heard: %s", exc)
            self._change.wait(DEAF)


def _neighbour(view: View) -> int | None:
    ring = sorted(peer.epoch for peer in view.peers if peer.is_heard and peer.epoch != view.me)
    return next((epoch for epoch in ring if epoch > view.me), ring[0] if ring else None)
