"""TaskPool: a task group with limits. Waiting work is a queue entry, not a coroutine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from contextvars import copy_context
from logging import getLogger
from types import TracebackType
from typing import Any, Final, Self

import anyio
from anyio.abc import TaskGroup
from attrs import frozen

from ._clock import Clock, SystemClock
from ._forks import Resident
from ._lifecycle import Lifecycle
from ._limits import HeldUnits, Lender, Limits, LimitStatistics, Needs, needs_of
from ._workers import Bundle, Work, Workers

logger = getLogger(__name__)

AGEING: Final = 10.0
"""Seconds of waiting worth one step of priority."""


class _Call(Work):
    __slots__ = ("args", "func", "workers")

    func: Callable[..., Awaitable[Any]]

    def __init__(  # noqa: PLR0917 - as Work has them
        self,
        workers: Workers,
        func: Callable[..., Awaitable[Any]],
        args: tuple[Any, ...],
        needs: Needs,
        priority: float,
        due: float,
    ) -> None:
        super().__init__(needs, priority, due, copy_context())
        self.workers = workers
        self.func = func
        self.args = args

    def open(self, now: float) -> Coroutine[Any, Any, Any]:  # noqa: ARG002 - the time does not matter here
        return _as_coroutine(self.func(*self.args))

    def close(self, value: Any, error: BaseException | None, now: float) -> None:  # noqa: ARG002 - only the error matters
        if error is not None and not self.workers.is_cancellation(error):
            # `logging` leaves out a bare exception that counts as false.
            exc_info = type(error), error, error.__traceback__
            logger.error("a task of the pool raised; the others go on: %r", self.func, exc_info=exc_info)


@frozen
class PoolStatistics:
    """The counts of a pool. `capacity`: math.inf if unlimited."""

    capacity: float
    active: int
    waiting: int
    workers: int
    limits: Mapping[str, LimitStatistics]


class TaskPool(Resident):
    """Run at most `capacity` pieces of work at a time, within named limits.

    `limits` maps names to units; "server:*" gives each name that begins with "server:" its own limit. Use it as an
    async context manager: leaving waits for all work. Call it only in its event loop's thread; a TimerQueue in front of
    it takes calls from any thread.
    """

    def __init__(
        self, capacity: float = 100, limits: Mapping[str, float] | None = None, *, clock: Clock | None = None
    ) -> None:
        self.check_sizes(capacity, limits)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._limits: Limits[Work] = Limits(capacity, limits or {})
        self._lifecycle = Lifecycle("TaskPool")
        self._sequence = itertools.count()
        self._workers = Workers(self._clock.monotonic, self._release, self._submit_rest)
        self._group: TaskGroup | None = None
        self._emptied: anyio.Event | None = None
        self._waits: Callable[[Work, Work | None], object] | None = None
        self._bind_to_process("TaskPool", "_lifecycle")

    async def __aenter__(self) -> Self:
        self._lifecycle.start()
        self._group = await anyio.create_task_group().__aenter__()
        self._workers.begin(self._group)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._group is not None
        try:
            if exc is None:
                await self.drained()
        finally:
            self._lifecycle.stop()
            self._drop_waiting()
            self._group.cancel_scope.cancel()
            suppressed = await self._group.__aexit__(exc_type, exc, traceback)
        return suppressed

    @property
    def active(self) -> int:
        """Pieces of work that hold a unit."""
        return self._limits.used

    @property
    def capacity(self) -> float:
        """Pieces of work that may hold a unit at a time; math.inf if unlimited."""
        return self._limits.capacity

    @property
    def held_up(self) -> int:
        """Pieces of work that wait for a full named limit."""
        return self._limits.held_up()

    @property
    def workers(self) -> Workers:
        return self._workers

    @property
    def waiting(self) -> int:
        """Pieces of work that wait for room."""
        return self._limits.pieces()

    def start_soon(
        self,
        func: Callable[..., Awaitable[Any]],
        *args: Any,
        priority: float = 0,
        needs: str | Iterable[str] | Mapping[str, int] = (),
    ) -> Work:
        """Run `await func(*args)` as soon as all its needs have room. Never blocks.

        Returns the work, for `cancel`. Its error is logged and affects no other work. Raises UnknownLimit or ValueError
        if its needs can never be met, LifecycleError after the end.
        """
        work = _Call(self._workers, func, args, needs_of(needs), priority, self._clock.monotonic())
        self._limits.check(work.needs)
        self.submit(work)
        return work

    def submit(self, *works: Work) -> None:
        """Run your own Work. Call `check` first."""
        self._lifecycle.refuse_if_stopped("start anything")
        limits, ready = self._limits, self._workers.ready
        for work in works:
            work.is_waiting = True
            if not work.needs and not limits.waiting and limits.used < limits.capacity:
                limits.used += 1
                ready.append(work)
            elif limits.take(work):
                ready.append(work)
            else:
                limits.wait(work, (work.due - AGEING * work.priority, next(self._sequence)))
                if limits.used < limits.capacity:
                    ready.extend(limits.admit())
                if self._waits is not None:
                    self._waits(work, None)
        self._workers.call_if_needed()

    def tell_waits(self, waits: Callable[[Work, Work | None], object]) -> None:
        """Call `waits` with work that finds no room, and again with the work whose end makes room. It never raises."""
        self._waits = waits

    def _submit_rest(self, bundle: Bundle) -> None:
        """Place the rest of a bundle before work due at the same time."""
        bundle.is_waiting = True
        if self._limits.take(bundle):
            ready = self._workers.ready
            if not ready or _rank(bundle) <= _rank(ready[0]):
                ready.appendleft(bundle)
            else:
                ready.append(bundle)
        else:
            self._limits.wait(bundle, (bundle.due - AGEING * bundle.priority, -next(self._sequence)))
            if self._limits.used < self._limits.capacity:
                self._fill()

    def let_begin(self, works: Iterable[Work]) -> None:
        workers = self._workers
        for work in works:
            if work in workers.held:
                workers.held.remove(work)
                work.is_waiting = True
                workers.ready.append(work)
        workers.call_if_needed()

    def step_aside(self, works: Iterable[Work]) -> list[Work]:
        """Take back the room of works that answered HELD; return them, to `submit` later."""
        aside = [work for work in works if work in self._workers.held]
        for work in aside:
            self._workers.held.remove(work)
            self._release(work)
        self._workers.call_if_needed()
        return aside

    def has_shrunk(self, bundle: Bundle) -> None:
        if bundle.is_waiting and not len(bundle):
            self.cancel(bundle)

    def cancel(self, work: Work) -> None:
        """Drop waiting work; cancel running work where it awaits. Repeating is harmless."""
        worker = self._workers.worker_of(work)
        if worker is not None:
            worker.cancel()
        elif work in self._workers.held:
            self._workers.held.remove(work)
            work.drop()
            self._release(work)
            self._workers.call_if_needed()
        elif work.is_waiting:
            self._take_out(work, self._limits.forget)
            work.drop()
            self._fill()

    def ask_anew(self, work: Work, needs: Needs, priority: float) -> bool:
        """Change needs (checked) and priority of waiting work. False: not waiting."""
        if not work.is_waiting:
            return False
        self._take_out(work, self._limits.withdraw)
        work.needs, work.priority = needs, priority
        self.submit(work)
        self._fill()
        return True

    def kill(self, work: Work) -> None:
        """Give up running work that ignored its cancellation: its units are free at once.

        Its coroutine is closed by force at its next yield.
        """
        worker = self._workers.worker_of(work)
        if worker is None:
            self.cancel(work)
            return
        if worker.is_killed:
            return
        worker.kill()
        self._release(work)
        self._workers.call_if_needed()

    def check(self, needs: Needs) -> None:
        """Raise UnknownLimit or ValueError if these needs can never be met."""
        self._limits.check(needs)

    def resize(self, capacity: float | None = None, limits: Mapping[str, float] | None = None) -> None:
        """Change or add limits, or change the capacity. Running work goes on: a smaller limit drains."""
        self.check_sizes(capacity, limits)
        self._limits.resize(capacity, limits or {})
        self._fill()

    def lend(self, names: Collection[str], lender: Lender) -> None:
        """Take the units of these limits or families from a lender. Call before the first use.

        Their sizes are then those of all pools together.
        """
        self._limits.lend(names, lender)

    def let_rest(self, names: Collection[str], begins: Callable[[Needs], object]) -> None:
        """Pace these limits or families: units stay in use until `rested`, whenever the work ends.

        `begins` gets the units when work begins. Call before the first use.
        """
        self._limits.let_rest(names)

        def tell(work: Work) -> None:
            if needs := self._limits.begins(work):
                begins(needs)

        self._workers.begins = tell

    def rested(self, needs: Needs) -> None:
        self._limits.rested(needs)
        self._fill()

    def units_came(self, names: Collection[str]) -> None:
        self._limits.look_again(names)
        self._fill()

    def is_lent(self, name: str) -> bool:
        return self._limits.is_lent(name)

    def used_of(self, name: str) -> int:
        return self._limits.used_of(name)

    def waits_for(self, work: Work) -> str | None:
        """Return the named limit that waiting work waits for. None: the capacity, or its turn. Any thread."""
        return self._limits.place_of(work.needs)

    def held(self, name: str, most: int) -> HeldUnits[Work]:
        """Return how the units of a limit are held now, and `most` of the works that hold them. Any thread."""
        return self._limits.held(name, most)

    def ahead_of(self, work: Work) -> int:
        return self._limits.ahead(work.needs)

    def waiting_for_lent(self, most: int) -> Iterator[tuple[Needs, list[float], int]]:
        """Yield each line that only lent units hold up: needs, first `most` ranks, best first, and at most its length.

        A rank is a due time in seconds, earlier by AGEING per step of priority.
        """
        for needs, ranks, count in self._limits.waiting_for_lent(most):
            yield needs, [rank for rank, _ in ranks], count

    @staticmethod
    def check_sizes(capacity: float | None = None, limits: Mapping[str, float] | None = None) -> None:
        """Raise ValueError unless each size is a whole number from 1 or math.inf."""
        for name, size in {**({} if capacity is None else {"capacity": capacity}), **(limits or {})}.items():
            _check_size(name, size)

    async def drained(self) -> None:
        """Return when no work runs or waits."""
        while self._limits.used or self._limits.waiting:
            if self._emptied is None or self._emptied.is_set():
                self._emptied = anyio.Event()
            await self._emptied.wait()

    def statistics(self) -> PoolStatistics:
        limits = self._limits
        return PoolStatistics(limits.capacity, limits.used, limits.pieces(), self._workers.size, limits.statistics())

    def _take_out(self, work: Work, of_its_line: Callable[[Work], None]) -> None:
        work.is_waiting = False
        if work in self._workers.ready:
            self._workers.ready.remove(work)
            self._limits.give_back(work)
        else:
            of_its_line(work)

    def _drop_waiting(self) -> None:
        ready, waiting = [*self._workers.ready, *self._workers.held], self._limits.clear()
        self._workers.ready.clear()
        self._workers.held.clear()
        for work in ready:
            self._limits.give_back(work)
        for work in [*ready, *waiting]:
            work.is_waiting = False
            work.drop()

    def _release(self, work: Work) -> None:
        limits = self._limits
        if work.needs:
            limits.give_back(work)
        else:
            limits.used -= 1
        if not limits.waiting:
            if self._emptied is not None and not limits.used:
                self._emptied.set()
        elif limits.open_lines or limits.used >= limits.capacity or (following := limits.next_plain()) is None:
            self._fill(work)
        else:
            ready = self._workers.ready
            if ready and _rank(following) < _rank(ready[0]):
                ready.appendleft(following)
            else:
                ready.append(following)  # the worker that released takes it next

    def _fill(self, released: Work | None = None) -> None:
        admitted = [*self._limits.admit()]
        if self._waits is not None and released is not None:
            for work in admitted:
                self._waits(work, released)
        self._workers.ready.extend(admitted)
        self._workers.call_if_needed()
        if not self._limits.used and not self._limits.waiting and self._emptied is not None:
            self._emptied.set()


def _rank(work: Work) -> float:
    return work.due - AGEING * work.priority


def _as_coroutine(awaitable: Awaitable[Any]) -> Coroutine[Any, Any, Any]:
    if isinstance(awaitable, Coroutine):
        return awaitable
    return _await(awaitable)


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _check_size(name: str, size: float) -> None:
    if (
        isinstance(size, bool)
        or not isinstance(size, (int, float))
        or not size >= 1
        or (size != math.inf and size != int(size))
    ):
        msg = f"{name} must be a whole number from 1, or math.inf for no limit, not {size!r}"
        raise ValueError(msg)
