"""Runs that are due together, or the subtasks of one task, as one piece of work.

Most of them are short `async def`s that never wait, or wait once for the network, and what a pool does for a piece of
work costs more than such a one does itself. So what needs no named limit shares a place in the pool: a worker begins
one after another. As soon as one has to wait, it leaves with the unit that they share, and the rest asks for another.

The loops over runs and over subtasks are written out, each with the way of its commonest case: a task that has nothing
to it but its code, never waits, and returns None. Whatever differs from that goes the way of `open` and `close`, by
which it would have gone alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextvars import Context
from itertools import groupby
from logging import getLogger
from typing import Any, Final, Generic, Protocol, TypeVar

from timerqueue import Begun, Crew, Volley, Work, Worker

from ._call import awaited
from ._current import RUN
from ._run import Owner, Run, SubtaskWork
from ._state import RUNNING

logger = getLogger(__name__)

T = TypeVar("T", Run, SubtaskWork)

_belongs_to: Final = RUN.set


class RunsOwner(Owner, Protocol):
    """What a volley of runs asks of those who have put it together."""

    def run_succeeded(self, run: Run, now: float) -> None:
        """It has ended, without anything to it but its entry task, which returned None."""

    def begun(self, run: Run) -> None:
        """This one has left its volley, and goes on or ends by itself."""

    def emptied(self, volley: RunVolley) -> None:
        """None of its runs is left."""


def subtasks_in_places(tasks: Sequence[SubtaskWork]) -> list[Work]:
    """The places in the pool that they need, in their order. What needs a limit has one of its own."""
    places: list[Work] = []
    for needs_some, group in groupby(tasks, key=lambda task: bool(task.needs)):
        together = list(group)
        places += together if needs_some else [SubtaskVolley(together)]
    return places


class _TaskVolley(Volley, Generic[T]):
    """Tasks of one priority, oldest first, none of which has begun."""

    __slots__ = ("_moved", "left")

    def __init__(self, priority: float, due: float, tasks: Sequence[T] = ()) -> None:
        super().__init__((), priority, due)
        self.left: deque[T] = deque(tasks)
        """Those that have not begun. Another thread may copy it."""
        self._moved: dict[T, float] | None = None
        """Who has come to stand for a newer tick, with the due time by which it keeps its place in the line."""

    def __len__(self) -> int:
        return len(self.left)

    def keep_place(self, task: T) -> None:
        """It is about to stand for a newer tick."""
        if self._moved is None:
            self._moved = {}
        self._moved.setdefault(task, task.due)

    def _rank_rest(self) -> None:
        """The rest stands where its oldest does."""
        if self.left:
            oldest = self.left[0]
            self.due = oldest.due if self._moved is None else self._moved.get(oldest, oldest.due)


class RunVolley(_TaskVolley[Run]):
    """Entry tasks."""

    __slots__ = ("_owner",)

    def __init__(self, owner: RunsOwner, priority: float, due: float) -> None:
        super().__init__(priority, due)
        self._owner = owner

    def put(self, run: Run) -> None:
        run.volley = self
        self.left.append(run)

    def run_on(self, crew: Crew, worker: Worker, until: float) -> Begun | None:  # noqa: C901 - as said above
        left, owner, fresh = self.left, self._owner, crew.context.copy
        monotonic, cancelling = crew.monotonic, worker.cancelling
        next_run, succeeded, listeners = left.popleft, owner.run_succeeded, owner.listeners
        now = monotonic()
        while left and now < until:
            crew.current = run = next_run()
            job = run.job
            context = fresh()
            running: Any = None
            value: Any = None
            try:
                if job.is_plain and not listeners.anybody and not owner.is_stopping:
                    run.started = now if now > run.due else run.due  # noqa: FURB136 - as in Run.open
                    job.state = RUNNING
                    context.run(_belongs_to, run)
                    running = job.func(*job.args)
                else:
                    running = context.run(run.open, now)
                if running is not None:
                    yielded = context.run(running.send, None)
                    return self._leaves(Begun(run, context, running, is_waiting=True, yielded=yielded), worker)
            except StopIteration as stop:
                if running is None:
                    return self._leaves(Begun(run, context, error=stop), worker)
                value = stop.value
            except BaseException as exc:  # noqa: BLE001 - whatever it was, it is this run's outcome
                try:
                    return self._leaves(Begun(run, context, running, error=exc), worker)
                finally:  # the exception holds this frame by its traceback, and is not to hold what this frame holds
                    del self, left, run, job, context, running, next_run
            if worker.is_cancelled or cancelling():
                return self._leaves(Begun(run, context, running, value=value), worker)
            now = monotonic()
            try:
                if value is None and run.special is None and running is not None:
                    succeeded(run, now)
                    continue
                self._has_begun(run, context)
                run.close(value, None, now)
            except Exception:
                logger.exception("the end of a run of job %r was not worked off", job.id)
            run.context = None
            if run.subtasks:
                break  # those of what has started go first
        crew.current = None
        self._settle()
        return None

    def stand(self) -> bool:
        """It is about to stand in the line, where its oldest does by now. False: all of it has been cancelled."""
        self._moved = None
        self._rank_rest()
        return bool(self.left)

    def dissolve(self) -> list[Run]:
        """Let each run go on its own way."""
        runs = list(self.left)
        self.left.clear()
        for run in runs:
            run.volley = None
        return runs

    def take_out(self, run: Run) -> bool:
        """It has been cancelled, and will not begin. False: it has begun."""
        if run not in self.left:
            return False
        self.left.remove(run)
        run.volley = None
        self._settle()
        return True

    def drop(self) -> None:
        while self.left:
            run = self.left[0]
            self.take_out(run)
            run.drop()

    def _leaves(self, begun: Begun, worker: Worker) -> Begun:
        """One leaves, with the unit."""
        assert isinstance(begun.work, Run)
        begun.work.worker = worker
        self._has_begun(begun.work, begun.context)
        self._settle()
        return begun

    def _has_begun(self, run: Run, context: Context) -> None:
        run.volley = None
        run.context = context
        self._owner.begun(run)

    def _settle(self) -> None:
        if self.left:
            self._rank_rest()
        else:
            self._moved = None  # they hold this by their `volley`, and garbage in a circle waits for the collector
            self._owner.emptied(self)


class SubtaskVolley(_TaskVolley[SubtaskWork]):
    """Subtasks of one task."""

    __slots__ = ()

    def __init__(self, tasks: Sequence[SubtaskWork]) -> None:
        super().__init__(tasks[0].priority, tasks[0].due, tasks)
        for task in tasks:
            task.volley = self

    def run_on(self, crew: Crew, worker: Worker, until: float) -> Begun | None:
        left, monotonic, cancelling = self.left, crew.monotonic, worker.cancelling
        next_task = left.popleft
        now = monotonic()
        while left and now < until:
            crew.current = task = next_task()
            context = task.context.copy()  # type: ignore[union-attr] # it has its parent's
            running: Any = None
            value: Any = None
            try:
                subtask = task.subtask
                if subtask.call is awaited and subtask.timeout is None:
                    func, args, kwargs = subtask.func, subtask.args, subtask.kwargs
                    running = func(*args, **kwargs) if kwargs else func(*args)
                else:
                    running = context.run(task.open, now)
                yielded = context.run(running.send, None)
                return self._leaves(Begun(task, context, running, is_waiting=True, yielded=yielded), worker)
            except StopIteration as stop:
                if running is None:
                    return self._leaves(Begun(task, context, error=stop), worker)
                value = stop.value
            except BaseException as exc:  # noqa: BLE001 - whatever it was, it is this subtask's outcome
                try:
                    return self._leaves(Begun(task, context, running, error=exc), worker)
                finally:  # the exception holds this frame by its traceback, and is not to hold what this frame holds
                    del self, left, task, context, running, next_task
            if worker.is_cancelled or cancelling():
                return self._leaves(Begun(task, context, running, value=value), worker)
            now = monotonic()
            run = task.run
            subtasks = run.subtasks
            try:
                if value is not None or task.deadline is not None or subtasks is None:
                    task.context = context
                    task.close(value, None, now)
                else:
                    subtasks.discard(task)
                    if not subtasks:
                        run.finish()
            except Exception:
                logger.exception("the end of a subtask of job %r was not worked off", run.job.id)
            task.context = None
        crew.current = None
        self._rank_rest()
        return None

    def take_out(self, task: SubtaskWork) -> bool:
        """It has been cancelled, and will not begin. False: it has begun."""
        if task not in self.left:
            return False
        self.left.remove(task)
        task.volley = None
        return True

    def drop(self) -> None:
        while self.left:
            task = self.left.popleft()
            task.volley = None
            task.drop()

    def _leaves(self, begun: Begun, worker: Worker) -> Begun:
        """One leaves, with the unit."""
        task = begun.work
        assert isinstance(task, SubtaskWork)
        task.worker, task.context, task.volley = worker, begun.context, None
        self._rank_rest()
        return begun
