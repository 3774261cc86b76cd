"""Deadlines: the time of a run, or of a subtask, is over."""

from __future__ import annotations

from timerqueue import Alarm

from .._jobs import Attempt
from .._values import Cause


class Deadline(Alarm):
    """The end of a run's time, `seconds` after it is armed."""

    __slots__ = ("run", "seconds")

    def __init__(self, run: Attempt, seconds: float) -> None:
        super().__init__()
        self.run: Attempt | None = run
        self.seconds = seconds

    def let_go(self) -> None:
        """Forget the run: the heap may keep a cancelled entry until its time, and must keep nothing else."""
        self.run = None


class Timeout(Deadline):
    """The run, or one of its subtasks, has taken too long: cancel it."""

    __slots__ = ()

    def fire(self) -> None:
        run = self.run
        if run is not None and run.cause is None:
            run.time_allowed = self.seconds
            run.terminate(Cause.TIMEOUT)


class GiveUp(Deadline):
    """The run has been cancelled and goes on all the same: give it up."""

    __slots__ = ()

    def fire(self) -> None:
        if self.run is not None:
            self.run.give_up()
