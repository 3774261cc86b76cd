"""Metrics of the store, the queue, the fleet and the watchdog. A part that a scheduler lacks has no series."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from .._values import (
    AgentStatistics,
    Audit,
    DispatchStatistics,
    FleetStatistics,
    StoreStatistics,
    WatchdogStatistics,
)
from ._metric import Labelled, Metric, Reader, counter, gauge, one
from ._snapshot import Snapshot


def _of_store(read: Callable[[StoreStatistics], float]) -> Reader:
    return one(lambda it: None if it.statistics.store is None else read(it.statistics.store))


def _of_queue(read: Callable[[DispatchStatistics], float]) -> Reader:
    return one(lambda it: None if it.statistics.queue is None else read(it.statistics.queue))


def _by_reason(read: Callable[[DispatchStatistics], Mapping[str, int]]) -> Reader:
    def reader(snapshot: Snapshot) -> Iterator[Labelled]:
        queue = snapshot.statistics.queue
        for reason, count in {} if queue is None else read(queue).items():
            yield (reason.replace(" ", "_"),), count

    return reader


def _of_fleet(read: Callable[[FleetStatistics], float | None]) -> Reader:
    return one(lambda it: None if it.statistics.fleet is None else read(it.statistics.fleet))


def _of_me(read: Callable[[AgentStatistics], float | None]) -> Reader:
    def mine(fleet: FleetStatistics) -> float | None:
        me = next((each for each in fleet.agents if each.name == fleet.me), None)
        return None if me is None else read(me)

    return _of_fleet(mine)


def _of_watchdog(read: Callable[[WatchdogStatistics], float | None]) -> Reader:
    return one(lambda it: None if it.statistics.watchdog is None else read(it.statistics.watchdog))


def _of_audit(read: Callable[[Audit], float]) -> Reader:
    return _of_watchdog(lambda it: None if it.last is None else read(it.last))


STORE_METRICS: Final[tuple[Metric, ...]] = (
    gauge("store_up", "1 while the store works, 0 while it does not.", _of_store(lambda it: it.trouble is None)),
    counter("store_commits", "Commits that the store has taken.", _of_store(lambda it: it.commits)),
    gauge("store_unsaved", "Changes that are not durable yet.", _of_store(lambda it: it.unsaved)),
    gauge("queue_held", "Jobs of the queue that are with this node.", _of_queue(lambda it: it.held)),
    counter("queue_taken", "Executions taken from the queue.", _of_queue(lambda it: it.taken)),
    counter(
        "queue_dropped",
        "Executions that must not run, or not here, by reason.",
        _by_reason(lambda it: it.dropped),
        "reason",
    ),
    counter(
        "queue_without_task",
        "Executions left to nodes that know the task.",
        _of_queue(lambda it: it.without_task),
    ),
    gauge("queue_here", "Executions that wait here, as the queue refused them.", _of_queue(lambda it: it.here)),
    counter("queue_refused", "Refusals of the queue, by reason.", _by_reason(lambda it: it.refused), "reason"),
    counter("queue_missing", "Executions put again by an audit.", _of_queue(lambda it: it.missing)),
    counter("queue_premature", "Executions more than a second early, sent back.", _of_queue(lambda it: it.premature)),
    counter("queue_hops", "Executions due later than the server can count.", _of_queue(lambda it: it.hops)),
    counter("queue_expired", "Executions not touched in time, given to others.", _of_queue(lambda it: it.expired)),
    counter("queue_strange", "Foreign entries in the queue, put aside.", _of_queue(lambda it: it.strange)),
    gauge("fleet_nodes", "Nodes that share the store, as this one sees them.", _of_fleet(lambda it: len(it.agents))),
    gauge(
        "fleet_nodes_off",
        "Nodes whose clock is too far off to take part.",
        _of_fleet(lambda it: sum(each.is_off for each in it.agents)),
    ),
    gauge(
        "fleet_member",
        "1 while this node has its lease, 0 while others take it for dead.",
        _of_fleet(lambda it: bool(it.me)),
    ),
    gauge("fleet_shards", "Shards that this node owns.", _of_me(lambda it: it.shards)),
    gauge("fleet_skew_seconds", "How far this node's clock is ahead of the store's.", _of_me(lambda it: it.skew)),
    gauge("fleet_jobs_elsewhere", "Jobs of other nodes.", _of_fleet(lambda it: it.jobs_elsewhere)),
    gauge(
        "fleet_jobs_without_node",
        "Jobs that wait for labels that no node has.",
        _of_fleet(lambda it: sum(it.waiting.values())),
    ),
    counter("audits", "Audits of all jobs.", _of_watchdog(lambda it: it.audits)),
    gauge("audit_failing_jobs", "Jobs that the last audit could not mend.", _of_watchdog(lambda it: len(it.failing))),
    gauge("audit_last_timestamp_seconds", "When the last audit was, in UTC seconds.", _of_audit(lambda it: it.at)),
    gauge("audit_last_duration_seconds", "How long the last audit took.", _of_audit(lambda it: it.seconds)),
    gauge("audit_last_mended", "Faults that the last audit mended.", _of_audit(lambda it: it.mended)),
)
