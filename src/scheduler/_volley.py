"""Runs that are due together, or the subtasks of one task, as one piece of work.

Most of them are short `async def`s that never wait, or wait once for the network, and what a pool does for a piece of
work costs more than such a one does itself. So what needs no named limit shares a place in the pool: a worker begins
one after another. As soon as one has to wait, it leaves with the unit that they share, and the rest asks for another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from logging import getLogger
from typing import Any

from timerqueue import Begun, Crew, Volley, Work, Worker

from ._run import MarkedRun, Run, SubtaskWork

logger = getLogger(__name__)


def in_places(tasks: Sequence[Run | SubtaskWork]) -> list[Work]:
    """The places in the pool that they need, in their order. What needs a limit or is stored has one of its own."""
    places: list[Work] = []
    together: list[Run | SubtaskWork] = []
    for task in tasks:
        if not task.needs and type(task) is not MarkedRun:
            together.append(task)
            continue
        if together:
            places.append(_in_one(together))
            together = []
        places.append(task)
    if together:
        places.append(_in_one(together))
    return places


def _in_one(tasks: Sequence[Run | SubtaskWork]) -> Work:
    return tasks[0] if len(tasks) == 1 else TaskVolley(tasks)


class TaskVolley(Volley):
    """Runs or subtasks of one priority, oldest first, none of which has begun."""

    __slots__ = ("_left", "_places")

    def __init__(self, tasks: Sequence[Run | SubtaskWork]) -> None:
        super().__init__((), tasks[0].priority, tasks[0].due)
        self._left = deque(tasks)
        self._places = [task.due for task in tasks]
        """Where they stand in the line, and before that, where those did that have left. Whoever comes to stand for a
        newer tick keeps its place.
        """
        for task in tasks:
            task.volley = self

    def __len__(self) -> int:
        return len(self._left)

    def run_on(self, crew: Crew, worker: Worker, until: float) -> Begun | None:
        left, base, monotonic, cancelling = self._left, crew.context, crew.monotonic, worker.cancelling
        now = monotonic()
        while left and now < until:
            task = left.popleft()
            task.volley = None
            task.worker = worker
            task.context = context = (base if task.context is None else task.context).copy()
            crew.current = task
            running: Any = None
            value: Any = None
            try:
                running = context.run(task.open, now)
                if running is not None:
                    yielded = context.run(running.send, None)
                    return self._leaves(Begun(task, context, running, is_waiting=True, yielded=yielded))
            except StopIteration as stop:
                if running is None:
                    return self._leaves(Begun(task, context, error=stop))
                value = stop.value
            except BaseException as exc:  # noqa: BLE001 - whatever it was, it is this task's outcome
                try:
                    return self._leaves(Begun(task, context, running, error=exc))
                finally:  # the exception holds this frame by its traceback, and is not to hold what this frame holds
                    del self, left, task, context, running
            if worker.is_cancelled or cancelling():
                return self._leaves(Begun(task, context, running, value=value))
            now = monotonic()
            task.worker = crew.current = None
            try:
                task.close(value, None, now)
            except Exception:
                logger.exception("the end of a task of job %r was not worked off", task.job.id)
            task.context = None
            if value is not None and isinstance(task, Run) and not task.is_over:
                break  # it has subtasks, and those of what has started go first
        if left:
            self.due = self._places[-len(left)]
        return None

    def take_out(self, task: Run | SubtaskWork) -> None:
        """It has been cancelled, and will not begin."""
        index = self._left.index(task)
        del self._places[index - len(self._left)]
        del self._left[index]
        task.volley = None

    def drop(self) -> None:
        while self._left:
            task = self._left.popleft()
            task.volley = None
            task.drop()

    def _leaves(self, begun: Begun) -> Begun:
        """One leaves: the rest stands where its oldest does."""
        if self._left:
            self.due = self._places[-len(self._left)]
        return begun
