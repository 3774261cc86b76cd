"""A worker: what one task of the event loop does, step by step.

The loop steps it like the user's coroutine, whose name, code and frame it shows. Two kinds:
- For one work that may wait (`begin`): the task is that work's from first line to last.
- To serve what is ready (`Workers.serve`): it drives works by hand for one slice. Work that waits unexpectedly keeps
  it (`keep`), and the task ends with that work. So two waiting works never share a task.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from logging import getLogger
from typing import Any, Final, Protocol

from .habits import Habit
from .work import Runner, Work

logger = getLogger(__name__)

FORCE: Final = 10
"""Times killed work is told to end before its coroutine is abandoned."""


class WorkerOwner(Protocol):
    current: Work | None
    steps: int

    def serve(self, worker: Worker) -> Any:
        """Run what is ready. Returns what kept work waits for."""

    def adopted(self, worker: Worker) -> Any:
        """Note that the task has begun. Returns the state that `left_alone` compares."""

    def left_alone(self, worker: Worker, before: Any) -> bool: ...

    def settle(self, worker: Worker) -> None: ...

    def cancel(self, worker: Worker) -> None: ...

    def kill(self, worker: Worker) -> None: ...

    def deliver(self, worker: Worker) -> None:
        """Cancel a worker that is about to wait."""

    def ended(self, worker: Worker, work: Work, value: Any, error: BaseException | None) -> bool:
        """Note the end. True: the task must end with the error too."""

    def gone(self, worker: Worker) -> None: ...


class Worker(Runner):
    """Steps one coroutine, or serves: runs what is ready.

    `owes_cancel`: cancelled inside a shield that it has not left.
    """

    __slots__ = (
        "ahead",
        "context",
        "habit",
        "is_fresh",
        "is_over",
        "owes_cancel",
        "owner",
        "running",
        "scope",
        "task",
        "work",
    )

    def __init__(
        self,
        owner: WorkerOwner,
        work: Work | None = None,
        running: Coroutine[Any, Any, Any] | None = None,
        habit: Habit | None = None,
    ) -> None:
        self.owner = owner
        self.work = work
        self.running = running
        self.habit = habit
        self.context: Context | None = None
        self.task: Any = None
        self.scope: Any = None
        self.cancelling: Callable[[], int] = never
        self.ahead: tuple[Any, BaseException | None] | None = None
        self.is_fresh = True
        self.is_cancelled = False
        self.is_killed = False
        self.is_over = False
        self.owes_cancel = False

    def cancel(self) -> None:
        self.owner.cancel(self)

    def kill(self) -> None:
        self.owner.kill(self)

    def keep(self, work: Work, running: Coroutine[Any, Any, Any], context: Context) -> None:
        self.work, self.running, self.context = work, running, context

    def advance(self) -> None:
        assert self.running is not None
        try:
            self.ahead = self._step(self.running.send, None), None
        except BaseException as exc:  # noqa: BLE001 - passed on to the loop
            self.ahead = None, exc

    def send(self, sent: Any) -> Any:
        if self.ahead is not None and not self._may_go_on():
            return self._catch_up()
        if self.running is not None:
            try:
                return self._step(self.running.send, sent)
            finally:
                del sent  # on trio `sent` may be an error whose traceback holds this frame: a circle
        if not self.is_over:  # else it was ended by force while it waited
            yielded = self.owner.serve(self)
            if self.ahead is not None:
                return self._catch_up()
            if self.running is not None:
                return yielded
        raise StopIteration

    def throw(self, kind: Any, value: Any = None, traceback: Any = None) -> Any:
        error = kind if isinstance(kind, BaseException) else kind() if value is None else value
        try:
            if self.ahead is not None:
                yielded = self._catch_up()
                if yielded is not None and yielded.cancel():  # as the task would have, had it known
                    return yielded
            if self.running is not None:
                return self._step(self.running.throw, error)
            if self.is_over:
                raise StopIteration
            self.owner.gone(self)
            raise error
        finally:
            del kind, value, traceback, error  # as above

    def _may_go_on(self) -> bool:
        assert self.ahead is not None
        yielded, error = self.ahead
        if error is None and (yielded is None or getattr(yielded, "done", _no)()):
            self.ahead = None
        return self.ahead is None

    def _catch_up(self) -> Any:
        assert self.ahead is not None
        (yielded, error), self.ahead = self.ahead, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # as above
        if getattr(yielded, "_asyncio_future_blocking", None) is not None:
            yielded._asyncio_future_blocking = True  # noqa: SLF001 - as `await` does; another may have awaited it since
        return yielded

    def close(self) -> None:
        if self.running is not None:
            self.running.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return _drive(self)

    def __getattr__(self, name: str) -> Any:
        running = self.running
        if running is None:
            raise AttributeError(name)
        return getattr(running, name)

    def force(self) -> None:
        running, work, attempts = self.running, self.work, 0
        if running is None or work is None:
            return
        error: BaseException | None = None
        while attempts < FORCE:
            attempts += 1
            try:
                self._enter(running.throw, GeneratorExit("killed"))
            except BaseException as exc:  # noqa: BLE001 - whatever error it ends with
                error = exc
                break
        else:
            logger.error("work that ignores every way of ending it is let go: %r", running)
            _keep_for_ever(running)
        self._let_go()
        self.owner.ended(self, work, None, error)
        error = None

    def _step(self, step: Callable[[Any], Any], sent: Any) -> Any:
        owner = self.owner
        habit = self.habit
        before = None if habit is None or habit.quiet_calls < 0 else owner.adopted(self)
        if self.is_killed:
            self.force()
            raise StopIteration
        owner.current = self.work
        owner.steps += 1
        try:
            yielded = step(sent) if self.context is None else self.context.run(step, sent)
        except StopIteration as stop:
            self._end(before, stop.value, None)
            raise
        except BaseException as exc:
            if self._end(before, None, exc):
                raise
            raise StopIteration from None
        finally:
            del step, sent  # an exception holds this frame by its traceback, and must not be held by it
        owner.current = None
        if habit is not None:
            habit.broke_it()
            self.habit = None
            if self.context is not None:
                owner.settle(self)
        if self.owes_cancel:
            owner.deliver(self)
        return yielded

    def _end(self, before: Any, value: Any, error: BaseException | None) -> bool:
        owner, work, habit = self.owner, self.work, self.habit
        owner.current = None
        if habit is not None:
            if before is None or owner.left_alone(self, before):
                habit.kept_quiet()
            else:
                habit.broke_it()
        self._let_go()
        assert work is not None
        return owner.ended(self, work, value, error)

    def _let_go(self) -> None:
        self.is_over = True
        self.work = self.running = self.context = self.habit = self.ahead = None

    def _enter(self, step: Callable[[Any], Any], sent: Any) -> Any:
        return step(sent) if self.context is None else self.context.run(step, sent)


def _no() -> bool:
    return False


def never() -> int:
    return 0


def _drive(worker: Worker) -> Generator[Any, Any, Any]:
    step: Callable[[Any], Any] = worker.send
    sent: Any = None
    while True:
        try:
            yielded = step(sent)
        except StopIteration as stop:
            return stop.value
        finally:
            del step, sent
        try:
            sent = yield yielded
            step = worker.send
        except BaseException as exc:  # noqa: BLE001 - passed on into the work
            sent, step = exc, worker.throw


def _keep_for_ever(running: Coroutine[Any, Any, Any]) -> None:
    """Keep the coroutine from being finalized, even at the end of the process.

    Finalizing closes it, which never ends if work answers every exception with another try.
    """
    import ctypes  # noqa: PLC0415 - almost never needed

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(running))
