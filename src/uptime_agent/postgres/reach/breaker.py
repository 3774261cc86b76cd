"""A circuit breaker: after failures a server rests; then one request tries it."""

from __future__ import annotations

from typing import Final

from attrs import define

FAILURES: Final = 3
"""In a row, to open it."""
FIRST_REST: Final = 5.0
LONGEST_REST: Final = 60.0
"""Seconds. Failed trials double the rest."""


@define(eq=False)
class Breaker:
    """One server's breaker. Times are monotonic seconds. `error`: the last reason."""

    failures: int = 0
    error: str | None = None
    _until: float = 0.0
    _trial: object = None

    @property
    def is_closed(self) -> bool:
        """Whether all requests may ask."""
        return self.failures < FAILURES

    def admits(self, who: object, now: float) -> bool:
        """Whether `who` may ask: anyone while closed; after the rest one alone."""
        if self.is_closed or who == self._trial:
            return True
        if now < self._until or self._trial is not None:
            return False
        self._trial = who
        return True

    def succeeded(self) -> None:
        """Close it."""
        self.failures, self.error, self._trial = 0, None, None

    def failed(self, error: str, now: float) -> None:
        """Count a failure."""
        self.failures, self.error, self._trial = self.failures + 1, error, None
        if not self.is_closed:
            self._until = now + min(FIRST_REST * 2 ** min(self.failures - FAILURES, 10), LONGEST_REST)

    def withdrew(self, who: object) -> None:
        """Let another try: `who` got no answer."""
        if who == self._trial:
            self._trial = None
