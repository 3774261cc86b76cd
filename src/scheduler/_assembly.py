"""Where a scheduler is put together: each part is made once, in the order of the folders, and handed what it needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from timerqueue import Alarm, Clock, Random, Rests, TaskPool, TimerQueue, boottime

from ._commits import Commits, InlineWriter, ThreadWriter, Writer
from ._control import PartedRegistry
from ._dispatch import Dispatch, Held, QueueAudit
from ._jobs import Alone, JobList, Ownership, Tasks, some_seconds_of
from ._journal import Journal
from ._lease import Belief, Ways
from ._lending import Units
from ._loop import Core, Loop, Turn
from ._memory import (
    Membership,
    Memory,
    Polling,
    Rejoining,
    Requests,
    ShardParts,
    Shards,
)
from ._plan import Timeline
from ._restore import Crashes, Intake, Reconciler, RowParts
from ._runs import Runs
from ._starts import CalendarJobs, CrashFloors, LeftOut, MissedTicks, Parking, Pausing, Starts, Trust
from ._values import InvalidJob, Listeners
from ._watchdog import AskWhatRuns, Records, Watchdog
from .queues import Queue
from .stores import Executions, Retention, Shares, Store, capabilities, store_at

AUDIT_EVERY: Final = 300.0
"""Seconds between audits where nobody says otherwise."""


def core_of(
    clock: Clock, pool: TaskPool, random: Random, *, max_subtasks: int, kill_after: float, ownership: Ownership
) -> Core:
    """Put together what runs jobs. `kill_after` in seconds. `ownership`: which stored jobs are ours."""

    def fire(batch: list[Alarm], now: float) -> None:
        turn.fire(batch, now)  # the queue is the first part that is made, and this the last

    queue = TimerQueue(clock=clock, fire=fire)
    listeners = Listeners()
    timeline = Timeline(clock)
    jobs = JobList(ownership)
    journal = Journal(timeline, clock.monotonic, has_heirs=ownership.is_shared)
    missed = MissedTicks(timeline, journal, listeners)
    floors = CrashFloors(timeline, clock.monotonic, missed)
    left_out = LeftOut(timeline, clock.monotonic, missed)
    parking = Parking(queue, listeners)
    starts = Starts(
        queue,
        timeline,
        jobs=jobs,
        journal=journal,
        floors=floors,
        left_out=left_out,
        parking=parking,
        listeners=listeners,
    )
    pausing = Pausing(starts=starts, parking=parking, missed=missed, jobs=jobs, journal=journal, listeners=listeners)
    calendar_jobs = CalendarJobs(starts, parking)
    runs = Runs(
        pool=pool,
        starts=starts,
        pausing=pausing,
        missed=missed,
        journal=journal,
        listeners=listeners,
        random=random,
        max_subtasks=max_subtasks,
        kill_after=kill_after,
    )
    loop = Loop(
        starts=starts, pausing=pausing, calendar_jobs=calendar_jobs, jobs=jobs, journal=journal, listeners=listeners
    )
    trust = Trust(starts, listeners)
    turn = Turn(loop, starts, runs, missed, listeners, trust=trust)
    return Core(
        clock=clock,
        monotonic=clock.monotonic,
        pool=pool,
        queue=queue,
        listeners=listeners,
        timeline=timeline,
        jobs=jobs,
        journal=journal,
        missed=missed,
        starts=starts,
        trust=trust,
        pausing=pausing,
        runs=runs,
        loop=loop,
        turn=turn,
    )


def rests_of(core: Core, windows: Mapping[str, float]) -> Rests:
    """Put together what keeps the pace, by the windows of limits in seconds."""
    return Rests(core.pool, core.queue.push, core.monotonic, windows)


def memory_of(
    store: Store,
    core: Core,
    registry: PartedRegistry,
    tasks: Tasks,
    *,
    crash_floor: float,
    retention: Retention,
    poll: float,
    audit: float | None,
    of_fleet: Mapping[str, int],
    rests: Rests,
    queue: Queue | None = None,
) -> tuple[Memory, Watchdog]:
    """Put together what deals with the store, and what audits all jobs, every `audit` seconds; None: when it is asked
    to. Raises TypeError for what is no Retention, and for a queue beside a store that has no executions.
    """
    core.runs.marks.let_go_without(tasks.goes_without_store, waits=not store.is_immediate)
    writer: Writer = InlineWriter() if store.is_immediate else ThreadWriter(core.loop.call_soon)
    sharing, ours = capabilities(store).sharing, core.jobs.ownership
    shares = ours if isinstance(ours, Shares) else None
    crashes = Crashes(core, core.runs.random, crash_floor=crash_floor)
    rows = RowParts(core, Intake(), Reconciler(registry, core, tasks, crashes), crashes)
    watchdog = Watchdog(core, audit, Records(core, crashes, rows.intake, asking_what_runs(store, core, writer)))
    requests = None if shares is None else Requests(sharing, writer, core, rows.reconciler, watchdog.audit_job)
    dispatch, queue_audit = (
        (None, None) if queue is None else of_queue(queue, store, writer, rows, registry=registry, requests=requests)
    )
    belief = Belief(boottime)
    ways = Ways(belief)
    commits = commits_of(store, writer, core, retention, belief=belief, ways=ways, requests=requests, dispatch=dispatch)
    polling = Polling(
        store,
        writer,
        rows,
        commits=commits,
        every=poll,
        sharing=sharing,
        beside=None if sharing is None or store.is_immediate else ThreadWriter(core.loop.call_soon),
        requests=requests,
        fetch=None if dispatch is None else dispatch.fetching.fetch,
    )

    def hint() -> None:
        memory.hint()  # which is made last

    shards = None
    if sharing is not None and shares is not None:
        parts = ShardParts(
            sharing=sharing,
            shares=shares,
            rows=rows,
            commits=commits,
            rejoining=Rejoining(store, hint, writer, rows, commits=commits, sharing=sharing, shares=shares),
            belief=belief,
            ways=ways,
            on_news=polling.hint,
        )
        shards = membership_of(parts, dispatch, queue_audit)
    memory = Memory(
        store,
        writer,
        rows,
        registry=registry,
        commits=commits,
        polling=polling,
        shards=shards,
        sharing=sharing,
        dispatch=dispatch,
        audit=queue_audit,
        units=None if shards is None else units_of(of_fleet, rests, store, core, shards),
    )
    return memory, watchdog


def commits_of(
    store: Store,
    writer: Writer,
    core: Core,
    retention: Retention,
    *,
    belief: Belief,
    ways: Ways,
    requests: Requests | None,
    dispatch: Dispatch | None,
) -> Commits:
    """Put together what is sent to the store, and who is told what became of it."""
    check_retention(retention)
    return Commits(
        store,
        writer,
        core,
        retention,
        doubt=None if capabilities(store).sharing is None else belief.doubt,
        tried=partial(ways.tried, "commits"),
        committed=None if dispatch is None else dispatch.committed,
        lost=None if dispatch is None else dispatch.lost,
        give_way=None if requests is None else requests.give_way,
    )


def membership_of(parts: ShardParts, dispatch: Dispatch | None, audit: QueueAudit | None) -> Shards:
    """Put together what decides which jobs are here: those of our shards, or those that come out of a queue."""
    if dispatch is None or audit is None:
        return Shards(parts)
    taking, fitting = dispatch.taking, dispatch.fitting
    return Membership(parts, on_lease=taking.on_lease, on_burial=audit.hint, on_view=fitting.see)


def of_queue(
    queue: Queue,
    store: Store,
    store_line: Writer,
    rows: RowParts,
    *,
    registry: PartedRegistry,
    requests: Requests | None,
) -> tuple[Dispatch, QueueAudit]:
    """Put together what deals with a queue, in a line of its own. Raises TypeError for a store without executions."""
    core = rows.core
    held = core.jobs.ownership
    assert requests is not None
    assert isinstance(held, Held)
    queue_line: Writer = InlineWriter() if queue.is_immediate else ThreadWriter(core.loop.call_soon)
    dispatch = Dispatch(
        queue,
        executions_of(store),
        held,
        rows,
        registry,
        carry_out=requests.carry_out,
        store_line=store_line,
        queue_line=queue_line,
    )
    return dispatch, QueueAudit(dispatch, core, store_line=store_line, queue_line=queue_line)


def check_retention(retention: Retention) -> None:
    """Raise TypeError for what is no Retention."""
    if not isinstance(retention, Retention):
        msg = f'retention must be a Retention, such as Retention(age="30d"), not {retention!r}'
        raise TypeError(msg)


def ownership_of(store: Store | None, queue: Queue | None) -> Ownership:
    """Which jobs of a store are ours: those that come out of a queue, those of our shards, or all of them."""
    sharing = capabilities(store).sharing
    if queue is not None:
        return Held(sharing)
    return Alone() if sharing is None else Shares(sharing)


def executions_of(store: Store) -> Executions:
    """The verbs by which jobs are taken that stand in a queue. Raises TypeError for a store that has none."""
    executions = capabilities(store).executions
    if executions is None:
        msg = f"a queue needs a store that keeps executions, such as PostgresStore(dsn, shared=True), and not {store!r}"
        raise TypeError(msg)
    return executions


def without_store(core: Core, audit: float | None) -> tuple[Memory | None, Watchdog]:
    """Put together what audits all jobs where no store is, every `audit` seconds; None: when it is asked to."""
    return None, Watchdog(core, audit)


def asking_what_runs(store: Store, core: Core, writer: Writer) -> AskWhatRuns:
    """Return what has the store say which ticks of our jobs run, after all that was sent before."""
    shares, sharing = core.jobs.ownership, capabilities(store).sharing
    if not isinstance(shares, Shares) or sharing is None:
        return lambda answered: writer.submit(store.running, answered)
    return lambda answered: writer.submit(lambda: sharing.running(shares.all()), answered)


def audit_of(store: Store | None, audit: object) -> float | None:
    """How often the watchdog audits, in seconds; None: when it is asked to. Raises InvalidJob for what is no length."""
    if audit == "auto":
        return None if store is None or store.is_immediate else AUDIT_EVERY
    return some_seconds_of("audit", audit)


def store_of(store: Store | str | None, queue: Queue | None, of_fleet: Mapping[str, int]) -> Store | None:
    """Find the store, which may be given by its URL. Raises TypeError for a queue without one, and InvalidJob for
    limits of the fleet without one that agents share, by which they know one another.
    """
    if isinstance(store, str):
        store = store_at(store)
    if queue is not None and store is None:
        msg = "a queue needs a store, which knows the jobs: give store=PostgresStore(dsn, shared=True) too"
        raise TypeError(msg)
    can = capabilities(store)
    if of_fleet and (can.sharing is None or can.lending is None):
        name, units = next(iter(of_fleet.items()))
        msg = (
            f"limit {name!r} is fleet({units}), for all agents that share a store, and this one has none: "
            f"give store=PostgresStore(..., shared=True), or {units} for this agent alone"
        )
        raise InvalidJob(msg)
    return store


def units_of(of_fleet: Mapping[str, int], rests: Rests, store: Store, core: Core, shards: Shards) -> Units | None:
    """Put together what borrows units of the fleet's limits. None: there are no such limits."""
    lending = capabilities(store).lending
    if not of_fleet or lending is None:
        return None
    writer = ThreadWriter(core.loop.call_soon)
    return Units(
        lending,
        of_fleet,
        rests=rests,
        writer=writer,
        core=core,
        holds_lease=shards.lease.is_held,
        tried=partial(shards.ways.tried, "units"),
    )
