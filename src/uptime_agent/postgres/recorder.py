"""The recorder: the metric store's thread.

The writer (storage/writer.py) queues, and chooses store or spool. The recorder adds clock, turns, questions,
housekeeping.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from logging import getLogger
from typing import Any, Final, TypeVar

from attrs import evolve

from timerqueue import Clock

from .contract import MetricStore, ProbeOutcome, Sample, StoreUnavailable
from .storage import Drained, MetricWriter, Spool, StorageNews

logger = getLogger(__name__)
T = TypeVar("T")

HOUSEKEEPING: Final = 3_600.0
"""Seconds."""
AGAIN_AFTER: Final = 1.0
"""Seconds between turns while records wait."""
GATHER: Final = 0.2
"""Seconds: a transaction costs a sync whatever its size."""
LAST_STEPS: Final = 2.0
"""Seconds beyond the deadline, for the spool."""


class Recorder:
    """Writes on its own thread. Call its verbs on any thread."""

    def __init__(
        self,
        store: MetricStore,
        spool: Spool | None,
        clock: Clock,
        tell: Callable[[StorageNews], object] | None = None,
    ) -> None:
        self.report: Drained | None = None
        """None: not ended."""
        self._store = store
        self._clock = clock
        self._writer = MetricWriter(store, spool, tell=tell or _log)
        self._changed = threading.Condition()
        self._is_idle = False
        """Set before the thread looks for work."""
        self._calls: deque[Callable[[], Any]] = deque()
        self._deadline: float | None = None
        self._before: Drained | None = None
        self._next_round = clock.monotonic()
        self._thread = threading.Thread(target=self._run, name="metric store", daemon=True)

    @property
    def waiting(self) -> int:
        """Rows, samples and outcomes in memory."""
        return self._writer.waiting

    def start(self) -> None:
        """Open spool and store, on the thread."""
        self._thread.start()

    def add(self, sample: Sample | None, outcome: ProbeOutcome) -> None:
        """Queue one run's sample and outcome."""
        self._writer.put([] if sample is None else [sample], [outcome], self._clock.monotonic())
        if self._is_idle:  # while it gathers, or writes, it will look: to wake it costs more than all else here
            with self._changed:
                self._changed.notify()

    def call(self, ask: Callable[[MetricStore], T], answer: Callable[[T | None], None]) -> None:
        """Ask the store on its thread, where `answer` follows; None: it cannot."""

        def asked() -> None:
            try:
                found = ask(self._store)
            except Exception as exc:  # noqa: BLE001 - who asks goes on without an answer
                logger.warning("the metric store cannot be asked: %s", exc)
                answer(None)
            else:
                answer(found)

        with self._changed:
            self._calls.append(asked)
            self._changed.notify()

    def close(self, within: float) -> Drained | None:
        """Store the rest within `within` seconds, spool what is left, close everything.

        Returns what was stored and dropped since the start, and spooled at the end. None: the thread hangs.
        """
        self._before = self._writer.so_far
        with self._changed:
            self._deadline = self._clock.monotonic() + within
            self._changed.notify()
        self._thread.join(within)
        if self._thread.is_alive():
            self._interrupt()
            self._thread.join(LAST_STEPS)
        return self.report

    def _interrupt(self) -> None:
        interrupt = getattr(self._store, "interrupt", None)
        if interrupt is not None:
            interrupt()

    def _run(self) -> None:
        self._writer.open(self._clock.monotonic())
        while self._deadline is None:
            for call in self._next_calls():
                call()
            while self._deadline is None and self._writer.turn(self._clock.monotonic()) and not self._calls:
                pass
            self._keep_house()
        ended = self._writer.finish(self._clock.monotonic, self._deadline, self._before)
        in_all = self._writer.so_far  # what waits in the spool is what the end has put there
        self.report = evolve(ended, stored=in_all.stored, dropped=in_all.dropped)

    def _next_calls(self) -> deque[Callable[[], Any]]:
        with self._changed:
            is_stuck = self._writer.waiting > 0 and self._writer.is_down  # the last turn could not empty the queue
            self._is_idle = not is_stuck
            self._changed.wait_for(
                lambda: self._calls or self._deadline is not None or (self._writer.waiting and not is_stuck),
                AGAIN_AFTER,
            )
            self._is_idle = False
            self._changed.wait_for(lambda: self._calls or self._deadline is not None, GATHER)
            calls, self._calls = self._calls, deque()
        return calls

    def _keep_house(self) -> None:
        has_tables = bool(self._writer.so_far.stored)  # of which the next weeks are made ahead
        if self._writer.is_down or not has_tables or self._clock.monotonic() < self._next_round:
            return
        self._next_round = self._clock.monotonic() + HOUSEKEEPING
        try:
            self._store.maintain(self._clock.wall())
        except StoreUnavailable as error:
            logger.warning("metrics could not be tidied up, which is tried again in an hour: %s", error)
        except Exception:
            logger.exception("the metric store has a defect")


def _log(news: StorageNews) -> None:
    logger.warning("%s", news)
