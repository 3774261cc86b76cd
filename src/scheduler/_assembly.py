"""Where a scheduler is put together: each part is made once, in the order of the folders, and handed what it needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from timerqueue import Alarm, Clock, Random, Rests, TaskPool, TimerQueue, boottime

from ._control import PartedRegistry
from ._dispatch import Dispatch, Held, QueueAudit
from ._jobs import JobList, Tasks, some_seconds_of
from ._journal import Journal
from ._lease import Belief, Ways
from ._lending import Units
from ._loop import Core, Loop, Turn
from ._memory import (
    Commits,
    InlineWriter,
    Membership,
    Memory,
    Polling,
    Rejoining,
    Requests,
    Shards,
    ThreadWriter,
    Writer,
)
from ._plan import Timeline
from ._restore import Crashes, Intake, Reconciler
from ._runs import Runs
from ._starts import CalendarJobs, CrashFloors, LeftOut, MissedTicks, Parking, Pausing, Starts, Trust
from ._values import InvalidJob, Listeners
from ._watchdog import AskWhatRuns, Records, Watchdog
from .queues import Queue
from .stores import Executions, Lending, Retention, Shares, Sharing, Store, store_at

AUDIT_EVERY: Final = 300.0
"""Seconds between audits where nobody says otherwise."""


def core_of(
    clock: Clock, pool: TaskPool, random: Random, *, max_subtasks: int, kill_after: float, shares: Shares | None = None
) -> Core:
    """Put together what runs jobs. `kill_after` in seconds. `shares`: of a store that others have, too."""

    def fire(batch: list[Alarm], now: float) -> None:
        turn.fire(batch, now)  # the queue is the first part that is made, and this the last

    queue = TimerQueue(clock=clock, fire=fire)
    listeners = Listeners()
    timeline = Timeline(clock)
    jobs = JobList(shares)
    journal = Journal(timeline, clock.monotonic, has_heirs=shares is not None)
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
    check_retention(retention)
    core.runs.marks.let_go_without(tasks.goes_without_store, waits=not store.is_immediate)
    writer: Writer = InlineWriter() if store.is_immediate else ThreadWriter(core.loop.call_soon)
    sharing, shares = sharing_of(store), core.jobs.shares
    crashes = Crashes(core, core.runs.random, crash_floor=crash_floor)
    reconciler = Reconciler(registry, core, tasks, crashes)
    parts: dict[str, Any] = {"core": core, "reconciler": reconciler, "intake": Intake()}
    watchdog = Watchdog(core, audit, Records(core, crashes, parts["intake"], asking_what_runs(store, core, writer)))
    requests = None if shares is None else Requests(sharing, writer, core, reconciler, watchdog.audit_job)
    dispatch, queue_audit = (
        (None, None) if queue is None else of_queue(queue, store, writer, registry, requests, **parts)
    )
    belief = Belief(boottime)
    ways = Ways(belief)
    commits = Commits(
        store,
        writer,
        core,
        retention,
        doubt=None if sharing is None or shares is None else belief.doubt,
        tried=partial(ways.tried, "commits"),
        committed=None if dispatch is None else dispatch.committed,
        lost=None if dispatch is None else dispatch.lost,
        give_way=None if requests is None else requests.give_way,
    )
    parts["commits"] = commits
    fetch = None if dispatch is None else dispatch.fetching.fetch
    beside = None if sharing is None or store.is_immediate else ThreadWriter(core.loop.call_soon)
    of_others: dict[str, Any] = {"sharing": sharing, "beside": beside, "requests": requests, "fetch": fetch}
    polling = Polling(store, writer, every=poll, **of_others, **parts)

    def hint() -> None:
        memory.hint()  # which is made last

    shards = None
    if sharing is not None and shares is not None:
        rejoining = Rejoining(store, hint, sharing, shares, writer, **parts)
        of_shards: dict[str, Any] = {"crashes": crashes, "rejoining": rejoining, "belief": belief, "ways": ways}
        shards = membership_of(sharing, shares, dispatch, queue_audit, on_news=polling.hint, **of_shards, **parts)
    memory = Memory(
        store,
        writer,
        registry=registry,
        crashes=crashes,
        polling=polling,
        shards=shards,
        sharing=sharing,
        dispatch=dispatch,
        audit=queue_audit,
        units=None if shards is None else units_of(of_fleet, rests, store, core, shards),
        **parts,
    )
    return memory, watchdog


def membership_of(
    sharing: Sharing, shares: Shares, dispatch: Dispatch | None, audit: QueueAudit | None, **parts: Any
) -> Shards:
    """Put together what decides which jobs are here: those of our shards, or those that come out of a queue."""
    if dispatch is None or audit is None:
        return Shards(sharing, shares, **parts)
    on: dict[str, Any] = {
        "on_lease": dispatch.taking.on_lease,
        "on_burial": audit.hint,
        "on_view": dispatch.fitting.see,
    }
    return Membership(sharing, shares, **on, **parts)


def of_queue(
    queue: Queue, store: Store, store_line: Writer, registry: PartedRegistry, requests: Requests | None, **parts: Any
) -> tuple[Dispatch, QueueAudit]:
    """Put together what deals with a queue, in a line of its own. Raises TypeError for a store without executions."""
    core: Core = parts["core"]
    held = core.jobs.shares
    assert requests is not None
    assert isinstance(held, Held)
    queue_line: Writer = InlineWriter() if queue.is_immediate else ThreadWriter(core.loop.call_soon)
    lines: dict[str, Any] = {"store_line": store_line, "queue_line": queue_line}
    executions = executions_of(store)
    dispatch = Dispatch(queue, executions, held, registry=registry, carry_out=requests.carry_out, **lines, **parts)
    return dispatch, QueueAudit(dispatch, core, **lines)


def check_retention(retention: Retention) -> None:
    """Raise TypeError for what is no Retention."""
    if not isinstance(retention, Retention):
        msg = f'retention must be a Retention, such as Retention(age="30d"), not {retention!r}'
        raise TypeError(msg)


def shares_of(store: Store | None, queue: Queue | None) -> Shares | None:
    """Which jobs of a store are ours: those of our shards, those that come out of a queue, or (None) all of them."""
    sharing = sharing_of(store)
    if queue is not None:
        return Held(sharing)
    return None if sharing is None else Shares(sharing)


def executions_of(store: Store) -> Executions:
    """The verbs by which jobs are taken that stand in a queue. Raises TypeError for a store that has none."""
    executions: Executions | None = getattr(store, "executions", None)
    if executions is None:
        msg = f"a queue needs a store that keeps executions, such as PostgresStore(dsn, shared=True), and not {store!r}"
        raise TypeError(msg)
    return executions


def without_store(core: Core, audit: float | None) -> tuple[Memory | None, Watchdog]:
    """Put together what audits all jobs where no store is, every `audit` seconds; None: when it is asked to."""
    return None, Watchdog(core, audit)


def asking_what_runs(store: Store, core: Core, writer: Writer) -> AskWhatRuns:
    """Return what has the store say which ticks of our jobs run, after all that was sent before."""
    shares, sharing = core.jobs.shares, sharing_of(store)
    if shares is None or sharing is None:
        return lambda answered: writer.submit(store.running, answered)
    return lambda answered: writer.submit(lambda: sharing.running(shares.all()), answered)


def audit_of(store: Store | None, audit: Any) -> float | None:
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
    if of_fleet and (sharing_of(store) is None or lending_of(store) is None):
        name, units = next(iter(of_fleet.items()))
        msg = (
            f"limit {name!r} is fleet({units}), for all agents that share a store, and this one has none: "
            f"give store=PostgresStore(..., shared=True), or {units} for this agent alone"
        )
        raise InvalidJob(msg)
    return store


def units_of(of_fleet: Mapping[str, int], rests: Rests, store: Store, core: Core, shards: Shards) -> Units | None:
    """Put together what borrows units of the fleet's limits. None: there are no such limits."""
    lending = lending_of(store)
    if not of_fleet or lending is None:
        return None
    writer = ThreadWriter(core.loop.call_soon)
    of_shards: dict[str, Any] = {"holds_lease": shards.lease.is_held, "tried": partial(shards.ways.tried, "units")}
    return Units(lending, of_fleet, rests=rests, writer=writer, core=core, **of_shards)


def lending_of(store: Store | None) -> Lending | None:
    """The verbs by which a store lends units of the fleet's limits. None: it does not."""
    lending: Lending | None = getattr(store, "lending", None)
    return lending


def sharing_of(store: Store | None) -> Sharing | None:
    """The verbs by which a store is shared with other agents. None: it is not, as most cannot be."""
    sharing: Sharing | None = getattr(store, "sharing", None)
    return sharing
