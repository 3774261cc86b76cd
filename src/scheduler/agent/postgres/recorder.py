"""The recorder: samples and outcomes go to the store on a thread of its own, many in one transaction.

Probes hand over and go on. What comes while a transaction is under way goes into the next. While the store does not
work, everything is kept and written again, in order; beyond a bound the oldest samples go, and their outcomes say so.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from logging import getLogger
from typing import Any, Final, TypeVar

from attrs import evolve, frozen

from .contract import Failure, MetricStore, OutcomeKind, ProbeOutcome, Sample, StoreUnavailable

logger = getLogger(__name__)
T = TypeVar("T")

MOST_WAITING: Final = 100_000
"""Records that are kept while the store does not work."""
LARGEST_BATCH: Final = 2_000
AGAIN_AFTER: Final = 1.0


@frozen
class _Entry:
    sample: Sample | None
    outcome: ProbeOutcome
    handed: float


class Recorder:
    """Writes what probes found. `now`: monotonic seconds. Its verbs may be called on any thread."""

    def __init__(self, store: MetricStore, now: Callable[[], float], most: int = MOST_WAITING) -> None:
        self.dropped = 0
        self._store = store
        self._now = now
        self._most = most
        self._changed = threading.Condition()
        self._entries: deque[_Entry] = deque()
        self._calls: deque[Callable[[], Any]] = deque()
        self._is_ending = False
        self._is_down = False
        self._thread = threading.Thread(target=self._run, name="metric store", daemon=True)

    def start(self) -> None:
        """Open the store, on the recorder's thread."""
        self._thread.start()

    def add(self, sample: Sample | None, outcome: ProbeOutcome) -> None:
        """Hand over what one run found, and what became of it."""
        with self._changed:
            self._entries.append(_Entry(sample, outcome, self._now()))
            if len(self._entries) > self._most:
                self._drop_oldest()
            self._changed.notify()

    def call(self, ask: Callable[[MetricStore], T], answer: Callable[[T | None], None]) -> None:
        """Ask the store something, on its thread, where `answer` is called with what it says; None: it cannot."""

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

    def close(self, within: float) -> int:
        """Write what is left, for so many seconds, and close the store. Returns how many records are lost."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(within)
        with self._changed:
            return len(self._entries)

    def _drop_oldest(self) -> None:
        """Let go of the oldest sample, and say so in its outcome; if there is none, of the oldest record."""
        for at, entry in enumerate(self._entries):
            if entry.sample is not None:
                outcome = evolve(
                    entry.outcome,
                    kind=OutcomeKind.FAILED,
                    failure=Failure.STORE,
                    reason="dropped: the store did not work for too long",
                )
                self._entries[at] = _Entry(None, outcome, entry.handed)
                break
        if len(self._entries) > 2 * self._most:
            self._entries.popleft()
        self.dropped += 1

    def _run(self) -> None:
        opened = self._tried(self._store.open)
        while True:
            with self._changed:
                while not self._entries and not self._calls and not self._is_ending:
                    self._changed.wait()
                if self._is_ending and (not self._entries or self._is_down):
                    break
                calls, self._calls = self._calls, deque()
                batch = [self._entries.popleft() for _ in range(min(len(self._entries), LARGEST_BATCH))]
            opened = opened or self._tried(self._store.open)
            for call in calls:
                call()
            if batch and not (opened and self._tried(self._write, batch)):
                self._put_back(batch)
        self._tried(self._store.close)

    def _put_back(self, batch: list[_Entry]) -> None:
        with self._changed:
            self._entries.extendleft(reversed(batch))
            self._changed.wait_for(lambda: self._is_ending, AGAIN_AFTER)

    def _write(self, batch: list[_Entry]) -> None:
        now = self._now()
        outcomes = [evolve(each.outcome, stored=max(now - each.handed, 0.0)) for each in batch]
        self._store.write([each.sample for each in batch if each.sample is not None], outcomes)

    def _tried(self, call: Callable[..., Any], *args: Any) -> bool:
        """Make a call to the store. False: try again later. What it refuses for good is told and let go."""
        try:
            call(*args)
        except StoreUnavailable as exc:
            if not self._is_down:
                logger.warning("the metric store does not work: %s", exc)
            self._is_down = True
            return False
        except Exception:
            logger.exception("the metric store refuses %s", getattr(call, "__name__", call))
        if self._is_down:
            logger.warning("the metric store works again")
        self._is_down = False
        return True
