"""Scheduler, whose verbs any thread may call. Their effects happen on the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from logging import getLogger
from typing import Any, Literal, Never, TypeVar, overload

from anyio.abc import TaskGroup

from schedule import Missed
from timerqueue import Clock, Lifecycle, Random, SystemClock, TaskPool, system_random

from ._assembly import audit_of, core_of, ownership_of, rests_of, store_of
from ._assembly_store import StoreOptions, with_store, without_store
from ._changes import ChangeBook, NotedRegistry, said_of_sizes
from ._control import OnConflict, SomeJob
from ._fleet import Fleet, Rate, resize, sizes_of
from ._jobs import Handle as Job, Tasks, decorated
from ._lifespan import Lifespan
from ._plan import Start
from ._sets import Sync, Synced
from ._shape import (
    JobSpec,
    Policies,
    SomeSchedule,
    count_of,
    delay_of,
    flag_of,
    limit_of,
    part_of,
    parted,
    policy_of,
    poll_of,
    seconds_of,
    some_seconds_of,
    tag_of,
    text_of,
)
from ._values import Audit, Delivery, Event, InvalidJob, Listener, Overlap, Retry, scope_of
from ._views import RecentEvents, Views
from ._why import Whys
from ._words import refuse_options
from .queues import Queue
from .stores import Retention, Store

logger = getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])
E = TypeVar("E", bound=Event)
E2 = TypeVar("E2", bound=Event)


class Scheduler(Views):
    """Runs jobs on their schedules, under limits, until you stop it. A scheduler runs once.

    Use it as `async with Scheduler() as s:`, or add jobs and `await s.run()`.

    - `limit`: the most tasks at a time, subtasks included. `max_subtasks`: the most subtasks of one run.
    - `limits`: the units of each name in `needs`. "server:*" gives each name that begins with "server:" its own limit.
      `fleet(200)` holds for all nodes of a shared store. `rate(10, "1s")` lets ten tasks begin in any second.
    - `clock`: the clock of everything. Tests give a ManualClock. `random`: the source of the jitter of retries.
    - `kill_after`: how long a cancelled run may take to end before it is given up. `blocked_after`: how long the event
      loop may stand still before a LoopBlocked event. None: no event.
    - `store`: keeps jobs, counts and history: a Store, or a URL such as "sqlite:///jobs.db" or
      "postgresql://user@host/database". A job then names a registered task, and its arguments are JSON.
    - `queue`: where the next tick of each stored job waits, such as a BeanstalkdQueue. The store must
      keep executions, as PostgresStore does.
    - `crash_floor`: how long a job rests after its process died during a run. `retention`: how much history is kept.
      `poll`: how often others' changes are read.
    - `audit`: how often the watchdog checks all jobs. "auto": every five minutes if the store outlives the process.
      None: only when you call `audit()`.
    """

    _kind_of_life: type[Lifespan] = Lifespan

    def __init__(
        self,
        limit: float = 500,
        limits: Mapping[str, float | Fleet | Rate] | None = None,
        *,
        clock: Clock | None = None,
        max_subtasks: int = 10_000,
        kill_after: timedelta | float | str = "5s",
        store: Store | str | None = None,
        queue: Queue | None = None,
        crash_floor: timedelta | float | str = "5m",
        retention: Retention | None = None,
        poll: timedelta | float | str = "1s",
        blocked_after: timedelta | float | str | None = "1s",
        audit: timedelta | float | str | None = "auto",
        random: Random | None = None,
    ) -> None:
        self._clock: Clock = SystemClock() if clock is None else part_of("clock", clock, "make_wake", "ManualClock()")
        sizes = sizes_of(limits)
        store = store_of(store, queue, sizes.of_fleet)
        self._pool = TaskPool(limit_of("limit", limit), sizes.units, clock=self._clock)
        self._lifecycle = Lifecycle("Scheduler")
        self._core = core_of(
            self._clock,
            self._pool,
            system_random() if random is None else random,
            max_subtasks=count_of("max_subtasks", max_subtasks),
            kill_after=seconds_of("kill_after", kill_after),
            ownership=ownership_of(store, queue),
        )
        self._rests = rests_of(self._core, sizes.windows)
        self._listeners = self._core.listeners
        self._recent = RecentEvents(self._listeners)
        self._jobs = self._core.jobs
        self._tasks = Tasks(has_store=store is not None)
        self._registry = NotedRegistry(self._core, self._lifecycle, self._tasks, has_store=store is not None)
        self._changes = self._registry.book = ChangeBook(self._core, store)
        audit_every = audit_of(store, audit)
        if store is None:
            remembering = without_store(self._core, audit_every)
        else:
            options = StoreOptions(
                store=part_of("store", store, "commit", '"sqlite:///jobs.db"'),
                queue=None if queue is None else part_of("queue", queue, "census", "BeanstalkdQueue(...)"),
                crash_floor=delay_of("crash_floor", crash_floor),
                retention=Retention() if retention is None else retention,
                poll=poll_of("poll", poll),
                audit=audit_every,
                of_fleet=sizes.of_fleet,
            )
            remembering = with_store(options, self._core, self._registry, self._tasks, self._rests)
        self._memory, self._watchdog, self._units = remembering.memory, remembering.watchdog, remembering.units
        self._whys = Whys(self._core, self._registry, self._memory)
        self._policies = Policies()
        self._sync = Sync(self._registry, self._core, self._tasks, has_store=store is not None)
        self._group: TaskGroup | None = None
        self._life = self._kind_of_life(
            core=self._core,
            registry=self._registry,
            lifecycle=self._lifecycle,
            memory=self._memory,
            watchdog=self._watchdog,
            blocked_after=some_seconds_of("blocked_after", blocked_after),
        )
        self._bind_to_process("Scheduler", "_life")

    def add(
        self,
        func: Callable[..., Any] | str,
        schedule: SomeSchedule,
        *,
        id: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        needs: str | Iterable[str] | Mapping[str, int] = (),
        priority: float = 0,
        timeout: timedelta | float | str | None = None,
        retry: Retry | None = None,
        overlap: Overlap | str = Overlap.SKIP,
        max_running: int | None = None,
        missed: Missed | str = Missed.LATEST,
        grace: timedelta | float | str = 1.0,
        catch_up: int = 100,
        delivery: Delivery | str = Delivery.AT_MOST_ONCE,
        place: str | None = None,
        where: str | None = None,
        agents: int | Literal["all"] | None = None,
        apart: str | None = None,
        start: Start = None,
        inline: bool = False,
        on_conflict: OnConflict = "error",
        tags: Iterable[str] = (),
        name: str | None = None,
        durable: bool = True,
        owner: str | None = None,
        **unknown: Never,
    ) -> Job:
        """Add a job: run `func(*args, **kwargs)` whenever `schedule` says. Any thread.

        - `func`: an `async def`, or a `def`, which runs in a worker thread. It may return Subtasks. `args`, `kwargs`:
          its arguments. `inline`: call a `def` on the event loop, if it takes microseconds.
        - `schedule`: a Schedule, its text, or the interval of an Every. `id`: a unique name. None: "job-1" and so on.
        - `needs`: names of limits, or a mapping from names to units. `priority`: the highest waiting job goes first.
          One step weighs as much as ten seconds of waiting.
        - `timeout`: for one run with all its subtasks. `retry`: when to try again after a failure. `overlap`: what to
          do when the last run has not ended. `max_running`: the most runs at a time, for Overlap.ALLOW. None: 10.
        - `missed`: which late ticks still run. `grace`: how late is too late, for Missed.SKIP. `catch_up`: the most
          waiting ticks, for Missed.ALL. `delivery`: whether a tick runs again after a crash.
        - `place`: jobs of one place are on one node. `where`: the labels that a node needs, such as "region=eu".
          `agents`: how many nodes run each tick, or "all". `apart`: the label in which they differ. None: "zone".
        - `start`: "phase" (None means this for Every): a hash of `id` decides the place in the first interval. "now":
          at once, and then on the grid. Or a datetime.
        - `on_conflict`: what to do if the id exists, in the store too. "error": raise. "update": change the job, but
          keep its counts, pause and place in the schedule. "replace": remove it first. "keep": change nothing.
        - `tags`: words by which you pause many jobs. `name`: a name for people. `durable`: keep the job in the store,
          if there is one. Then `func` is a registered task, or its name. `owner`: the file or set that the job came
          from. None: code.

        Raises InvalidJob, DuplicateJob, ScheduleError, UnknownLimit or AlreadyStopped. Then nothing has changed.
        """
        if unknown:
            refuse_options("add", unknown)
        options = (needs, priority, timeout, retry, overlap, max_running, missed, grace, catch_up, delivery, place)
        policy = self._policies.of((*options, where, owner))
        if inline is not False or durable is not True:
            inline, durable = flag_of("inline", inline), flag_of("durable", durable)
        if name is not None:
            text_of("name", name)
        if self._memory is None and not isinstance(func, str):
            task, work, call = None, func, self._registry.call_of(func, inline)
        else:
            task, work, call = self._tasks.resolve(func, inline=inline, durable=durable)
        if agents is not None or apart is not None:
            policy = parted(policy, agents, apart)
        add = self._registry.add if policy.agents is None else self._registry.add_parted
        return add(id, schedule, start, policy, on_conflict, task, work, call, args, kwargs, name, tags)

    def add_many(
        self,
        func: Callable[..., Any] | str,
        jobs: Iterable[SomeJob],
        *,
        needs: str | Iterable[str] | Mapping[str, int] = (),
        priority: float = 0,
        timeout: timedelta | float | str | None = None,
        retry: Retry | None = None,
        overlap: Overlap | str = Overlap.SKIP,
        max_running: int | None = None,
        missed: Missed | str = Missed.LATEST,
        grace: timedelta | float | str = 1.0,
        catch_up: int = 100,
        delivery: Delivery | str = Delivery.AT_MOST_ONCE,
        place: str | None = None,
        where: str | None = None,
        start: Start = None,
        inline: bool = False,
        on_conflict: OnConflict = "error",
        tags: Iterable[str] = (),
        durable: bool = True,
        owner: str | None = None,
    ) -> list[Job]:
        """Add many jobs that run `func` with the same options, all or none. Any thread.

        `jobs`: NewJobs, or tuples (id, schedule), (id, schedule, args) or (id, schedule, args, kwargs). A NewJob may
        have its own name and more tags. Other options are as in `add`. Each job costs a third to two thirds of an
        `add`.

        Returns the jobs in this order. Raises as `add` does, with the index of the wrong job, and DuplicateJob for a
        repeated id.
        """
        options = (needs, priority, timeout, retry, overlap, max_running, missed, grace, catch_up, delivery, place)
        policy = self._policies.of((*options, where, owner))
        inline, durable = flag_of("inline", inline), flag_of("durable", durable)
        task, called, call = self._tasks.resolve(func, inline=inline, durable=durable)
        return [*self._registry.add_many(jobs, start, policy, on_conflict, task, called, call, tags)]

    def sync(self, specs: Iterable[JobSpec], *, owner: str, prune: bool = True, dry_run: bool = False) -> Synced:
        """Make the owner's jobs those of `specs`: add, change and remove what differs. Any thread.

        Jobs that are the same already stay untouched. A changed job keeps its counts, pause and place in the schedule.
        A job with another `place`, `where`, `agents` or `apart` is replaced. `prune` False: remove no job. `dry_run`:
        change nothing, only return what would change. With a store, call it after the scheduler has started.

        Raises WrongOwner for the id of another owner's job, and otherwise as `add`, with the index of the wrong spec.
        Then nothing has changed. Another thread may take an id while more than 50 jobs change: then the jobs before it
        have changed, and none is removed.
        """
        if owner is None:
            msg = 'owner must be the name of the set, such as "cmdb": the jobs of code are no set'
            raise InvalidJob(msg)
        policy_of({"owner": owner})
        prune, dry_run = flag_of("prune", prune), flag_of("dry_run", dry_run)
        synced = self._sync.sync(specs, owner, prune=prune, dry_run=dry_run)
        if prune and not dry_run:
            self._registry.note_set(owner, added=synced.added, changed=synced.changed, removed=synced.removed)
        return synced

    def register(
        self,
        name: str,
        func: Callable[..., Any],
        *,
        inline: bool = False,
        replace: bool = False,
        without_store: bool = False,
    ) -> None:
        """Let stored jobs name `func`. Jobs that waited for this name begin. Any thread.

        `inline`: a `def` runs on the loop itself. `replace`: `func` may replace another callable. `without_store`: runs
        begin even while the store does not answer, for tasks that may run twice. Raises InvalidJob.
        """
        self._tasks.register(name, func, inline=inline, replace=replace, without_store=without_store)
        if self._memory is not None:
            self._core.loop.call(self._memory.reconciler.revive, name)

    @overload
    def task(self, name: F) -> F: ...

    @overload
    def task(self, name: str | None = None, *, inline: bool = False) -> Callable[[F], F]: ...

    def task(self, name: F | str | None = None, *, inline: bool = False) -> F | Callable[[F], F]:
        """Register a task as a decorator: `@s.task("http")`. `@s.task` alone takes the function's own name."""
        return decorated(self.register, name, inline=inline)

    async def flush(self) -> None:
        """Wait until all your earlier changes are durable. Without a store: until they have been carried out.

        Call it on the event loop of any thread. It waits as long as the store does not work. Raises StoreError if the
        store has refused a change, and LifecycleError.
        """
        if self._memory is None:
            await self.turn()
        else:
            self._refuse_unless_running("flush")
            await self._memory.flush()

    async def turn(self) -> None:
        """Wait until all your earlier calls have been carried out, durable or not.

        Call it on the event loop of any thread. It shows that the scheduler's own event loop turns.
        """
        await self._core.loop.caught_up()

    async def audit(self) -> Audit:
        """Check the next start of each job now, mend what is wrong, and return the findings.

        The watchdog does this every `audit` seconds. While another audit goes on, this one checks nothing and says so.
        Raises LifecycleError unless the scheduler runs.
        """
        self._refuse_unless_running("audit")
        return await self._watchdog.audited()

    def reconcile(self, id: str | None = None) -> None:
        """Check that each job that should start by itself has exactly one next start, and that others have none.

        `id` None: all jobs. Each of your changes ends with this check. Any thread. Raises JobNotFound.
        """
        for job in self._jobs.jobs() if id is None else [self._jobs.get(id)]:
            self._core.loop.call(self._watchdog.look_at, job)

    def remove(self, id: str) -> None:
        """Remove the job, as `Job.remove` does. Raises JobNotFound. Any thread."""
        self._jobs.get(id).remove()

    def pause(self, tag: str | None = None, *, reason: str | None = None, until: datetime | None = None) -> None:
        """Pause all jobs, or all with a tag, until `resume`, or until `until` by the wall clock. Any thread.

        Paused jobs, present and future, do not start by themselves. Runs may end, and `Job.run_now` works. A job starts
        only if neither it, nor one of its tags, nor everything is paused. Another call changes the pause's reason and
        end. Raises InvalidJob unless `until` is aware and in the future.
        """
        self._registry.pause_scope(scope_of(tag_of(tag)), reason, until)

    def resume(self, tag: str | None = None) -> None:
        """End the pause of all jobs, or of a tag, if any. Missed ticks stay missed. Any thread.

        Jobs under another pause, or with their own, stay paused.
        """
        self._registry.resume_scope(scope_of(tag_of(tag)))

    @overload
    def listen(self, listener: Listener) -> Callable[[], None]: ...

    @overload
    def listen(self, listener: Callable[[E], object], kind: type[E], /) -> Callable[[], None]: ...

    @overload
    def listen(self, listener: Callable[[E | E2], object], kind: type[E], other: type[E2], /) -> Callable[[], None]: ...

    @overload
    def listen(
        self, listener: Callable[[Any], object], kind: type[Event], other: type[Event], /, *kinds: type[Event]
    ) -> Callable[[], None]: ...

    def listen(self, listener: Callable[[Any], object], *kinds: type[Any]) -> Callable[[], None]:
        """Call `listener` on the loop with every event, or with some kinds: `s.listen(callback, RunEnded)`.

        Call the returned function to stop listening. Raises TypeError.
        """
        return self._listeners.add(listener, *kinds)

    def resize(self, limit: float | None = None, limits: Mapping[str, float | Fleet | Rate] | None = None) -> None:
        """Change the limit or named limits, or add some. Runs go on: a smaller limit drains. Any thread.

        Raises InvalidJob for a wrong size, or if a limit would change between the fleet's and our own.
        """
        size = None if limit is None else limit_of("limit", limit)
        sizes = sizes_of(limits)
        before, after = said_of_sizes(self._pool, limit, limits or {})
        resize(self._core, self._units, self._rests, size, sizes)
        self._changes.note(self._changes.made("resize", "limits"), before, after)
