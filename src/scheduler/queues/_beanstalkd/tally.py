from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import Literal

from .._queue import QueueStatistics, Reason

Name = Literal["placed", "delivered", "premature", "hops", "done", "expired", "strange", "reconnected"]


class ReservationTally:
    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[Name] = Counter()
        self._here: Counter[Reason] = Counter()

    def count(self, name: Name, by: int = 1) -> None:
        with self._lock:
            self._counts[name] += by

    def count_here(self, reason: Reason) -> None:
        with self._lock:
            self._here[reason] += 1

    def statistics(self) -> QueueStatistics:
        with self._lock:
            counts = self._counts
            return QueueStatistics(
                here=dict(self._here),
                placed=counts["placed"],
                delivered=counts["delivered"],
                premature=counts["premature"],
                hops=counts["hops"],
                done=counts["done"],
                expired=counts["expired"],
                strange=counts["strange"],
                reconnected=counts["reconnected"],
            )
