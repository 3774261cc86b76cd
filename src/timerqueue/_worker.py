"""A worker: what one task of the event loop does, step by step.

The loop steps it as it would step a coroutine, and whoever asks the task for its coroutine finds the user's: its name,
its code, its frame, what it awaits. There are two ways to become one:

- made for one piece of work that may wait, whose task this is from its first line to its last (`begin`);
- made for whatever is ready (`Workers.serve`): it runs work by hand, in a row, and ends. Work that waits against
  expectation keeps the worker to itself (`keep`), whose task ends with it.

So no two pieces of work that wait ever share a task, and no task outlives a slice of time but for its own work.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from logging import getLogger
from typing import Any, Final, Protocol

from ._habits import Habit
from ._work import Runner, Work

logger = getLogger(__name__)

FORCE: Final = 10
"""How often killed work is told to end before its coroutine is let go as it stands."""


class Owner(Protocol):
    """The owner of a worker, as the worker sees it."""

    current: Work | None
    steps: int

    def serve(self, worker: Worker) -> Any:
        """Run what is ready. If the worker has come to keep work: what that waits for."""

    def adopted(self, worker: Worker) -> Any:
        """Its task has begun. Answer what tells whether work has left something there."""

    def left_alone(self, worker: Worker, before: Any) -> bool:
        """Whether the task looks as it did when `adopted` answered `before`."""

    def settle(self, worker: Worker) -> None:
        """Take note of a first wait, not in the work's own context."""

    def cancel(self, worker: Worker) -> None:
        """Cancel what it runs."""

    def kill(self, worker: Worker) -> None:
        """End what it runs by force."""

    def deliver(self, worker: Worker) -> None:
        """Deliver a cancellation to a worker that is about to wait."""

    def ended(self, worker: Worker, work: Work, value: Any, error: BaseException | None) -> bool:
        """Its work has ended. True: its task is to end with the error too."""

    def gone(self, worker: Worker) -> None:
        """Take note of a worker that was thrown out before it began."""


class Worker(Runner):
    """A worker steps one coroutine, or serves: it runs what is ready.

    `task`: its task of the event loop, once it has begun. If it is cancelled while it is shielded, it `owes_cancel`
    until it leaves the shield.
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
        owner: Owner,
        work: Work | None = None,
        running: Coroutine[Any, Any, Any] | None = None,
        habit: Habit | None = None,
    ) -> None:
        self.owner = owner
        self.work = work
        self.running = running
        self.habit = habit
        """Of its work's function, until the first step of that is done."""
        self.context: Context | None = None
        """What the work runs in, if that is not the task's own context."""
        self.task: Any = None
        self.scope: Any = None
        """On trio: what cancels it."""
        self.cancelling: Callable[[], int] = never
        """How often its task has been told to cancel itself, by whomever. For what it runs by hand."""
        self.ahead: tuple[Any, BaseException | None] | None = None
        """How the first step went, while the loop does not know that it has been taken."""
        self.is_fresh = True
        """It has not run anything by hand."""
        self.is_cancelled = False
        self.is_killed = False
        self.is_over = False
        self.owes_cancel = False

    def cancel(self) -> None:
        self.owner.cancel(self)

    def kill(self) -> None:
        self.owner.kill(self)

    def keep(self, work: Work, running: Coroutine[Any, Any, Any], context: Context) -> None:
        """Go on with this work, which waits, and end with it."""
        self.work, self.running, self.context = work, running, context

    def advance(self) -> None:
        """Take the first step now, before the loop would."""
        assert self.running is not None
        try:
            self.ahead = self._step(self.running.send, None), None
        except BaseException as exc:  # noqa: BLE001 - the loop is to see it
            self.ahead = None, exc

    def send(self, sent: Any) -> Any:
        """A step. Raises StopIteration at the end."""
        if self.ahead is not None and not self._may_go_on():
            return self._catch_up()
        if self.running is not None:
            try:
                return self._step(self.running.send, sent)
            finally:
                del sent  # on trio it may hold an error, whose traceback holds this frame: it is not to be held by that
        if not self.is_over:  # else it was ended by force while it waited
            yielded = self.owner.serve(self)
            if self.ahead is not None:
                return self._catch_up()
            if self.running is not None:
                return yielded
        raise StopIteration

    def throw(self, kind: Any, value: Any = None, traceback: Any = None) -> Any:
        """A step, into which something is raised."""
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
        """Whether what it waited for, when the first step was taken ahead, is there by now."""
        assert self.ahead is not None
        yielded, error = self.ahead
        if error is None and (yielded is None or getattr(yielded, "done", _no)()):
            self.ahead = None
        return self.ahead is None

    def _catch_up(self) -> Any:
        """Let the loop see how the first step went."""
        assert self.ahead is not None
        (yielded, error), self.ahead = self.ahead, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # as above
        if getattr(yielded, "_asyncio_future_blocking", None) is not None:
            yielded._asyncio_future_blocking = True  # noqa: SLF001 - what its `await` does; another may have awaited it since
        return yielded

    def close(self) -> None:
        """The loop lets go of it."""
        if self.running is not None:
            self.running.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return _drive(self)

    def __getattr__(self, name: str) -> Any:
        """All else is the coroutine's: its name, frame, code, and what it awaits."""
        running = self.running
        if running is None:
            raise AttributeError(name)
        return getattr(running, name)

    def force(self) -> None:
        """End the work here and now, between two of its steps."""
        running, work, attempts = self.running, self.work, 0
        if running is None or work is None:
            return
        error: BaseException | None = None
        while attempts < FORCE:
            attempts += 1
            try:
                self._enter(running.throw, GeneratorExit("killed"))
            except BaseException as exc:  # noqa: BLE001 - whatever it says at its end
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
    """Count nothing."""
    return 0


def _drive(worker: Worker) -> Generator[Any, Any, Any]:
    """Await all of a worker, for whoever steps nothing but coroutines."""
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
    """Never let it be finalized, not even at the end of the process.

    Python would close it then, and what answers every exception with another try would do so for ever.
    """
    import ctypes  # noqa: PLC0415 - almost never needed

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(running))
