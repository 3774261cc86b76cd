"""When history is pruned: after a thousand rows, some bytes of records, or an hour.

The store deletes some rows at a time, so that no commit waits for long.
"""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger
from typing import Final

from ..stores import Batch, Retention, Store, size_of
from .writer import Writer

logger = getLogger(__name__)

AFTER_RECORDS: Final = 1_000

SHARE_OF_BYTES: Final = 16
"""Prune after this share of the bytes that may be kept: a sixteenth."""

AT_LEAST_EVERY: Final = 3_600.0
"""Seconds."""


class Pruning:
    """`now_us`: returns the UTC microseconds from which ages count."""

    def __init__(self, store: Store, writer: Writer, retention: Retention, now_us: Callable[[], int]) -> None:
        self._store = store
        self._writer = writer
        self._retention = retention
        self._now_us = now_us
        self._records = AFTER_RECORDS  # history may be over the bounds at the start
        self._bytes = 0
        self._began_at = 0.0
        self._is_under_way = False

    def written(self, batch: Batch, now: float) -> None:
        """Count a committed batch. `now`: monotonic seconds."""
        new = [*batch.ended, *batch.missed]
        if self._retention.total_bytes is not None:
            self._bytes += sum(map(size_of, new))
        changed = len(batch.jobs) + len(batch.paused) + len(batch.finished) + len(batch.pauses) + len(batch.made)
        self.changed(len(new) + changed, now)

    def changed(self, rows: int, now: float) -> None:
        """Count rows changed by any node, because a store may log them."""
        self._records += rows
        if self._is_due(now):
            self._began_at = now
            self.begin()

    def begin(self) -> None:
        if self._is_under_way:
            return
        self._records = self._bytes = 0
        self._is_under_way = True
        self._ask()

    def _is_due(self, now: float) -> bool:
        most = self._retention.total_bytes
        return (
            self._records >= AFTER_RECORDS
            or (most is not None and self._bytes > most // SHARE_OF_BYTES)
            or (self._records > 0 and now - self._began_at > AT_LEAST_EVERY)
        )

    def _ask(self) -> None:
        now_us = self._now_us()
        self._writer.submit(lambda: self._store.prune(self._retention, now_us), self._answered)

    def _answered(self, count: int | None, error: Exception | None) -> None:
        if error is None and count:
            self._ask()
            return
        self._is_under_way = False
        if error is not None:
            logger.warning("history could not be pruned: %s", error)
