"""The latest events, numbered, in a ring. It listens from the first question on."""

from __future__ import annotations

from collections import deque
from itertools import islice
from threading import Lock
from typing import Final

from attrs import evolve

from .._values import Event, EventPage, Listeners, NumberedEvent, RunEnded

KEPT: Final = 4_096
"""Events."""


class RecentEvents:
    """Any thread may read; the loop tells."""

    def __init__(self, listeners: Listeners) -> None:
        self._listeners = listeners
        self._ring: deque[NumberedEvent] = deque(maxlen=KEPT)
        self._lock = Lock()
        self._last = 0
        self._is_listening = False

    def read(self, after: int | None, limit: int) -> EventPage:
        """See `Scheduler.events`."""
        with self._lock:
            if not self._is_listening:
                self._is_listening = True
                self._listeners.add(self._told)
            first = self._last - len(self._ring) + 1
            is_missed = after is not None and not first - 1 <= after <= self._last
            skipped = 0 if after is None or is_missed else after + 1 - first
            found = tuple(islice(self._ring, skipped, skipped + limit))
            return EventPage(events=found, last=found[-1].number if found else self._last, lagged=is_missed)

    def _told(self, event: Event) -> None:
        if isinstance(event, RunEnded) and (event.results or event.traceback):
            event = evolve(event, results=(), traceback=None)  # they may be large
        with self._lock:
            self._last += 1
            self._ring.append(NumberedEvent(self._last, event))
