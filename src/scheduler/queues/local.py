"""A queue in this process alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count
from threading import Lock
from typing import Final

from attrs import define, evolve

from timerqueue import Clock, Resident

from ._queue import (
    LEAD_US,
    SECOND_US,
    CallAt,
    Census,
    Deliver,
    Delivery,
    Kind,
    Place,
    Position,
    Queue,
    QueueError,
    QueueStatistics,
    Standing,
    Tick,
)

__all__ = ["LocalQueue"]

LOOK_EVERY: Final = 10.0
"""Seconds from look to look at the wall clock."""

INSTANCE: Final = "local"


@define(eq=False)
class _Entry:
    """A timer with an earlier `turn` does nothing."""

    number: int
    tick: Tick
    due_us: int
    standing: Standing = Standing.DELAYED
    turn: int = 0


class LocalQueue(Resident):
    """Ticks wait in the scheduler's heap, and end with it."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self._numbers = count(1)
        self._lock = Lock()
        self._statistics = QueueStatistics()
        self._clock: Clock | None = None
        self._call_at: CallAt | None = None
        self._deliver: Deliver | None = None

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_immediate(self) -> bool:
        """True."""
        return True

    def open(self, clock: Clock, call_at: CallAt, deliver: Deliver) -> None:
        """See Queue."""
        self._bind_to_process("LocalQueue")
        self._clock, self._call_at, self._deliver = clock, call_at, deliver

    def listen(self, wheres: Collection[str]) -> None:
        """Do nothing: every tick comes out here."""

    def instance(self) -> str:
        """See Queue."""
        return INSTANCE

    def put(self, ticks: Sequence[Tick]) -> list[Place | None]:
        """See Queue. Each tick has its position at once."""
        return [self._put(tick) for tick in ticks]

    def cancel(self, places: Sequence[tuple[Tick, Place]]) -> list[bool]:
        """See Queue."""
        return [self._cancel(tick, place) for tick, place in places]

    def look(self, places: Sequence[tuple[Tick, Place]]) -> list[Position | None]:
        """See Queue."""
        return [self._look(tick, place) for tick, place in places]

    def census(self, kind: Kind) -> Census:
        """See Queue."""
        with self._lock:
            found = [entry.standing for entry in self._entries.values() if entry.tick.kind is kind]
        return Census(**{standing.value: found.count(standing) for standing in Standing})

    def kick(self, kind: Kind, most: int) -> int:
        """See Queue."""
        with self._lock:
            found = [
                entry
                for entry in self._entries.values()
                if entry.standing is Standing.BURIED and entry.tick.kind is kind
            ][:most]
        for entry in found:
            self._wait(entry, entry.tick.due_us)
        return len(found)

    def statistics(self) -> QueueStatistics:
        """See Queue."""
        return self._statistics

    def close(self) -> None:
        """See Queue."""
        with self._lock:
            self._entries.clear()
            self._deliver = None

    def _put(self, tick: Tick) -> Place:
        with self._lock:
            entry = _Entry(next(self._numbers), tick, tick.due_us)
            self._entries[entry.number] = entry
            self._statistics = evolve(self._statistics, placed=self._statistics.placed + 1)
        self._wait(entry, tick.due_us)
        return Place(INSTANCE, entry.number)

    def _wait(self, entry: _Entry, due_us: int) -> None:
        with self._lock:
            entry.due_us, entry.standing = due_us, Standing.DELAYED
            turn = entry.turn = entry.turn + 1
        self._arm(entry, turn)

    def _arm(self, entry: _Entry, turn: int) -> None:
        clock, call_at = self._clock, self._call_at
        if clock is None or call_at is None:
            msg = "the queue is not open: give it to a Scheduler, or call open() first"
            raise QueueError(msg)
        seconds = min(max(self._seconds_left(clock, entry), 0.0), LOOK_EVERY)
        call_at(clock.monotonic() + seconds, lambda: self._come_out(clock, entry, turn))

    def _come_out(self, clock: Clock, entry: _Entry, turn: int) -> None:
        with self._lock:
            deliver = self._deliver
            if deliver is None or entry.number not in self._entries or entry.turn != turn:
                return
            is_due = self._seconds_left(clock, entry) <= 0
            if is_due:
                entry.standing = Standing.RESERVED
                self._statistics = evolve(self._statistics, delivered=self._statistics.delivered + 1)
        if is_due:
            deliver([_LocalDelivery(self, entry)])
        else:
            self._arm(entry, turn)

    def _seconds_left(self, clock: Clock, entry: _Entry) -> float:
        return (entry.due_us - LEAD_US) / SECOND_US - clock.wall()

    def _at(self, tick: Tick, place: Place) -> _Entry | None:
        entry = self._entries.get(place.number) if place.instance == INSTANCE else None
        return entry if entry is not None and entry.tick == tick else None

    def _cancel(self, tick: Tick, place: Place) -> bool:
        with self._lock:
            entry = self._at(tick, place)
            if entry is None or entry.standing is Standing.RESERVED:
                return False
            del self._entries[entry.number]
            return True

    def _look(self, tick: Tick, place: Place) -> Position | None:
        entry, clock = self._at(tick, place), self._clock
        if entry is None or clock is None:
            return None
        return Position(entry.standing, max(int(self._seconds_left(clock, entry)), 0))

    def settle(self, entry: _Entry) -> None:
        """The tick has been run."""
        with self._lock:
            if self._entries.pop(entry.number, None) is not None:
                self._statistics = evolve(self._statistics, done=self._statistics.done + 1)

    def give_back(self, entry: _Entry, seconds: int) -> None:
        """The tick comes out again after that many seconds."""
        clock = self._clock
        if clock is not None and entry.number in self._entries:
            self._wait(entry, int((clock.wall() + seconds) * SECOND_US) + LEAD_US)

    def put_aside(self, entry: _Entry) -> None:
        """Until it is kicked."""
        with self._lock:
            entry.standing = Standing.BURIED


@define(eq=False)
class _LocalDelivery:
    _queue: LocalQueue
    _entry: _Entry

    @property
    def tick(self) -> Tick:
        return self._entry.tick

    @property
    def place(self) -> Place | None:
        return Place(INSTANCE, self._entry.number)

    def done(self) -> None:
        self._queue.settle(self._entry)

    def release(self, seconds: int = 0) -> None:
        self._queue.give_back(self._entry, seconds)

    def bury(self) -> None:
        self._queue.put_aside(self._entry)


_: type[Queue] = LocalQueue
__: type[Delivery] = _LocalDelivery
