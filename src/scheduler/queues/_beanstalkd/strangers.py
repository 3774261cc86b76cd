from __future__ import annotations

from logging import getLogger
from typing import Final

from timerqueue import Clock

from .address import Address

logger = getLogger(__name__)

WARNING_INTERVAL_S: Final = 60.0
"""Seconds. A kick of buried jobs may bring thousands out again."""


class Strangers:
    """Warns of foreign jobs: at once, then once a minute. One thread."""

    def __init__(self, address: Address, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._count = 0
        self._first = 0
        self._quiet_until = 0.0

    def meet(self, number: int) -> None:
        self._first = self._first if self._count else number
        self._count += 1

    def tell(self) -> None:
        now = self._clock.monotonic()
        if not self._count or now < self._quiet_until:
            return
        text = "beanstalkd at %s: %d jobs in our tubes were no ticks of ours, and were buried; the first was job %d"
        logger.warning(text, self._address, self._count, self._first)
        self._count, self._quiet_until = 0, now + WARNING_INTERVAL_S
