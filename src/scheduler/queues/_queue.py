"""The protocol of queues, in which ticks wait until they are due.

Four facts shape it. A queue may lose a tick, or give it twice, too early or too late: the tick's record decides. A
server counts whole seconds: a tick comes out up to a second early, and its node waits. After a restart, its number may
mean another job: a position names the instance too, and the body is compared first. A queue may refuse: then the tick
waits in this process's heap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Final, Protocol

from attrs import field, frozen

from timerqueue import Clock

from .._values import SchedulerError

LEAD_US: Final = 100_000
"""Microseconds before its due instant by which a tick comes out, to have its record read."""

SECOND_US: Final = 1_000_000

FORGOTTEN: Final = -2
"""Seconds left of a taken tick when its queue should have given it to others."""


class QueueError(SchedulerError):
    """The message says which queue, what is wrong, and what to do."""


class QueueUnavailable(QueueError):
    """The queue's server does not answer. Ask again later."""


class Kind(Enum):
    """Run a job, or audit that each job has its tick."""

    RUN = "run"
    AUDIT = "audit"


@frozen
class Tick:
    """One due instant of one job. `due_us`: microseconds since 1970 in UTC.

    `generation`: an audit's number, to tell valid ticks from older ones. `where`: labels of the nodes that may take it;
    None: any. Equality ignores them.
    """

    job_id: str
    due_us: int
    kind: Kind = Kind.RUN
    generation: int = 0
    where: str | None = field(default=None, eq=False)


@frozen
class Place:
    """The server's number for a tick, and which start of which server gave it."""

    instance: str
    number: int


class Standing(Enum):
    """The state of a tick: it waits, is due, was taken, or was put aside.

    No node gets a BURIED tick. An audit cancels it and puts it again.
    """

    DELAYED = "delayed"
    READY = "ready"
    RESERVED = "reserved"
    BURIED = "buried"


@frozen
class Position:
    """A tick's state, and in how many whole seconds it comes out, by the queue's clock.

    `is_astray`: the wrong nodes get it.
    """

    standing: Standing
    seconds_left: int
    is_astray: bool = False

    @property
    def is_forgotten(self) -> bool:
        """Whether its node's time ended some seconds ago, and it did not come out again.

        A beanstalkd 1.12 forgets some ticks of a silent connection.
        """
        return self.standing is Standing.RESERVED and self.seconds_left < FORGOTTEN


@frozen
class Census:
    """Numbers of ticks of one kind, by state."""

    delayed: int = 0
    ready: int = 0
    reserved: int = 0
    buried: int = 0

    @property
    def total(self) -> int:
        """Taken ticks included."""
        return self.delayed + self.ready + self.reserved + self.buried


class Reason(Enum):
    """Why a tick waits in this process instead of the server."""

    DRAINING = "the server is being drained"
    OUT_OF_MEMORY = "the server has no room, in memory or on its disk"
    TOO_BIG = "the tick is longer than the server takes"
    UNREACHABLE = "the server cannot be reached"


@frozen
class QueueStatistics:
    """Counts of a queue in this process. `here`: ticks in the process's own heap, by reason.

    `premature`: ticks more than a second early, sent back. `hops`: ticks due later than the server can count.
    `expired`: ticks not touched in time, given to another node. `strange`: foreign jobs, put aside. `reconnected`:
    connections made again.
    """

    placed: int = 0
    here: dict[Reason, int] = field(factory=dict)
    delivered: int = 0
    premature: int = 0
    hops: int = 0
    done: int = 0
    expired: int = 0
    strange: int = 0
    reconnected: int = 0


class Delivery(Protocol):
    """A tick that has come out. Its node calls one verb, once.

    From any thread; it returns at once, and is sent within about a second. Until then no other node gets the tick.
    """

    @property
    def tick(self) -> Tick:
        """The tick."""

    @property
    def place(self) -> Place | None:
        """Its position; None: in this process."""

    def done(self) -> None:
        """Delete the tick: it need not run any more."""

    def release(self, seconds: int = 0) -> None:
        """Give the tick back, for any node, after that many seconds."""

    def bury(self) -> None:
        """No node gets the tick until `Queue.kick`."""


CallAt = Callable[[float, Callable[[], None]], object]
"""Call a function at monotonic seconds. Any thread."""

Deliver = Callable[[list[Delivery]], object]
"""Take ticks that have come out, at once. Any thread."""


class Queue(Protocol):
    """Holds ticks until they are due. Synchronous, for any thread.

    A method that may wait for a server waits some seconds at most, and raises QueueUnavailable. Never call it on the
    event loop.
    """

    @property
    def is_immediate(self) -> bool:
        """Whether the queue waits for nothing outside the process: then the event loop calls it."""

    def open(self, clock: Clock, call_at: CallAt, deliver: Deliver) -> None:
        """Give due ticks to `deliver`, at most about a second early.

        Does not wait for a server, or raise without one.
        """

    def listen(self, wheres: Collection[str]) -> None:
        """Give out ticks for these labels (as in `Tick.where`), too, from about a second later on.

        Called on the event loop, before or after `open`. Otherwise only ticks for any node come out, except of a queue
        in one process.
        """

    def instance(self) -> str:
        """Return which start of which server answers now. May wait."""

    def put(self, ticks: Sequence[Tick]) -> list[Place | None]:
        """Put each tick, and return its position.

        None: the server refused it, and it waits in this process alone. Put it again later, or it ends with the
        process.
        """

    def cancel(self, places: Sequence[tuple[Tick, Place]]) -> list[bool]:
        """Remove ticks, buried ones too. May wait.

        False: the tick is gone or being run, or its position has another.
        """

    def look(self, places: Sequence[tuple[Tick, Place]]) -> list[Position | None]:
        """Return each tick's state; None: it is not there. May wait."""

    def census(self, kind: Kind) -> Census:
        """Count the ticks of that kind. May wait."""

    def kick(self, kind: Kind, most: int) -> int:
        """Let at most `most` buried ticks come out. Return their number. May wait."""

    def statistics(self) -> QueueStatistics:
        """Return the counts since `open`."""

    def close(self) -> None:
        """Release everything; unsettled ticks go to other nodes. Does not raise."""


class Bounded(Protocol):
    """A queue that leaves ticks to other nodes when its process has no room.

    A scheduler tells it when its room changes. From other queues it takes every tick, and after a second gives back
    ticks without room while other nodes are there.
    """

    def bound(self, most: int | None) -> None:
        """Take ticks only while fewer than `most` are out here and not settled; None: no bound.

        Called on the event loop, before or after `open`; returns at once.
        """


def delay_of(due_us: int, now_us: int, longest: int) -> int:
    """How many whole seconds, 0 to `longest`, a tick can wait elsewhere."""
    return min(max((due_us - now_us - LEAD_US) // SECOND_US, 0), longest)
