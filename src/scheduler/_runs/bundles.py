"""Bundles: runs due together, or the subtasks of one task, as one piece of work.

Most are short `async def`s that wait at most once and cost less than the pool. So those without named limits share a
unit. A piece that waits leaves with the unit; the rest asks for another.

The loops are written out for the commonest task, which never waits and returns None. Others go through `open` and
`close`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextvars import Context
from itertools import groupby
from logging import getLogger
from typing import Any, Final, Protocol

from timerqueue import Bundle, Detached, Host, Runner

from .._jobs import RUN, Job, awaited
from .._values import RUNNING
from .run import Run, RunOwner, RunPlace
from .subtask import Subtask
from .subtask_work import SubtaskWork

logger = getLogger(__name__)

HEAD_START: Final = 60.0
"""Seconds by which subtasks precede entries due with their run: jobs that have begun finish first.

Counted from the run's due time, however long other work waits. Bounded, lest subtasks of later runs hold up an entry
for ever.
"""

_belongs_to: Final = RUN.set


class RunsOwner(RunOwner, Protocol):
    def run_succeeded(self, run: Run, now: float) -> None:
        """Count a plain run, which returned None."""

    def begun(self, run: Run) -> None: ...

    def emptied(self, bundle: RunBundle) -> None: ...


def places_of(run: Run, subtasks: Sequence[Subtask], context: Context | None) -> list[SubtaskBundle | SubtaskWork]:
    """Return the work of new subtasks, in order. `context`: their parent's."""
    due = run.due - HEAD_START
    special = {id(each) for each in subtasks if each.call is not awaited or each.needs or each.timeout is not None}
    if not special:
        return [SubtaskBundle(run, subtasks, due, context)]
    places: list[SubtaskBundle | SubtaskWork] = []
    for is_special, group in groupby(subtasks, key=lambda each: id(each) in special):
        if is_special:
            places += [SubtaskWork(run, subtask, due, context) for subtask in group]
        else:
            places.append(SubtaskBundle(run, group, due, context))
    return places


class RunBundle(RunPlace):
    """Runs of one priority, oldest first."""

    __slots__ = ("_moved", "_owner", "left")

    steps_back = True

    def __init__(self, owner: RunsOwner, priority: float, due: float) -> None:
        super().__init__((), priority, due)
        self._owner = owner
        self.left: deque[Run] = deque()
        """Runs that have not begun. Another thread may copy it."""
        self._moved: dict[Run, float] | None = None
        """Runs that stand for a newer tick, with the due time that keeps their position."""

    def __len__(self) -> int:
        return len(self.left)

    @property
    def func(self) -> Callable[..., Any] | None:  # type: ignore[override] # the next run's
        return self.left[0].job.func if self.left else None

    def keep_place(self, run: Run) -> None:
        if self._moved is None:
            self._moved = {}
        self._moved.setdefault(run, run.due)

    def put(self, run: Run) -> None:
        run.bundle = self
        self.left.append(run)

    def run_on(self, workers: Host, worker: Runner, until: float) -> Detached | None:  # noqa: C901, PLR0912, PLR0915 - as said above
        left, owner, fresh = self.left, self._owner, workers.context.copy
        monotonic, cancelling = workers.monotonic, worker.cancelling
        next_run, succeeded, listeners = left.popleft, owner.run_succeeded, owner.listeners.anybody
        habit_of, is_quiet, first = workers.habits.of, False, left[0] if left else None
        known: Any = None
        now = monotonic()
        while left and now < until:
            workers.current = run = next_run()
            job = run.job
            if job.func is not known:
                known = job.func
                is_quiet = habit_of(known).is_quiet
                if not is_quiet and run is not first and not workers.begins_elsewhere:
                    left.appendleft(run)
                    break
            context = fresh()
            running: Any = None
            value: Any = None
            try:
                if job.is_plain and not listeners and not owner.is_stopping:
                    run.started = now if now > run.due else run.due  # noqa: FURB136 - as in Run.open
                    job.state = RUNNING
                    context.run(_belongs_to, run)
                    running = known(*job.args)
                else:
                    running = context.run(run.open, now)
                if running is not None:
                    if not is_quiet:
                        return self._leaves(Detached(run, context, running, is_new=True), worker)
                    yielded = context.run(running.send, None)
                    return self._leaves(Detached(run, context, running, is_waiting=True, yielded=yielded), worker)
            except StopIteration as stop:
                if running is None:
                    return self._leaves(Detached(run, context, error=stop), worker)
                value = stop.value
            except BaseException as exc:  # noqa: BLE001 - whatever it was, it is this run's outcome
                try:
                    return self._leaves(Detached(run, context, running, error=exc), worker)
                finally:  # the exception holds this frame by its traceback; the frame must not hold these in turn
                    del self, left, run, job, context, running, next_run
            if worker.is_cancelled or cancelling():
                return self._leaves(Detached(run, context, running, value=value), worker)
            now = monotonic()
            try:
                if value is None and run.sparse is None and running is not None:
                    succeeded(run, now)
                    continue
                self._has_begun(run, context)
                run.close(value, None, now)
            except Exception:
                logger.exception("the end of a run of job %r could not be handled", job.id)
            run.context = None
            if run.subtasks:
                break  # subtasks of what has started go first
        workers.current = None
        self._settle()
        return None

    def stand(self) -> bool:
        """Rank it by its oldest run. False: none is left."""
        self._moved = None
        self._rank_rest()
        return bool(self.left)

    def dissolve(self) -> list[Run]:
        runs = list(self.left)
        self.left.clear()
        for run in runs:
            run.bundle = None
        return runs

    def take_out(self, run: Run) -> bool:
        """Remove a run. False: it has begun."""
        if run not in self.left:
            return False
        self.left.remove(run)
        run.bundle = None
        self._settle()
        return True

    def drop(self) -> None:
        while self.left:
            run = self.left[0]
            self.take_out(run)
            run.drop()

    def _leaves(self, begun: Detached, worker: Runner) -> Detached:
        assert isinstance(begun.work, Run)
        begun.work.worker = worker
        self._has_begun(begun.work, begun.context)
        self._settle()
        return begun

    def _has_begun(self, run: Run, context: Context) -> None:
        run.bundle = None
        run.context = context
        self._owner.begun(run)

    def _rank_rest(self) -> None:
        if self.left:
            oldest = self.left[0]
            self.due = oldest.due if self._moved is None else self._moved.get(oldest, oldest.due)

    def _settle(self) -> None:
        if self.left:
            self._rank_rest()
        else:
            self._moved = None  # its runs hold this by their `bundle`, and garbage in a circle waits for the collector
            self._owner.emptied(self)


def on_their_own(held: Iterable[Run | RunBundle]) -> list[Run]:
    runs: list[Run] = []
    for each in held:
        runs += each.dissolve() if isinstance(each, RunBundle) else [each]
    return runs


class SubtaskBundle(Bundle):
    """Plain subtasks of one task: `async def`s without limit or timeout.

    In the run's `subtasks` it counts for all of them. A subtask that waits or has failed gets a SubtaskWork.
    """

    __slots__ = ("left", "run")

    def __init__(self, run: Run, subtasks: Iterable[Subtask], due: float, context: Context | None) -> None:
        super().__init__((), run.priority, due, context)
        self.run = run
        self.left = deque(subtasks)

    def __len__(self) -> int:
        return len(self.left)

    @property
    def job(self) -> Job:
        return self.run.job

    @property
    def func(self) -> Callable[..., Any] | None:  # type: ignore[override] # the next subtask's
        return self.left[0].func if self.left else None

    def run_on(self, workers: Host, worker: Runner, until: float) -> Detached | None:  # noqa: C901 - as said above
        left, base = self.left, self.context
        fresh = (workers.context if base is None else base).copy
        monotonic, cancelling, next_subtask = workers.monotonic, worker.cancelling, left.popleft
        workers.current = self
        workers.steps += 1  # a watchdog must tell this slice from an earlier one
        habit_of, is_quiet, first = workers.habits.of, False, left[0] if left else None
        known: Any = None
        now = monotonic()
        while left and now < until:
            subtask = next_subtask()
            if subtask.func is not known:
                known = subtask.func
                is_quiet = habit_of(known).is_quiet
                if not is_quiet and subtask is not first and not workers.begins_elsewhere:
                    left.appendleft(subtask)
                    break
            context = fresh()
            running: Any = None
            try:
                running = known(*subtask.args, **subtask.kwargs) if subtask.kwargs else known(*subtask.args)
                if not is_quiet:
                    return Detached(self._moves_out(workers, worker, subtask, context), context, running, is_new=True)
                yielded = context.run(running.send, None)
                return self._leaves(workers, worker, subtask, context, running, is_waiting=True, yielded=yielded)
            except StopIteration as stop:
                if running is None:
                    return self._leaves(workers, worker, subtask, context, error=stop)
                value = stop.value
            except BaseException as exc:  # noqa: BLE001 - whatever it was, it is this subtask's outcome
                try:
                    return self._leaves(workers, worker, subtask, context, running, error=exc)
                finally:  # the exception holds this frame by its traceback; the frame must not hold these in turn
                    del self, left, base, fresh, subtask, context, running, next_subtask
            if worker.is_cancelled or cancelling():
                return self._leaves(workers, worker, subtask, context, running, value=value)
            now = monotonic()
            if value is not None:
                self._take(value, context)
        workers.current = None
        if not left:
            self._end()
        return None

    def drop(self) -> None:
        self.left.clear()
        self._end()
        self.context = None  # its line may keep the bundle for long
        del self.run

    def _take(self, value: Any, context: Context) -> None:
        try:
            self.run.task_ended(value, None, context)
        except Exception:
            logger.exception("the end of a subtask of job %r could not be handled", self.job.id)

    def _end(self) -> None:
        try:
            self.run.let_go(self)
            self.run.task_ended(None, None, None)
        except Exception:
            logger.exception("the end of a run of job %r could not be handled", self.job.id)

    def _leaves(
        self,
        workers: Host,
        worker: Runner,
        subtask: Subtask,
        context: Context,
        running: Coroutine[Any, Any, Any] | None = None,
        **state: Any,
    ) -> Detached:
        return Detached(self._moves_out(workers, worker, subtask, context), context, running, **state)

    def _moves_out(self, workers: Host, worker: Runner, subtask: Subtask, context: Context) -> SubtaskWork:
        work = SubtaskWork(self.run, subtask, self.due, context)
        workers.current, work.worker = work, worker
        self.run.hold(work)
        if not self.left:
            self.run.let_go(self)
        return work
