"""Plain runs that are due together, run one after another as one piece of work.

Most runs of most schedulers are short `async def`s that never wait, or wait once for the network. What the pool and its
workers do for a piece of work costs more than such a run does itself. So the plain runs of a batch share a place in
the pool, and one loop, `run_on`, begins them.

As soon as something is not plain (a run waits, raises, answers something or is cancelled, or somebody listens) the run
leaves the loop for the general way and takes the volley's unit of the pool along; the rest asks for another. That a run
cannot tell which way it went is held by tests/scheduler/test_volleys.py.
"""

from __future__ import annotations

from collections import deque
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final

from timerqueue import Begun, Crew, Volley, Worker

from ._current import RUN
from ._run import Run
from ._state import RUNNING, STARTING

if TYPE_CHECKING:
    from ._runs import Runs

logger = getLogger(__name__)

_set_run: Final = RUN.set


class RunVolley(Volley):
    """Plain runs of one priority, oldest first. Those that are dropped meanwhile stay, and are passed over."""

    __slots__ = ("_left", "_places", "_runs")

    def __init__(self, runs: Runs, plain: list[Run]) -> None:
        super().__init__((), plain[0].priority, plain[0].due)
        self._runs = runs
        self._left = deque(plain)
        self._places = [run.due for run in plain]
        """Where they stand in the line. A run that comes to stand for a newer tick keeps its place."""

    def __len__(self) -> int:
        return len(self._left)

    def run_on(self, crew: Crew, worker: Worker, until: float) -> Begun | None:  # noqa: C901 - see above
        left, runs, listeners = self._left, self._runs, self._runs.listeners
        monotonic, base, cancelling = crew.monotonic, crew.context, worker.cancelling
        now = monotonic()
        while left and now < until:
            run = left.popleft()
            if run.is_over:
                continue
            job = run.job
            run.worker = worker
            run.context = context = base.copy()
            crew.current = run
            running: Any = None
            try:
                if listeners.anybody or runs.is_stopping:
                    running = context.run(run.open, now)
                    if running is None:
                        return self._leaves(Begun(run, context))
                else:
                    run.started = now if now > run.due else run.due  # noqa: FURB136 - `max` costs as much as a run
                    if job.state is STARTING:
                        job.state = RUNNING
                    context.run(_set_run, run)
                    running = job.func(*job.args)  # a real `async def`: none of its code runs yet
                yielded = context.run(running.send, None)
            except StopIteration as stop:
                if running is None:
                    return self._leaves(Begun(run, context, error=stop))
                value = stop.value
            except BaseException as exc:  # noqa: BLE001 - whatever it was, it is this run's outcome
                return self._leaves(Begun(run, context, running, error=exc))
            else:
                return self._leaves(Begun(run, context, running, is_waiting=True, yielded=yielded))
            if value is not None or not run.is_plain or cancelling():
                return self._leaves(Begun(run, context, running, value=value))
            now = monotonic()
            run.worker = run.context = None
            run.is_over = True
            try:
                runs.run_ended(run, now)
            except Exception:
                logger.exception("the end of a run of job %r was not worked off", job.id)
        return None

    def drop(self) -> None:
        for run in self._left:
            if not run.is_over:
                run.drop()
        self._left.clear()

    def _leaves(self, begun: Begun) -> Begun:
        """One leaves: the rest stands where its oldest does."""
        if self._left:
            self.due = self._places[-len(self._left)]
        return begun
