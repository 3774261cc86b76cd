"""TimerQueue: the active object around a TimerHeap.

A lock held for one operation guards the heap, so `cancel` knows at once whether it came in time. Only an entry that is
due before the loop's wait ends makes the loop wake up (`Wake`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from logging import getLogger
from threading import Lock
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final

from anyio.lowlevel import checkpoint
from attrs import frozen

from ._clock import Clock, SystemClock
from ._forks import Resident
from ._heap import OUT, Entry, TimerHeap
from ._lifecycle import Lifecycle, LifecycleState
from ._pool import TaskPool
from ._wake import Wake
from ._workers import is_async

logger = getLogger(__name__)

FAR: Final = 1e15
"""Seconds, thirty million years. Later due times are mistakes: floats there have no milliseconds."""

BATCH: Final = 300
"""Entries fired before other tasks have their turn. Why 300: docs/decisions/0011."""

_NEEDS_POOL: Final = "give the queue a pool to run it in, as in TimerQueue(pool=TaskPool(...))"

_NOT_RUN: Final = (CoroutineType, GeneratorType, AsyncGeneratorType)


class Alarm(Entry):
    """An entry that acts when due. Subclass it and define `fire`."""

    __slots__ = ()

    def fire(self) -> None:
        """Act. On the loop, once per push. Must be short and not block."""
        raise NotImplementedError


class Timer(Alarm):
    """A pushed call."""

    __slots__ = ("_queue", "args", "func")

    def __init__(self, queue: TimerQueue, func: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.slot = OUT
        self._queue = queue
        self.func = func
        self.args = args

    def cancel(self) -> bool:
        """Cancel the call. True: it has not fired and never will. Any thread."""
        return self._queue.disarm(self)

    def reschedule(self, due: float) -> bool:
        """Move the call to `due` (monotonic seconds). False: it had fired, was cancelled, or the queue has stopped. Any
        thread.

        Raises ValueError if `due` is not finite.
        """
        return self._queue.rearm(self, due)

    def fire(self) -> None:
        self._queue.dispatch(self.func, self.args)


@frozen
class QueueStatistics:
    """Counts since the queue was made. `lateness_max`: the longest time from due to fired, in seconds."""

    waiting: int
    fired: int
    wake_ups: int
    lateness_max: float


class TimerQueue(Resident):
    """Call functions when due: never early, earliest first, ties in the order pushed.

    Without a pool the loop itself calls each function, so it must be short. With a pool each must be an `async def`,
    which starts when the pool has room. Errors are logged and affect no other function.

    `fire(batch, now)`, for packages built on the queue, replaces `alarm.fire()`. The loop calls it every turn with the
    due alarms, possibly none.
    """

    def __init__(
        self,
        pool: TaskPool | None = None,
        clock: Clock | None = None,
        *,
        fire: Callable[[list[Alarm], float], None] | None = None,
    ) -> None:
        self.clock: Clock = SystemClock() if clock is None else clock
        self._pool = pool
        self._fire = self._fire_each if fire is None else fire
        self._heap: TimerHeap[Alarm] = TimerHeap()
        self._lock = Lock()
        self._lifecycle = Lifecycle("TimerQueue")
        self._is_stopped = False
        self._wake: Wake | None = None
        self._awaited = -math.inf  # when the wait ends; -inf: the loop is awake and will look by itself
        self._looked = -math.inf  # when no due entry was left; -inf: some are left
        self._last_fired = -math.inf
        self._pace = 0.0
        self._fired = 0
        self._wake_ups = 0
        self._lateness_max = 0.0
        self._bind_to_process("TimerQueue", "_heap", "_lifecycle")

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def state(self) -> LifecycleState:
        return self._lifecycle.state

    def push(self, due: float, func: Callable[..., Any], *args: Any) -> Timer:
        """Call `func(*args)` at `due`, in seconds of `clock.monotonic()`; if past, now. Any thread.

        Raises ValueError if `due` is not finite, TypeError if this queue cannot call `func`, LifecycleError after
        `stop`.
        """
        if self._pool is None and is_async(func):
            msg = f"{func!r} is an `async def`: {_NEEDS_POOL}"
            raise TypeError(msg)
        timer = Timer(self, func, args)
        self.arm(timer, due)
        return timer

    def arm(self, alarm: Alarm, due: float) -> None:
        """Fire your own alarm, which must not be waiting, at `due` (monotonic seconds). Any thread.

        Raises ValueError and LifecycleError as `push` does.
        """
        _check_due(due)
        with self._lock:
            if self._is_stopped:
                self._lifecycle.refuse_if_stopped("push")
            self._heap.push(alarm, due)
        if due < self._awaited:
            self._call_loop()

    def arm_all(self, alarms: Sequence[Alarm], dues: Sequence[float]) -> None:
        """Arm one or more alarms, or none if a due time is refused, as by `push`. After `stop`, arm none."""
        if not math.hypot(*dues) <= FAR:  # at least the largest of them, and the fastest way to look at all
            for due in dues:
                _check_due(due)
        with self._lock:
            if not self._is_stopped:
                self._heap.push_all(alarms, dues)
        if self._awaited > -math.inf and min(dues) < self._awaited:
            self._call_loop()

    def disarm(self, alarm: Alarm) -> bool:
        """Remove an alarm. False if it was not waiting. Any thread."""
        with self._lock:
            if not self._is_stopped:
                return self._heap.cancel(alarm)
            was_dropped, alarm.slot = alarm.is_waiting, OUT  # `stop` leaves alarms as they are, to be quick
            return was_dropped

    def rearm(self, alarm: Alarm, due: float) -> bool:
        """Move a waiting alarm, as `Timer.reschedule` does."""
        _check_due(due)
        with self._lock:
            moved = not self._is_stopped and self._heap.reschedule(alarm, due)
        if moved and due < self._awaited:
            self._call_loop()
        return moved

    async def run(self) -> None:
        """Fire due entries until `stop`. Raises LifecycleError the second time."""
        self._lifecycle.start()
        self._wake = self.clock.make_wake()
        self._pace = getattr(self._wake, "pace", 0.0)  # a user's own clock may have no pace
        try:
            while self._lifecycle.state is LifecycleState.RUNNING:
                await self._turn()
        finally:
            self.stop()

    def stop(self) -> None:
        """Drop the waiting entries and fire nothing more. Any thread, any number of times."""
        with self._lock:
            self._is_stopped = True
            self._lifecycle.stop()
            dropped, self._heap = self._heap, TimerHeap()
        del dropped  # without the lock: a finalizer may take it
        self._call_loop()

    def fire_until(self, due: float) -> None:
        """Fire entries due until `due` (monotonic seconds). On the loop."""
        while True:
            with self._lock:
                batch = self._heap.pop_due(due, BATCH)
            if not batch:
                return
            self._fired += len(batch)
            self._fire(batch, self.clock.monotonic())

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(len(self._heap), self._fired, self._wake_ups, self._lateness_max)

    def dispatch(self, func: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if self._pool is not None:
            self._pool.start_soon(func, *args)
            return
        value = func(*args)
        if value is not None and isinstance(value, _NOT_RUN):
            _refuse(func, value)

    async def _turn(self) -> None:
        self._wake_ups += 1
        await self._wait_until(self._fire_due())

    def _fire_due(self) -> float | None:
        self._awaited = -math.inf
        now = self.clock.monotonic()
        with self._lock:
            batch = self._heap.pop_due(now, BATCH)
        if batch:
            self._count(batch, now)
            self._last_fired = now
        self._looked = now if len(batch) < BATCH else -math.inf
        self._fire(batch, now)
        with self._lock:
            due = self._heap.next_due()
            self._awaited = math.inf if due is None else due
        return due

    def _count(self, batch: list[Alarm], now: float) -> None:
        """Count fired entries. An entry pushed after its due time is not late."""
        self._fired += len(batch)
        late = now - max(batch[0].due, self._looked)
        self._lateness_max = max(self._lateness_max, late)

    def _fire_each(self, batch: list[Alarm], _now: float) -> None:
        for alarm in batch:
            if self._is_stopped:
                return
            try:
                alarm.fire()
            except Exception:
                logger.exception("a callable of the timer queue raised; the queue goes on", extra={"due": alarm.due})

    async def _wait_until(self, due: float | None) -> None:
        """Wait until `due`. After firing, wait at least for the pace, so that more entries become due.

        There is no pace for entries that were due when the loop looked, or that a full batch left over.
        """
        wake = self._wake
        if wake is None or self._lifecycle.state is not LifecycleState.RUNNING:
            return
        now = self.clock.monotonic()
        seconds = None
        if due is not None:
            at = max(due, self._last_fired + self._pace) if due > self._looked > -math.inf else due
            seconds = at - now
        if seconds is not None and seconds <= 0:
            await checkpoint()
        else:
            await wake.wait(seconds)

    def _call_loop(self) -> None:
        self._awaited = -math.inf
        if self._wake is not None:
            self._wake.set()


def _check_due(due: float) -> None:
    if not -FAR <= due <= FAR:
        msg = f"due must be a finite number of monotonic seconds, not {due!r}"
        raise ValueError(msg)


def _refuse(func: Callable[..., Any], value: object) -> None:
    if isinstance(value, CoroutineType):
        value.close()
    msg = f"{func!r} returned {value!r}, which nothing runs: make it an `async def` and {_NEEDS_POOL}"
    raise TypeError(msg)
