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

from timerqueue import Begun, Crew, Volley, Worker

from ._run import Run, SubtaskWork

logger = getLogger(__name__)


class TaskVolley(Volley):
    """Runs or subtasks of one priority, oldest first. Those that are dropped meanwhile stay, and are passed over."""

    __slots__ = ("_left", "_places")

    def __init__(self, tasks: Sequence[Run | SubtaskWork]) -> None:
        super().__init__((), tasks[0].priority, tasks[0].due)
        self._left = deque(tasks)
        self._places = [task.due for task in tasks]
        """Where they stand in the line. A run that comes to stand for a newer tick keeps its place."""

    def __len__(self) -> int:
        return len(self._left)

    def run_on(self, crew: Crew, worker: Worker, until: float) -> Begun | None:
        left, base, monotonic, cancelling = self._left, crew.context, crew.monotonic, worker.cancelling
        now = monotonic()
        while left and now < until:
            task = left.popleft()
            if task.is_over:
                continue
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
                return self._leaves(Begun(task, context, running, error=exc))
            if worker.is_cancelled or cancelling():
                return self._leaves(Begun(task, context, running, value=value))
            now = monotonic()
            task.worker = None
            try:
                task.close(value, None, now)
            except Exception:
                logger.exception("the end of a task of job %r was not worked off", task.job.id)
            task.context = None
        return None

    def drop(self) -> None:
        for task in self._left:
            if not task.is_over:
                task.drop()
        self._left.clear()

    def _leaves(self, begun: Begun) -> Begun:
        """One leaves: the rest stands where its oldest does."""
        if self._left:
            self.due = self._places[-len(self._left)]
        return begun


def is_in_volley(task: Run | SubtaskWork) -> bool:
    """Whether it waits in a place that it shares: it has not begun, and waits nowhere else."""
    if task.is_over or task.is_waiting or task.worker is not None:
        return False
    return isinstance(task, SubtaskWork) or (type(task) is Run and task.started is None)
