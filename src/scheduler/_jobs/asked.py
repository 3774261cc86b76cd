from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from datetime import timedelta
from threading import Event, Lock
from typing import Any, Final

from anyio.lowlevel import current_token

from timerqueue import LeftBehind, Lifecycle, LifecycleError, LifecycleState, SystemClock

from .._plan import instant_of
from .._shape import seconds_of
from .._values import MissedReason, Outcome, RunEnded, RunMissed

START_WITHIN: Final = 10.0
"""Seconds of real time."""


class AskedRun:
    """The run that you asked for with `Job.run_now`. Await it, or call `result` in a thread, or ignore it.

    The answer is the RunEnded of the last attempt, also of a run that was about to begin. It is a RunMissed if no run
    began; `reason` says why: overlap, a pause, a removal, the stop. Both have `outcome`, `result` and `error`. A failed
    run raises nothing here. If something else replaced a retry, `retry_at` of the answer says when it would have been.

    Waiting raises LifecycleError after ten seconds if the scheduler does not run.
    """

    __slots__ = (
        "__weakref__",
        "_answer",
        "_lifecycle",
        "_lock",
        "_open",
        "_waiting",
        "due_us",
        "is_along",
        "job_id",
        "last_end",
        "number",
    )

    def __init__(
        self, job_id: str, open_ones: set[AskedRun], lifecycle: Lifecycle | None = None, number: int | None = None
    ) -> None:
        self.job_id = job_id
        self.number = number
        """The stored request's number, if another node made it."""
        self.due_us: int | None = None
        """In UTC microseconds, once known."""
        self.is_along = False
        """Whether the tick belongs to another run, which answers if it begins after the request."""
        self.last_end: RunEnded | None = None
        self._answer: RunEnded | RunMissed | None = None
        self._lifecycle = lifecycle
        self._lock: Lock | LeftBehind = Lock()
        self._waiting: list[Callable[[], object]] = []
        self._open = open_ones
        open_ones.add(self)

    def __repr__(self) -> str:
        return f"<AskedRun of {self.job_id!r} {'waits' if self._answer is None else self._answer.outcome.value}>"

    def __await__(self) -> Generator[Any, Any, RunEnded | RunMissed]:
        return self._wait().__await__()

    @property
    def is_done(self) -> bool:
        return self._answer is not None

    def result(self, timeout: timedelta | float | str | None = None) -> RunEnded | RunMissed:
        """Block this thread until there is an answer, for at most `timeout` of real time.

        Raises TimeoutError, InvalidJob if `timeout` is not a duration, and RuntimeError on an event loop. Without a
        timeout: LifecycleError if the scheduler does not run.
        """
        seconds = None if timeout is None else seconds_of("timeout", timeout)
        if self._answer is None:
            _refuse_on_a_loop()
        done = Event()
        self._tell(done.set)
        try:
            if seconds is None and self._waits_for_start:
                done.wait(START_WITHIN)
                self._refuse_if_not_run()
            if not done.wait(seconds):
                why = f": {_NOBODY_RUNS_IT}" if self._waits_for_start else ""
                msg = f"the run of job {self.job_id!r} that was asked for has not ended after {seconds:g} s{why}"
                raise TimeoutError(msg)
        finally:
            self._forget(done.set)
        return self._answered()

    def leave(self, left: LeftBehind) -> None:
        """Refuse waiters, in a forked child."""
        self._lock = left

    def settle(self, answer: RunEnded | RunMissed) -> None:
        with self._lock:
            if self._answer is None:
                self._answer = answer
            waiting, self._waiting = self._waiting, []
        self._open.discard(self)
        for wake in waiting:
            wake()

    def give_up(self, now_us: int) -> None:
        due = instant_of(now_us if self.due_us is None else self.due_us)
        self.settle(self.last_end or RunMissed(self.job_id, due, due, 1, MissedReason.STOPPED))

    async def _wait(self) -> RunEnded | RunMissed:
        wake = SystemClock().make_wake()
        self._tell(wake.set)
        try:
            if self._waits_for_start:
                await wake.wait(START_WITHIN)
                self._refuse_if_not_run()
            if self._answer is None:
                await wake.wait(None)
        finally:
            self._forget(wake.set)
        return self._answered()

    @property
    def _waits_for_start(self) -> bool:
        is_there = self._lifecycle is not None and self._lifecycle.state is LifecycleState.PRE_RUNNING
        return is_there and self._answer is None

    def _refuse_if_not_run(self) -> None:
        if self._waits_for_start:
            msg = f"the run of job {self.job_id!r} that was asked for cannot begin: {_NOBODY_RUNS_IT}"
            raise LifecycleError(msg)

    def _tell(self, wake: Callable[[], object]) -> None:
        with self._lock:
            if self._answer is None:
                self._waiting.append(wake)
                return
        wake()

    def _forget(self, wake: Callable[[], object]) -> None:
        with self._lock:
            if wake in self._waiting:
                self._waiting.remove(wake)

    def _answered(self) -> RunEnded | RunMissed:
        assert self._answer is not None
        return self._answer

    def tell(self, wake: Callable[[], object]) -> None:
        """Call `wake` when there is an answer. Any thread."""
        self._tell(wake)

    @property
    def answer(self) -> RunEnded | RunMissed | None:
        return self._answer


_NOBODY_RUNS_IT: Final = "this scheduler does not run; call `await s.run()`, or enter `async with s`, before you wait"


def answer_together(whole: AskedRun, parts: Sequence[AskedRun]) -> None:
    """Answer when all parts have: with the first failure, or else the last answer."""

    def look() -> None:
        answers = [part.answer for part in parts]
        given = [answer for answer in answers if answer is not None]
        if len(given) == len(parts):
            whole.settle(next((each for each in given if each.outcome is not Outcome.SUCCEEDED), given[-1]))

    for part in parts:
        part.tell(look)


def _refuse_on_a_loop() -> None:
    try:
        current_token()
    except RuntimeError:  # no loop runs here
        return
    msg = "result() would block the event loop, and the run with it: await it instead"
    raise RuntimeError(msg)
