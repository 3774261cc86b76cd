"""The thread of a writer: it calls the turns, keeps house once an hour, and ends under a deadline."""

from __future__ import annotations

from collections.abc import Sequence
from logging import getLogger
from threading import Event, Thread
from typing import Final

from timerqueue import Clock

from ..contract import MetricStore, ProbeOutcome, Sample, StoreUnavailable
from .writer import Drained, MetricWriter

logger = getLogger(__name__)

PAUSE: Final = 0.5
"""Seconds between two turns when there is little: what is found meanwhile is written together."""
HOUSEKEEPING: Final = 3_600.0


class WriterThread:
    """A writer with a thread of its own, which does not hold up the end of the process."""

    def __init__(self, writer: MetricWriter, store: MetricStore, clock: Clock) -> None:
        self._writer = writer
        self._store = store
        self._clock = clock
        self._stop = Event()
        self._deadline = 0.0
        self._drained: Drained | None = None
        self._next_housekeeping = clock.monotonic()
        self._thread = Thread(target=self._serve, name="metric writer", daemon=True)

    @property
    def has_room(self) -> bool:
        """Whether a small batch would be taken."""
        return self._writer.has_room

    @property
    def has_stored(self) -> bool:
        """Whether all that was put is in the store."""
        return self._writer.is_idle

    def start(self) -> None:
        """Open spool and store, and begin to write. Returns at once."""
        self._thread.start()

    def put(self, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome]) -> bool:
        """Take these, from any thread, without waiting. False: there is no room."""
        return self._writer.put(samples, outcomes, self._clock.monotonic())

    def stop(self, grace: float) -> None:
        """Ask for the end, within so many seconds. Returns at once; see `join`."""
        self._deadline = self._clock.monotonic() + grace
        self._stop.set()

    def join(self, wait: float) -> Drained | None:
        """Wait so many seconds for the end. None: the store does not answer, or the thread was never started."""
        if self._thread.is_alive():
            self._thread.join(wait)
        if self._thread.is_alive() and (interrupt := getattr(self._store, "interrupt", None)) is not None:
            interrupt()
            self._thread.join(1.0)
        return self._drained

    def _serve(self) -> None:
        self._writer.open(self._clock.monotonic())
        while not self._stop.wait(PAUSE):
            self._go_round()
        try:
            self._drained = self._writer.finish(self._clock.monotonic, self._deadline)
        except Exception:
            logger.exception("the metric writer could not end in order")

    def _go_round(self) -> None:
        try:
            while self._writer.turn(self._clock.monotonic()) and not self._stop.is_set():
                pass
            self._keep_house()
        except Exception:
            logger.exception("a turn of the metric writer failed")

    def _keep_house(self) -> None:
        if self._writer.is_down or self._clock.monotonic() < self._next_housekeeping:
            return
        self._next_housekeeping = self._clock.monotonic() + HOUSEKEEPING
        try:
            self._store.maintain(self._clock.wall())
        except StoreUnavailable as error:
            logger.warning("metrics could not be tidied up, which is tried again in an hour: %s", error)
