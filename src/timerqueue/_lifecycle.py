from __future__ import annotations

import enum
import threading
from collections.abc import Set as AbstractSet

from ._errors import LifecycleError
from ._forks import LeftBehind, Resident


class LifecycleState(enum.Enum):
    PRE_RUNNING = "pre-running"
    RUNNING = "running"
    STOPPED = "stopped"


class Lifecycle(Resident):
    """A state that only moves forward, readable by any thread. A forked child sees STOPPED.

    `start` and `stop` compare and set under a lock, so one racing caller wins.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._state = LifecycleState.PRE_RUNNING
        self._left: LeftBehind | None = None
        self.failure: Exception | None = None
        self._bind_to_process(name)

    @property
    def state(self) -> LifecycleState:
        return self._state

    def _leave_behind(self, left: LeftBehind, keep: tuple[str, ...]) -> None:  # noqa: ARG002 - all of it stays
        self._lock = threading.Lock()  # another thread may have held the lock
        self._state = LifecycleState.STOPPED
        self._left = left

    def start(self) -> None:
        """Move to RUNNING. Raises LifecycleError if it runs, has run, or was stopped."""
        self.refuse_in_fork()
        if not self._move({LifecycleState.PRE_RUNNING}, LifecycleState.RUNNING):
            msg = f"this {self._name} is {self._state.value} and cannot be started: it runs once, so make a new one"
            raise LifecycleError(msg)

    def stop(self) -> bool:
        """Move to STOPPED. True for the one call that did it."""
        return self._move({LifecycleState.PRE_RUNNING, LifecycleState.RUNNING}, LifecycleState.STOPPED)

    def refuse_if_stopped(self, what: str) -> None:
        """Raise LifecycleError if stopped. `what`: the refused act."""
        if self._state is LifecycleState.STOPPED:
            self.refuse_in_fork()
            msg = f"cannot {what}: this {self._name} has stopped"
            raise LifecycleError(msg)

    def refuse_in_fork(self) -> None:
        if self._left is not None:
            self._left.refuse()

    def _move(self, expected: AbstractSet[LifecycleState], new: LifecycleState) -> bool:
        with self._lock:
            if self._state not in expected:
                return False
            self._state = new
            return True
