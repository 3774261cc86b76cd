"""PeerWatch: a node waits for the session of its neighbour to end, so that a death is known at once.

The nodes that share a store stand in a ring, by their epochs, and each waits for the next one. So each death has one
neighbour who hears it. If that neighbour has died too, it is heard as soon as the first is buried. The end of a session
is a hint: the store looks again before it buries a node. A node that has only lost its session loses its incarnation,
and no tick.

Without sessions (behind a pooler) nothing is heard, and leases end after their time. In a thread of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from logging import getLogger
from threading import Event, Thread
from typing import Final

from ...stores import Sharing, StoreError, View

logger = getLogger(__name__)

DEAF: Final = 2.0
"""Seconds between attempts to hear, after a failure."""

TURN: Final = 0.02
"""Seconds from the end of a session until it is told.

A healthy node whose connections broke learns it at about the same time. Until then it begins ticks that have just
become durable.
"""


class PeerWatch:
    """The hearing of one node. `hint`: set when a session has ended."""

    def __init__(self, sharing: Sharing, hint: Event) -> None:
        self._sharing = sharing
        self._hint = hint
        self._neighbour: int | None = None
        self._heard: set[int] = set()
        self._change = Event()
        self._is_over = True
        self._thread: Thread | None = None

    def begin(self) -> None:
        """Wait for neighbours from now on."""
        self._neighbour, self._is_over = None, False

    def end(self) -> None:
        """Stop waiting. The thread ends within some tenths of a second."""
        self._is_over = True
        self._change.set()

    def join(self, seconds: float) -> None:
        """Return when the thread has ended, or after `seconds`."""
        if self._thread is not None:
            self._thread.join(seconds)

    def heard(self) -> Collection[int]:
        """Return the epochs whose sessions have ended since the last call, and those from `again`."""
        heard, self._heard = self._heard, set()
        return heard

    def again(self, heard: Collection[int]) -> None:
        """Return these epochs at the next call of `heard`, too: they could not be buried yet."""
        self._heard.update(heard)

    def follow(self, view: View) -> None:
        """Wait for the present neighbour from now on."""
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
    """Return the next node in the ring that can be heard. None: there is no other."""
    ring = sorted(peer.epoch for peer in view.peers if peer.is_heard and peer.epoch != view.me)
    return next((epoch for epoch in ring if epoch > view.me), ring[0] if ring else None)
