from __future__ import annotations

from typing import Final

from attrs import frozen

MAX_DELAY_S: Final = 100 * 365 * 86_400.0
"""Seconds. A later instant cannot be planned or stored."""

_DOUBLINGS: Final = 64
"""More change nothing: the smallest first delay has passed the longest."""


@frozen
class Backoff:
    """Waits of `first` seconds, twice that, four times that ... up to `longest`."""

    first: float
    longest: float = MAX_DELAY_S

    def after(self, failures: int) -> float:
        """Return the seconds after the `failures`-th failure in a row, from 1."""
        return min(self.first * 2.0 ** min(failures - 1, _DOUBLINGS), self.longest)
