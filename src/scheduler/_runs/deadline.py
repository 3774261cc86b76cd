from __future__ import annotations

from timerqueue import Alarm

from .._jobs import JobAttempt
from .._values import Cause


class Deadline(Alarm):
    __slots__ = ("run", "seconds")

    def __init__(self, run: JobAttempt, seconds: float) -> None:
        super().__init__()
        self.run: JobAttempt | None = run
        self.seconds = seconds

    def let_go(self) -> None:
        """Forget the run: the heap may keep a cancelled entry until its time."""
        self.run = None


class Timeout(Deadline):
    __slots__ = ()

    def fire(self) -> None:
        run = self.run
        if run is not None and run.cause is None:
            run.time_allowed = self.seconds
            run.terminate(Cause.TIMEOUT)


class GiveUp(Deadline):
    __slots__ = ()

    def fire(self) -> None:
        if self.run is not None:
            self.run.give_up()
