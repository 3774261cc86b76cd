"""How long to wait before what has failed is tried again: one rule for all of this package. Pure."""

from __future__ import annotations

from typing import Final

from attrs import frozen

LONGEST: Final = 100 * 365 * 86_400.0
"""Seconds. No delay is longer, whoever asks for it: what comes later could not be planned or stored any more."""

_DOUBLINGS: Final = 64
"""More of them change nothing: the smallest first delay that there is has passed the longest by then."""


@frozen
class Backoff:
    """`first` seconds, twice that, four times that ... up to `longest`, however often it has failed."""

    first: float
    longest: float = LONGEST

    def after(self, failures: int) -> float:
        """Seconds to wait after the `failures`-th failure in a row, counted from 1."""
        return min(self.first * 2.0 ** min(failures - 1, _DOUBLINGS), self.longest)
