"""A metric store with a spool behind it: it takes what it is given while the store is away, and keeps house itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from logging import getLogger
from typing import Final

from timerqueue import Clock

from ..contract import MetricStore, ProbeOutcome, Sample, StoreUnavailable
from .news import StorageNews
from .spool import Spool
from .writer import MetricWriter

logger = getLogger(__name__)

HOUSEKEEPING: Final = 3_600.0
"""Seconds between two rounds of `maintain`."""
MOST_TURNS: Final = 5
"""Transactions of one call of `write`: a long replay does not hold up what is found meanwhile."""


class SpooledMetrics:
    """The metric store `store`, for who calls its verbs on a thread of its own and keeps no spool.

    `write` raises nothing while the store is away: what it is given waits in the spool. News goes to the log.
    """

    def __init__(
        self, store: MetricStore, spool: Spool | None, clock: Clock, tell: Callable[[StorageNews], object] | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._writer = MetricWriter(store, spool, tell=tell or _log)
        self._next_round = clock.monotonic()

    def open(self) -> None:
        """Open the spool, and the store if that is possible now."""
        self._writer.open(self._clock.monotonic())

    def write(self, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome]) -> None:
        """Keep these, in the store or in the spool, and store some of what waits there."""
        self._writer.put(samples, outcomes, self._clock.monotonic())
        for _ in range(MOST_TURNS):
            if not self._writer.turn(self._clock.monotonic()):
                break
        self._keep_house()

    def newest(self, target: str, probe: str, database: str | None) -> str | None:
        """See MetricStore: of the store, without what waits in the spool."""
        return self._store.newest(target, probe, database)

    def last(self, target: str, probe: str) -> float | None:
        """See MetricStore: of the store, without what waits in the spool."""
        return self._store.last(target, probe)

    def maintain(self, now: float) -> None:
        """See MetricStore."""
        self._store.maintain(now)

    def close(self) -> None:
        """Let go of everything. What waits stays in the spool for the next start."""
        report = self._writer.finish(self._clock.monotonic, self._clock.monotonic())
        if report.spooled or report.dropped:
            logger.warning("metrics at the end: %s", report)

    def _keep_house(self) -> None:
        if self._writer.is_down or self._clock.monotonic() < self._next_round:
            return
        self._next_round = self._clock.monotonic() + HOUSEKEEPING
        try:
            self._store.maintain(self._clock.wall())
        except StoreUnavailable as error:
            logger.warning("metrics could not be tidied up, which is tried again in an hour: %s", error)


def _log(news: StorageNews) -> None:
    logger.warning("%s", news)
