"""An audit of a store from outside: the watchdog's work, done once, by somebody who is no agent.

    agents      those whose leases ended long ago, and who do not renew them, are removed, so that what they had is
                nobody's
    rows        jobs whose rows make one doubt that anybody has them: the agents that have them are asked, and mend
    queue       where one is given: each job that nobody has gets one execution, and that stands in the queue

Agents may run beside it, or none. All jobs are in sixteen parts, and each is looked at under the try-lock that the
agents' own audits take. Synchronous: for a thread, or a program, of its own.
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
from ._dispatch import QueueVisit, next_execution
from ._jobs import Alone, Tasks
from ._plan import instant_of
from .queues import Queue
from .stores import LATE, LEASE, PARTS, Decide, Doubt, Doubted, FleetView, Visit

SECOND_US: Final = 1_000_000
BETWEEN_LOOKS: Final = 0.1
"""Seconds between two looks at what has been answered."""


class Visited(Protocol):
    """A store that can be visited, as PostgresStore can."""

    def visit(self) -> AbstractContextManager[Visit]:
        """Let somebody audit its rows who is no agent."""

    def fleet(self) -> FleetView:
        """Return the agents that have it."""


class Became(Enum):
    """The fate of a job that was doubted."""

    MENDED = "mended"
    """The agent that has it had lost it, and has it again."""
    WELL = "well"
    """The agent that has it knows it, and it waits for room, or for its last run."""
    NOT_ANSWERED = "not answered"
    """The agent that has it said nothing in time. It audits by itself, every few minutes."""
    WITH_NOBODY = "with nobody"
    """No agent has it that could be asked: the next one that starts will see to it."""

    @property
    def key(self) -> str:
        """The fate as a word without spaces, for JSON: "not_answered"."""
        return self.name.lower()


@frozen
class Finding:
    """A job that was doubted, since when it is due, and what became of it. `reason`: what was wrong."""

    job_id: str
    doubt: Doubt
    due: datetime | None
    became: Became
    reason: str | None = None


@frozen(kw_only=True)
class StoreAudit:
    """The findings of an audit of a store.

    `jobs`: that are not paused, in the parts that were looked at; `busy`: parts that others were looking at. `buried`:
    names of agents that were removed. `free`: shards that nobody has, though there are agents. Of a queue: `planned`,
    jobs that have got an execution; `requeued`, executions that their queue did not have, or too late; `withdrawn`,
    those of jobs that are to have none; `failed`, jobs for which none could be planned.
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
        """How much was wrong, and is not any more."""
        of_jobs = sum(each.became is Became.MENDED for each in self.findings)
        return len(self.buried) + of_jobs + self.planned + self.requeued + self.withdrawn

    @property
    def left(self) -> int:
        """How much may be wrong still."""
        unsure = {Became.NOT_ANSWERED, Became.WITH_NOBODY}
        return self.free + self.failed + sum(each.became in unsure for each in self.findings)


def audit_store(
    store: Visited, queue: Queue | None = None, *, wait: float = 10.0, clock: Clock | None = None
) -> StoreAudit:
    """Audit a store, and the queue in which its jobs stand, once. `wait`: seconds for what agents are asked.

    `queue` is opened and closed here; it should take nothing: `BeanstalkdQueue(address, reservers=0)`. Raises
    StoreError, QueueUnavailable, and ValueError for a store whose jobs stand in a queue where none is given.
    """
    clock = SystemClock() if clock is None else clock
    with store.visit() as visit:
        if queue is None and visit.is_queued():
            msg = "jobs of this store stand in a queue: name it too, for half of an audit is to look into that"
            raise ValueError(msg)
        buried = _bury(visit)
        if queue is None:
            return _of_heaps(store, visit, buried, clock, wait)
        return _of_queue(store, visit, buried, queue, clock)


def _bury(visit: Visit) -> tuple[str, ...]:
    """Remove agents that are gone. One in good health, whose lease has only ended by a clock that was set just now,
    renews it meanwhile. Where no lease has ended nobody waits.
    """
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
    """Return what says which execution a job is to have that nobody has: a scheduler's parts, of which none runs."""
    pool = TaskPool(1, clock=clock)
    core = core_of(clock, pool, system_random(), max_subtasks=1, kill_after=1.0, ownership=Alone())
    updates = Registry(core, Lifecycle("audit"), Tasks(has_store=True), has_store=True).updates
    timeline = core.timeline
    return lambda at: next_execution(at, updates, timeline, timeline.us(clock.monotonic(), steady=False))


def _never(_at: float, _func: Callable[[], None]) -> None:
    """Leave what a queue does not take: it is pending in the store, and this process is about to end."""


def _nowhere(_deliveries: object) -> None:
    """Take nothing: a queue that only puts gives nothing out."""


def _asked(visit: Visit, doubted: Sequence[Doubted], clock: Clock, wait: float) -> Iterator[Finding]:
    """Ask the agents about jobs that they have, and tell of each what became of it."""
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
