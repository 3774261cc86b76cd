"""A subtask that needs care of its own: it has needs or a timeout, or has begun to wait."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from timerqueue import Work

from .._jobs import Job, NotLaunched
from .deadline import Deadline, Timeout
from .run import Run
from .subtask import Subtask


class SubtaskWork(Work):
    __slots__ = ("deadline", "run", "subtask")

    def __init__(self, run: Run, subtask: Subtask, due: float, context: Context | None) -> None:
        self.needs = subtask.needs
        self.priority = run.priority
        self.due = due
        self.context = context
        self.is_waiting = False
        self.worker = None
        self.run = run
        self.subtask = subtask
        self.deadline: Deadline | None = None

    @property
    def job(self) -> Job:
        return self.run.job

    @property
    def func(self) -> Callable[..., Any]:  # type: ignore[override] # its own
        return self.subtask.func

    @property
    def name(self) -> str:
        return f"job {self.run.job.id}"

    def open(self, now: float) -> Coroutine[Any, Any, Any] | None:  # noqa: ARG002 - the time does not matter here
        subtask = self.subtask
        if subtask.timeout is not None:
            self.deadline = Timeout(self.run, subtask.timeout)
            self.run.owner.arm_deadline(self.deadline)
        return subtask.call(subtask.func, subtask.args, subtask.kwargs)

    def close(self, value: Any, error: BaseException | None, now: float) -> None:  # noqa: ARG002 - its run reads the clock
        if type(error) is NotLaunched and self.run.may_wait:
            self._forget_deadline()
            self.run.owner.not_launched(self.run, self, error)
            return
        self._leave()
        if error is not None and self.run.error is None:
            self.run.failed_in = self.subtask
        self.run.task_ended(value, error, self.context)

    def drop(self) -> None:
        self._leave()
        self.run.task_ended(None, None, None)

    def _forget_deadline(self) -> None:
        if self.deadline is not None:
            self.run.owner.disarm_deadline(self.deadline)
            self.deadline = None

    def _leave(self) -> None:
        self._forget_deadline()
        self.run.let_go(self)
