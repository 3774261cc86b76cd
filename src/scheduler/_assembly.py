"""The assembly of a scheduler: each part is made once, in the order of the folders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from timerqueue import Alarm, Clock, Random, Rests, TaskPool, TimerQueue

from ._fleet import Claims
from ._jobs import Alone, JobList, Ownership
from ._journal import Journal
from ._loop import Core, Loop, Turn
from ._plan import Timeline
from ._runs import Runs
from ._shape import some_seconds_of
from ._starts import CalendarJobs, ClockGuard, CrashFloors, LeftOut, MissedTicks, Parking, Pausing, Starts
from ._values import InvalidJob, Listeners
from .queues import Queue
from .stores import OwnedShards, Store, capabilities, store_at

AUDIT_EVERY: Final = 300.0
"""Seconds, by default."""


def core_of(
    clock: Clock, pool: TaskPool, random: Random, *, max_subtasks: int, kill_after: float, ownership: Ownership
) -> Core:
    """`kill_after` in seconds."""

    def fire(batch: list[Alarm], now: float) -> None:
        turn.fire(batch, now)  # the queue is made first, and this last

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
    clock_guard = ClockGuard(starts, listeners)
    turn = Turn(loop, starts, runs, missed, listeners, clock_guard=clock_guard)
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
        clock_guard=clock_guard,
        pausing=pausing,
        runs=runs,
        loop=loop,
        turn=turn,
    )


def rests_of(core: Core, windows: Mapping[str, float]) -> Rests:
    """`windows`: seconds by limit."""
    return Rests(core.pool, core.queue.push, core.monotonic, windows)


def ownership_of(store: Store | None, queue: Queue | None) -> Ownership:
    """Choose which stored jobs are ours: claims from a queue, our shards, or all."""
    sharing = capabilities(store).sharing
    if queue is not None:
        return Claims(sharing)
    return Alone() if sharing is None else OwnedShards(sharing)


def audit_of(store: Store | None, audit: object) -> float | None:
    """Return seconds between audits. None: on request only. Raises InvalidJob if `audit` is no duration."""
    if audit == "auto":
        return None if store is None or store.is_immediate else AUDIT_EVERY
    return some_seconds_of("audit", audit)


def store_of(store: Store | str | None, queue: Queue | None, of_fleet: Mapping[str, int]) -> Store | None:
    """Find the store, if given by its URL.

    Raises TypeError for a queue without a store, and InvalidJob for a limit of the fleet without a shared store.
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
            f"limit {name!r} is fleet({units}), for all nodes that share a store, and this one has none: "
            f"give store=PostgresStore(..., shared=True), or {units} for this node alone"
        )
        raise InvalidJob(msg)
    return store
