"""Executions that are given to the queue, until the store knows their positions.

To an audit, an execution on its way looks missing. A second put is harmless, because only one runs, but the server
would hold both. So they are known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from logging import getLogger
from typing import Any, Final

from timerqueue import LifecycleError

from ..._commits import Writer
from ..._loop import Core
from ...queues import Place, Queue, Tick
from ...stores import Placed

logger = getLogger(__name__)

Key = tuple[str, int]
"""A job's id, and its execution's due UTC microseconds."""

NOTED_WITHIN: Final = 0.25
"""Seconds until the store must learn positions. Nearly always another commit says so first."""

LONGEST_WAY: Final = 60.0
"""Seconds after which an audit puts an execution again."""


class Publisher:
    """`here`: executions that stand in this process, because the queue refused them."""

    def __init__(self, queue: Queue, core: Core, queue_line: Writer) -> None:
        self.here: set[Key] = set()
        self._on_way: dict[Key, float] = {}
        """Since when, in monotonic seconds."""
        self._withdrawn: set[Key] = set()
        self._arrived: list[set[Key]] = []
        self._is_noting = False
        self._queue = queue
        self._core = core
        self._queue_line = queue_line

    def put(self, ticks: Sequence[tuple[Tick, Place | None]]) -> int:
        """Return how many were put. A tick with a place is replaced there; ticks here or on their way stay."""
        known = self.here.union(self._on_way, *self._arrived)
        wanted = [(tick, place) for tick, place in ticks if _key(tick) not in known]
        if not wanted:
            return 0
        self._on_way.update(dict.fromkeys((_key(tick) for tick, _ in wanted), self._core.monotonic()))
        put_us = self._core.timeline.us(self._core.monotonic(), steady=False)

        def put() -> list[Place | None]:
            if old := [(tick, place) for tick, place in wanted if place is not None]:
                self._queue.cancel(old)
            return self._queue.put([tick for tick, _ in wanted])

        def answered(places: list[Place | None] | None, error: Exception | None) -> None:
            if places is None:
                logger.warning("%d executions wait for the next audit: %s", len(wanted), error)
                self._forget(_key(tick) for tick, _ in wanted)
                return
            for (tick, _), place in zip(wanted, places, strict=True):
                self._stands(tick, place, put_us)

        self._queue_line.submit(put, answered)
        return len(wanted)

    def is_on_way(self, tick: Tick) -> bool:
        return _key(tick) in self._on_way

    def move(self, ticks: Sequence[Tick]) -> None:
        """Move ticks from here into the queue. The second delivery is dropped."""
        here = [tick for tick in ticks if _key(tick) in self.here and _key(tick) not in self._on_way]
        if not here:
            return
        self._on_way.update(dict.fromkeys(map(_key, here), self._core.monotonic()))
        put_us = self._core.timeline.us(self._core.monotonic(), steady=False)

        def put() -> list[Place | None]:
            first = self._queue.put(here[:1])
            return first + (self._queue.put(here[1:]) if first[0] is not None else [None] * (len(here) - 1))

        def answered(places: list[Place | None] | None, error: Exception | None) -> None:
            if places is None:
                logger.warning("%d executions still wait in this process: %s", len(here), error)
            for tick, place in zip(here, places or [None] * len(here), strict=True):
                if place is not None:
                    self.here.discard(_key(tick))
                    self._stands(tick, place, put_us)
                else:
                    self._forget([_key(tick)])

        self._queue_line.submit(put, answered)

    def arrived(self, placed: Iterable[Placed]) -> None:
        keys = {(each.job_id, each.due_us): each for each in placed}
        withdrawn = self._withdrawn.intersection(keys)
        self.cancel((Tick(*key), Place(keys[key].instance, keys[key].number)) for key in withdrawn)
        self._forget(keys)
        for arrived in self._arrived:
            arrived.update(keys)

    def cancel(self, places: Iterable[tuple[Tick, Place | None]]) -> None:
        """Cancel replaced ticks. Ticks on their way are cancelled when they arrive."""
        there = list[tuple[Tick, Place]]()
        for tick, place in places:
            if place is not None:
                there.append((tick, place))
            elif _key(tick) in self._on_way:
                self._withdrawn.add(_key(tick))
        if there:
            self._queue_line.submit(lambda: self._queue.cancel(there), _nothing)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Note arrivals while an audit reads and puts."""
        lost_before = self._core.monotonic() - LONGEST_WAY  # an incarnation that was taken for dead loses its notes
        self._forget([key for key, since in self._on_way.items() if since < lost_before])
        arrived = set[Key]()
        self._arrived.append(arrived)
        try:
            yield
        finally:
            self._arrived = [each for each in self._arrived if each is not arrived]

    def _forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._on_way.pop(key, None)
            self._withdrawn.discard(key)

    def _stands(self, tick: Tick, place: Place | None, put_us: int) -> None:
        if place is None:
            self._forget([_key(tick)])
            self.here.add(_key(tick))
        elif _key(tick) in self._withdrawn:
            self._forget([_key(tick)])
            self.cancel([(tick, place)])
        else:
            self._core.journal.placed(Placed(tick.job_id, tick.due_us, place.instance, place.number, put_us))
            if not self._is_noting:
                self._is_noting = True
                with suppress(LifecycleError):  # the loop has ended: the last commit takes it along
                    self._core.queue.push(self._core.monotonic() + NOTED_WITHIN, self._note)

    def _note(self) -> None:
        self._is_noting = False
        self._core.journal.flush(lambda _lost: None)


def _nothing(_answer: Any, error: Exception | None) -> None:
    if error is not None:
        logger.debug("executions that were replaced stay in the queue: %s", error)


def _key(tick: Tick) -> Key:
    return (tick.job_id, tick.due_us)
