"""The parts that deal with a store, for each kind of ownership."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from attrs import frozen

from timerqueue import Rests, boottime

from ._commits import Commits, Consequences, InlineWriter, NoConsequences, ThreadWriter, Writer
from ._control import PartedRegistry
from ._fleet import (
    Borrowing,
    Claims,
    Dispatch,
    LeaseGuard,
    NodeParts,
    NoUnits,
    OtherNodes,
    Owned,
    QueueAudit,
    Queued,
    QueuedConsequences,
    QueueNode,
    Rejoining,
    RequestAnswers,
    Requests,
    Sharded,
    SharedConsequences,
    StoreWays,
    Units,
    fetched_if_unheeded,
    leave_to_owners,
)
from ._jobs import Tasks
from ._loop import Core
from ._memory import Membership, Memory, Nobody, NoFleet, Others, Polling
from ._restore import Crashes, Reconciler, RowParts, RowReader
from ._watchdog import AskWhatRuns, Records, Watchdog
from .queues import Queue
from .stores import Executions, OwnedShards, Retention, Sharing, Store, StoredRequest, StoredTick, View, capabilities

EPOCH_BITS: Final = 32
"""Bits of a fence below its epoch."""


@frozen(kw_only=True)
class StoreOptions:
    """Options for a store. Times in seconds. `audit` None: on request only."""

    store: Store
    queue: Queue | None
    crash_floor: float
    retention: Retention
    poll: float
    audit: float | None
    of_fleet: Mapping[str, int]


@frozen(eq=False)
class Remembering:
    """The parts that deal with a store. `memory` None: there is none."""

    memory: Memory | None
    watchdog: Watchdog
    units: Borrowing


@frozen(eq=False)
class _Base:
    options: StoreOptions
    registry: PartedRegistry
    writer: Writer
    rows: RowParts
    rests: Rests

    @property
    def core(self) -> Core:
        return self.rows.core

    @property
    def store(self) -> Store:
        return self.options.store

    def watchdog(self, running: Callable[[], list[StoredTick]]) -> Watchdog:
        """`running`: the store's list of our running ticks, asked after all earlier calls."""
        ask: AskWhatRuns = partial(self.writer.submit, running)
        return Watchdog(self.core, self.options.audit, Records(self.core, self.rows.crashes, self.rows.row_reader, ask))

    def commits(self, consequences: Consequences) -> Commits:
        return Commits(self.store, self.writer, self.core, self.options.retention, consequences)

    def polling(self, commits: Commits, others: Others) -> Polling:
        return Polling(self.store, self.writer, self.rows, commits=commits, others=others, every=self.options.poll)

    def line(self, *, is_immediate: bool) -> Writer:
        """Make a writer whose calls commits do not delay."""
        return InlineWriter() if is_immediate else ThreadWriter(self.core.loop.call_soon)

    def remembering(
        self, commits: Commits, polling: Polling, membership: Membership, watchdog: Watchdog, units: Borrowing
    ) -> Remembering:
        memory = Memory(
            self.store,
            self.writer,
            self.rows,
            registry=self.registry,
            commits=commits,
            polling=polling,
            membership=membership,
            units=units,
        )
        return Remembering(memory, watchdog, units)


def without_store(core: Core, audit: float | None) -> Remembering:
    """Audit all jobs every `audit` seconds. None: on request only."""
    return Remembering(None, Watchdog(core, audit), NoUnits())


def with_store(options: StoreOptions, core: Core, registry: PartedRegistry, tasks: Tasks, rests: Rests) -> Remembering:
    """Raises TypeError if `retention` is not a Retention, or the store has no executions for a queue."""
    check_retention(options.retention)
    store = options.store
    core.runs.marks.let_go_without(tasks.goes_without_store, waits=not store.is_immediate)
    writer: Writer = InlineWriter() if store.is_immediate else ThreadWriter(core.loop.call_soon)
    crashes = Crashes(core, core.runs.random, crash_floor=options.crash_floor)
    rows = RowParts(core, RowReader(), Reconciler(registry, core, tasks, crashes), crashes)
    base = _Base(options, registry, writer, rows, rests)
    ownership, sharing = core.jobs.ownership, capabilities(store).sharing
    if isinstance(ownership, Claims) and options.queue is not None:
        return queued(base, ownership, options.queue)
    if isinstance(ownership, OwnedShards) and sharing is not None:
        return sharded(base, ownership, sharing)
    return alone(base)


def alone(base: _Base) -> Remembering:
    store = base.store
    watchdog = base.watchdog(lambda: store.running())  # noqa: PLW0108 - it is looked up at each audit
    commits = base.commits(NoConsequences())
    polling = base.polling(commits, Nobody(base.writer))
    return base.remembering(commits, polling, NoFleet(store, polling.hint), watchdog, NoUnits())


def sharded(base: _Base, shares: OwnedShards, sharing: Sharing) -> Remembering:
    watchdog = base.watchdog(lambda: sharing.running(shares.all()))
    requests = Requests(base.core, base.rows.reconciler, watchdog.audit_job)
    fleet = _Fleet(base, sharing, requests)
    commits = base.commits(fleet.consequences)
    polling = base.polling(commits, fleet.others(leave_to_owners))
    membership = Sharded(fleet.node_parts(shares, commits, polling), shares, base.rows)
    return base.remembering(commits, polling, membership, watchdog, fleet.units())


def queued(base: _Base, held: Claims, queue: Queue) -> Remembering:
    store, sharing = base.store, capabilities(base.store).sharing
    executions = executions_of(store)
    watchdog = base.watchdog(lambda: store.running() if sharing is None else _of_us(store.running(), sharing.last))
    requests = Requests(base.core, base.rows.reconciler, watchdog.audit_job)
    queue_line = base.line(is_immediate=queue.is_immediate)
    dispatch = Dispatch(
        queue,
        executions,
        held,
        base.rows,
        base.registry,
        carry_out=requests.carry_out,
        store_line=base.writer,
        queue_line=queue_line,
    )
    audit = QueueAudit(dispatch, base.core, store_line=base.writer, queue_line=queue_line)
    if sharing is None:
        commits = base.commits(QueuedConsequences(NoConsequences(), dispatch, requests))
        polling = base.polling(commits, Nobody(base.writer))
        membership = Queued(NoFleet(store, polling.hint), dispatch, audit)
        return base.remembering(commits, polling, membership, watchdog, NoUnits())
    fleet = _Fleet(base, sharing, requests)
    commits = base.commits(QueuedConsequences(fleet.consequences, dispatch, requests))
    polling = base.polling(commits, fleet.others(fetched_if_unheeded(dispatch.fetching.fetch)))
    node = QueueNode(fleet.node_parts(held, commits, polling), dispatch, audit)
    return base.remembering(commits, polling, Queued(node, dispatch, audit), watchdog, fleet.units())


class _Fleet:
    def __init__(self, base: _Base, sharing: Sharing, requests: Requests) -> None:
        self._base = base
        self._sharing = sharing
        self._requests = requests
        self._lease_guard = LeaseGuard(boottime)
        self._ways = StoreWays(self._lease_guard)
        self.consequences = SharedConsequences(self._lease_guard, self._ways, requests)

    def others(self, leave: Callable[[list[StoredRequest]], object]) -> OtherNodes:
        """`leave`: handles requests for jobs that are not ours."""
        base = self._base
        return OtherNodes(
            self._sharing,
            base.line(is_immediate=base.store.is_immediate),
            base.core.journal,
            requests=self._requests,
            answers=RequestAnswers(self._sharing, base.writer, base.core),
            leave=leave,
        )

    def node_parts(self, ours: Owned, commits: Commits, polling: Polling) -> NodeParts:
        base, sharing, lease_guard = self._base, self._sharing, self._lease_guard
        return NodeParts(
            sharing=sharing,
            ours=ours,
            core=base.core,
            commits=commits,
            rejoining=Rejoining(
                base.store, lease_guard.hint.set, base.writer, base.rows, commits=commits, sharing=sharing, ours=ours
            ),
            lease_guard=lease_guard,
            ways=self._ways,
            on_news=polling.hint,
        )

    def units(self) -> Borrowing:
        base, lending = self._base, capabilities(self._base.store).lending
        if not base.options.of_fleet or lending is None:
            return NoUnits()
        return Units(
            lending,
            base.options.of_fleet,
            rests=base.rests,
            writer=ThreadWriter(base.core.loop.call_soon),
            core=base.core,
            holds_lease=self._lease_guard.is_held,
            tried=partial(self._ways.tried, "units"),
        )


def _of_us(running: list[StoredTick], view: View | None) -> list[StoredTick]:
    """Return the ticks that this incarnation has marked."""
    return [tick for tick in running if view is not None and tick.fence >> EPOCH_BITS == view.me]


def check_retention(retention: Retention) -> None:
    if not isinstance(retention, Retention):
        msg = f'retention must be a Retention, such as Retention(age="30d"), not {retention!r}'
        raise TypeError(msg)


def executions_of(store: Store) -> Executions:
    """Return the store's executions. Raises TypeError if it has none."""
    executions = capabilities(store).executions
    if executions is None:
        msg = f"a queue needs a store that keeps executions, such as PostgresStore(dsn, shared=True), and not {store!r}"
        raise TypeError(msg)
    return executions
