"""The writer: between probes, which must not wait, and a store, which may be slow or away.

`put` fills a bounded queue from any thread; when full, it takes only records. `turn`, on one thread, writes one large
transaction. While the store fails, or the spool holds older samples, all goes through the spool, in order. Halving
finds an unstorable sample, which is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from logging import getLogger
from threading import Lock
from typing import Final

from attrs import evolve, frozen

from ..contract import MetricStore, ProbeOutcome, Sample, StoreUnavailable
from .batch import SampleBatch
from .errors import Unstorable
from .news import Replayed, SampleRefused, SamplesLost, StorageNews, StoreBack, StoreLost
from .spool import Counts, Spool, SpoolFailed
from .values import normal_columns

logger = getLogger(__name__)

MOST_AT_ONCE: Final = 20_000
"""Of one transaction, about."""
TURNED_AWAY: Final = "dropped: the queue to the store was full"
FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
"""Seconds between two tries."""


@frozen
class Drained:
    """Amounts that were stored, spooled and dropped."""

    stored: Counts
    spooled: Counts
    dropped: Counts

    def __str__(self) -> str:
        return f"stored: {self.stored}; in the spool: {self.spooled}; dropped: {self.dropped}"


class MetricWriter:
    """Writes to `store`, or `spool` while it is away. `tell` gets news, on the turns' thread.

    `most_waiting`: queued rows, samples and outcomes; outcomes alone may be twice that.
    """

    def __init__(
        self,
        store: MetricStore,
        spool: Spool | None = None,
        *,
        most_waiting: int = 200_000,
        tell: Callable[[StorageNews], object] = lambda _: None,
    ) -> None:
        self._store = store
        self._spool = spool
        self._tell = tell
        self._most_waiting = most_waiting
        self._lock = Lock()
        self._queue: deque[tuple[float, SampleBatch]] = deque()
        self._weight = 0
        self._turned_away = Counts()
        self._is_open = False
        self._is_down = False
        self._failures = 0
        self._next_try = 0.0
        self._stored = Counts()
        self._spooled = Counts()
        self._dropped = Counts()
        self._replayed = Counts()
        self._known_lost = Counts()

    @property
    def is_down(self) -> bool:
        """Whether the store refused the last batch."""
        return self._is_down

    @property
    def waiting(self) -> int:
        """The used part of `most_waiting`."""
        return self._weight

    @property
    def has_room(self) -> bool:
        """Whether a small batch has room, which spares a vain query."""
        return self._weight < self._most_waiting

    @property
    def so_far(self) -> Drained:
        """Amounts since the start."""
        return Drained(self._stored, self._spooled, self._dropped)

    def put(self, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome], now: float) -> bool:
        """Queue these, from any thread, without waiting. `now`: on the clock of `turn`.

        False: the samples are lost, as their records say.
        """
        batch = SampleBatch(tuple(samples), tuple(outcomes))
        with self._lock:
            has_room = not self._weight or self._weight + batch.weight <= self._most_waiting
            if not has_room:
                self._turned_away += Counts(len(batch.samples), batch.rows)
                batch = batch.without(batch.samples, TURNED_AWAY)
                if self._weight + batch.weight > 2 * self._most_waiting:
                    self._turned_away += _counts(batch)
                    return False
            self._queue.append((now, batch))
            self._weight += batch.weight
            return has_room

    def turn(self, now: float) -> bool:
        """Write one transaction. True: more can follow."""
        self._tell_losses()
        if self._is_through_spool:
            self._fill_spool(now)
            return self._may_try(now) and self._replay(now)
        batch = self._take(now)
        if batch is not None and (not self._may_try(now) or not self._write(batch, now)):
            self._keep(batch, now)
        return self._has_queue and not self._is_down

    def finish(self, now: Callable[[], float], deadline: float, since: Drained | None = None) -> Drained:
        """Write until the deadline, spool the rest, close everything. `since`: `so_far` at the end's begin."""
        before = self.so_far if since is None else since
        while now() < deadline and self.turn(now()):
            pass
        self._fill_spool(now())
        while (batch := self._take(now())) is not None:  # without a spool
            self._drop(_counts(batch), "the store is away at the end, and there is no spool")
        self._tell_losses()
        for close in (self._store.close, self._spool.close if self._spool else lambda: None):
            close()
        self._is_open = False
        return Drained(self._stored - before.stored, self._spooled - before.spooled, self._dropped - before.dropped)

    def open(self, now: float) -> None:
        """Open spool and store, which may be away."""
        if self._spool is not None:
            try:
                self._spool.open()
            except SpoolFailed as error:
                self._tell(SamplesLost(Counts(), f"there is no spool: {error}"))
                self._spool = None
            else:
                if self._spool.damaged:
                    self._tell(SamplesLost(Counts(), f"{self._spool.damaged} segments of the spool are damaged"))
        self._may_try(now)

    @property
    def _is_through_spool(self) -> bool:
        return self._spool is not None and (self._is_down or bool(self._spool.waiting))

    @property
    def _has_queue(self) -> bool:
        return bool(self._queue)

    def _may_try(self, now: float) -> bool:
        if self._is_open:
            return True
        if now < self._next_try:
            return False
        try:
            self._store.open()
        except StoreUnavailable as error:
            self._failed(error, now)
            return False
        self._is_open = True
        return True

    def _failed(self, error: StoreUnavailable, now: float) -> None:
        self._is_open = False
        self._next_try = now + min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self._failures, 10))
        self._failures += 1
        if not self._is_down:
            self._is_down = True
            self._tell(StoreLost(str(error)))

    def _worked(self) -> None:
        self._failures = 0
        if self._is_down:
            self._is_down = False
            self._tell(StoreBack(self._spool.waiting if self._spool else Counts()))

    def _take(self, now: float) -> SampleBatch | None:
        samples: list[Sample] = []
        outcomes: list[ProbeOutcome] = []
        weight = 0
        with self._lock:
            while self._queue and (not weight or weight + self._queue[0][1].weight <= MOST_AT_ONCE):
                put_at, batch = self._queue.popleft()
                weight += batch.weight
                samples += batch.samples
                outcomes += [evolve(each, stored=each.stored + max(0.0, now - put_at)) for each in batch.outcomes]
            self._weight -= weight
        return SampleBatch(tuple(samples), tuple(outcomes)) if weight else None

    def _write(self, batch: SampleBatch, now: float) -> bool:
        """False: the store is away."""
        try:
            self._store_all(batch)
        except StoreUnavailable as error:
            self._failed(error, now)
            return False
        self._worked()
        return True

    def _store_all(self, batch: SampleBatch) -> None:
        try:
            self._store.write(batch.samples, batch.outcomes)
        except StoreUnavailable:
            raise
        except Exception as error:
            if not isinstance(error, Unstorable):
                logger.exception("the metric store has a defect")
            self._store_parts(batch, str(error))
        else:
            self._stored += _counts(batch)

    def _store_parts(self, batch: SampleBatch, error: str) -> None:
        if len(batch.samples) > 1:
            for half in batch.halves():
                self._store_all(half)
        elif batch.samples:
            self._store_all(self._refused(batch, batch.samples, error))
        else:
            self._drop(_counts(batch), error)

    def _refused(self, batch: SampleBatch, samples: Sequence[Sample], error: str) -> SampleBatch:
        for sample in samples:
            self._dropped += Counts(1, len(sample.rows))
            self._tell(SampleRefused(sample.target, sample.probe.name, error))
        return batch.without(samples, f"not stored: {error}")

    def _keep(self, batch: SampleBatch, now: float) -> None:
        if self._spool is not None and self._append(batch):
            return
        with self._lock:
            if self._weight + batch.weight <= 2 * self._most_waiting:
                self._queue.appendleft((now, batch))
                self._weight += batch.weight
                return
        self._drop(_counts(batch), "neither store nor spool take it, and the queue is full")

    def _fill_spool(self, now: float) -> None:
        while self._spool is not None and (batch := self._take(now)) is not None:
            if not self._append(batch):
                self._drop(_counts(batch), "neither store nor spool take it")

    def _append(self, batch: SampleBatch) -> bool:
        assert self._spool is not None
        try:
            try:
                is_kept = self._spool.append(batch)
            except Unstorable:
                batch = self._storable(batch)
                is_kept = self._spool.append(batch)
        except SpoolFailed:
            return False
        if is_kept:
            self._spooled += _counts(batch)
        return True

    def _storable(self, batch: SampleBatch) -> SampleBatch:
        for sample in batch.samples:
            try:
                normal_columns(sample)
            except Unstorable as error:
                batch = self._refused(batch, [sample], str(error))
        return batch

    def _replay(self, now: float) -> bool:
        """True: there may be more."""
        assert self._spool is not None
        try:
            batch = self._spool.oldest(MOST_AT_ONCE)
            if batch is None:
                return False
            if not self._write(batch, now):
                return False
            self._spool.done()
        except SpoolFailed as error:
            self._drop(Counts(), str(error))
            self._next_try = now + LONGEST_WAIT
            return False
        self._replayed += _counts(batch)
        if not self._spool.waiting:
            self._tell(Replayed(self._replayed))
            self._replayed = Counts()
        return True

    def _drop(self, counts: Counts, why: str) -> None:
        self._dropped += counts
        self._tell(SamplesLost(counts, why))

    def _tell_losses(self) -> None:
        with self._lock:
            turned_away, self._turned_away = self._turned_away, Counts()
        if turned_away:
            self._drop(turned_away, "the queue is full")
        if self._spool is not None and self._spool.lost != self._known_lost:
            self._drop(self._spool.lost - self._known_lost, "the spool is full or damaged")
            self._known_lost = self._spool.lost


def _counts(batch: SampleBatch) -> Counts:
    return Counts(len(batch.samples), batch.rows, len(batch.outcomes))
