"""An audit of a store from outside: the watchdog's work, done once, by a process that is not a node.

    nodes       nodes whose leases ended long ago are removed; their shards become free
    rows        nodes are asked about jobs that they may have lost, and mend them
    queue       each job without an owner gets one execution, the row of its next tick, which waits in the queue

Nodes may run meanwhile. The jobs are checked in sixteen parts. Each part has a lock, which the audits of nodes take
too. The calls block: make them in a thread or a program of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import Enum
from threading import Event
from typing import Final, Protocol

from attrs import frozen

from timerqueue import Clock, Lifecycle, SystemClock, TaskPool, system_random

from ._assembly import core_of
from ._control import Registry
from ._fleet import QueueVisit, next_execution
from ._jobs import Alone, Tasks
from ._plan import instant_of
from .queues import Queue
from .stores import LATE, LEASE, PARTS, Decide, Doubt, Doubted, FleetView, Visit

SECOND_US: Final = 1_000_000
BETWEEN_LOOKS: Final = 0.1
"""Seconds."""


class Visited(Protocol):
    """A store that can be visited, such as PostgresStore."""

    def visit(self) -> AbstractContextManager[Visit]:
        """Let a process that is not a node audit the rows."""

    def fleet(self) -> FleetView: ...


class Became(Enum):
    """The fate of a doubted job."""

    MENDED = "mended"
    """The job's node had lost it, and has it again."""
    WELL = "well"
    """The job's node has it. The job waits for room, or for the end of its last run."""
    NOT_ANSWERED = "not answered"
    """The job's node did not answer in time. The node audits its own jobs every few minutes."""
    WITH_NOBODY = "with nobody"
    """No node has it. The next node that starts takes it."""

    @property
    def key(self) -> str:
        """The word for JSON, such as "not_answered"."""
        return self.name.lower()


@frozen
class Finding:
    """A job that an audit doubted. `due`: its next tick by its row, if any. `reason`: the fault that its node has
    mended.
    """

    job_id: str
    doubt: Doubt
    due: datetime | None
    became: Became
    reason: str | None = None


@frozen(kw_only=True)
class StoreAudit:
    """The findings of an audit of a store.

    - `jobs`: unpaused jobs in the checked parts. `busy`: parts that other audits were checking.
    - `buried`: names of removed nodes. `free`: shards without an owner, though there are nodes.
    - With a queue: `planned`: jobs that got an execution. `requeued`: executions that the queue had lost, or would give
      too late. `withdrawn`: executions that no job needs. `failed`: jobs that could not be planned.
    """

    jobs: int
    busy: int
    agents: int
    buried: tuple[str, ...] = ()
    free: int = 0
    findings: tuple[Finding, ...] = ()
    planned: int = 0
    requeued: int = 0
    withdrawn: int = 0
    failed: int = 0

    @property
    def mended(self) -> int:
        """The number of mended faults."""
        of_jobs = sum(each.became is Became.MENDED for each in self.findings)
        return len(self.buried) + of_jobs + self.planned + self.requeued + self.withdrawn

    @property
    def left(self) -> int:
        """The number of faults that may remain."""
        unsure = {Became.NOT_ANSWERED, Became.WITH_NOBODY}
        return self.free + self.failed + sum(each.became in unsure for each in self.findings)


def audit_store(
    store: Visited, queue: Queue | None = None, *, wait: float = 10.0, clock: Clock | None = None
) -> StoreAudit:
    """Audit a store, and the queue of its jobs, once.

    `wait`: seconds for nodes to answer. `queue` is opened and closed here. It should claim no ticks:
    `BeanstalkdQueue(address, reservers=0)`. Raises StoreError or QueueUnavailable. Raises ValueError if the jobs wait
    in a queue and `queue` is None.
    """
    clock = SystemClock() if clock is None else clock
    with store.visit() as visit:
        if queue is None and visit.is_queued():
            msg = "jobs of this store stand in a queue: name it too, because an audit must look into it"
            raise ValueError(msg)
        buried = _bury(visit)
        if queue is None:
            return _of_heaps(store, visit, buried, clock, wait)
        return _of_queue(store, visit, buried, queue, clock)


def _bury(visit: Visit) -> tuple[str, ...]:
    """Remove dead nodes, after one lease: a healthy node whose clock was just set renews its lease meanwhile."""
    ended = visit.ended()
    if not ended:
        return ()
    Event().wait(LEASE)
    return tuple(visit.bury(ended))


def _of_heaps(store: Visited, visit: Visit, buried: tuple[str, ...], clock: Clock, wait: float) -> StoreAudit:
    looked = [visit.look(part, late_us=int(LATE * SECOND_US)) for part in range(PARTS)]
    seen = [each for each in looked if each is not None]
    findings = tuple(_asked(visit, [each for found in seen for each in found.doubted], clock, wait))
    fleet = store.fleet()
    is_shared = any(agent.left is not None for agent in fleet.agents)
    return StoreAudit(
        jobs=sum(found.jobs for found in seen),
        busy=PARTS - len(seen),
        agents=len(fleet.agents),
        buried=buried,
        free=fleet.free if is_shared else 0,
        findings=findings,
    )


def _of_queue(store: Visited, visit: Visit, buried: tuple[str, ...], queue: Queue, clock: Clock) -> StoreAudit:
    audit = QueueVisit(visit, queue, _plan(clock))
    queue.open(clock, _never, _nowhere)
    try:
        audit.audit()
    finally:
        queue.close()
    return StoreAudit(
        jobs=audit.jobs,
        busy=audit.busy,
        agents=len(store.fleet().agents),
        buried=buried,
        planned=audit.planned,
        requeued=audit.requeued,
        withdrawn=audit.withdrawn,
        failed=audit.failed,
    )


def _plan(clock: Clock) -> Decide:
    pool = TaskPool(1, clock=clock)
    core = core_of(clock, pool, system_random(), max_subtasks=1, kill_after=1.0, ownership=Alone())
    updates = Registry(core, Lifecycle("audit"), Tasks(has_store=True), has_store=True).updates
    timeline = core.timeline
    return lambda at: next_execution(at, updates, timeline, timeline.us(clock.monotonic(), steady=False))


def _never(_at: float, _func: Callable[[], None]) -> None:
    """Drop the call: the execution stays pending in the store."""


def _nowhere(_deliveries: object) -> None: ...


def _asked(visit: Visit, doubted: Sequence[Doubted], clock: Clock, wait: float) -> Iterator[Finding]:
    to_ask = [each for each in doubted if each.owner is not None]
    numbers = visit.ask(to_ask) if to_ask else []
    until = clock.monotonic() + wait
    answers = visit.answers(numbers) if numbers else []
    while numbers and not all(each.is_done for each in answers) and clock.monotonic() < until:
        Event().wait(BETWEEN_LOOKS)
        answers = visit.answers(numbers)
    if numbers:
        visit.withdraw(numbers)
    reasons = {each.job_id: each.reason for each in answers if each.is_done}
    for each in doubted:
        became, reason = _became(each, reasons)
        yield Finding(each.job_id, each.doubt, None if each.due_us is None else instant_of(each.due_us), became, reason)


def _became(each: Doubted, reasons: dict[str, str | None]) -> tuple[Became, str | None]:
    if each.owner is None:
        return Became.WITH_NOBODY, None
    if each.job_id not in reasons:
        return Became.NOT_ANSWERED, None
    reason = reasons[each.job_id]
    return (Became.WELL if reason is None else Became.MENDED), reason
