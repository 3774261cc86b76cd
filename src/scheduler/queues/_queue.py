"""The protocol of queues, in which ticks wait until they are due.

Four facts shape it. A queue may lose a tick, or give it twice, too early or too late: so the tick's record decides,
never the queue. A server counts whole seconds: a tick comes out up to a second early, and its node waits for the rest.
A server's number may mean another job after the server restarted. So a position is a number and the instance that gave
it, and the body is compared before it is deleted. And a queue may refuse: then the tick waits in this process's own
heap, and the answer is None.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Final, Protocol

from attrs import field, frozen

from timerqueue import Clock

from .._values import SchedulerError

LEAD_US: Final = 100_000
"""Microseconds before its due instant at which a tick comes out at the latest, to have its record read."""

SECOND_US: Final = 1_000_000

FORGOTTEN: Final = -2
"""Seconds left of a taken tick at which its queue should have given it to others."""


class QueueError(SchedulerError):
    """A queue could not do what it was asked for. The message says which one, what is wrong, and what to do."""


class QueueUnavailable(QueueError):
    """The queue's server cannot be asked now, so what it holds is unknown. Ask again later."""


class Kind(Enum):
    """The purpose of a tick: run a job, or audit that each job has its tick."""

    RUN = "run"
    AUDIT = "audit"


@frozen
class Tick:
    """One due instant of one job, as a queue holds it. `due_us`: microseconds since 1970 in UTC.

    `generation`: a number of audits, which tells the valid one from older ones. `where`: the labels of the nodes that
    may take the tick; None: any. Labels do not make it another tick: it is equal wherever it is.
    """

    job_id: str
    due_us: int
    kind: Kind = Kind.RUN
    generation: int = 0
    where: str | None = field(default=None, eq=False)


@frozen
class Place:
    """A tick's position: the number that a server gave it, and which start of which server that was."""

    instance: str
    number: int


class Standing(Enum):
    """The state of a tick in its queue: it waits, is due, was taken, or was put aside.

    No node gets a BURIED tick. An audit cancels it and puts it again.
    """

    DELAYED = "delayed"
    READY = "ready"
    RESERVED = "reserved"
    BURIED = "buried"


@frozen
class Position:
    """The state of a tick, and in how many whole seconds it comes out, by the queue's own clock.

    `is_astray`: nodes get it for whom it is not.
    """

    standing: Standing
    seconds_left: int
    is_astray: bool = False

    @property
    def is_forgotten(self) -> bool:
        """Whether the time of the node that took it ended some seconds ago, and it has not come out again.

        A beanstalkd 1.12 forgets some of the ticks of a connection that is silent and does not end.
        """
        return self.standing is Standing.RESERVED and self.seconds_left < FORGOTTEN


@frozen
class Census:
    """How many ticks of one kind a queue holds, by their states."""

    delayed: int = 0
    ready: int = 0
    reserved: int = 0
    buried: int = 0

    @property
    def total(self) -> int:
        """How many there are, taken ones included."""
        return self.delayed + self.ready + self.reserved + self.buried


class Reason(Enum):
    """Why a tick waits in this process's heap instead of in the server."""

    DRAINING = "the server is being drained"
    OUT_OF_MEMORY = "the server has no room, in memory or on its disk"
    TOO_BIG = "the tick is longer than the server takes"
    UNREACHABLE = "the server cannot be reached"


@frozen
class QueueStatistics:
    """Counts of a queue in this process. `here`: ticks that went to the process's own heap, by the reason.

    `premature`: ticks that came out more than a second too early, and went back. `hops`: the same, because they are due
    later than the server can count. `expired`: ticks given to another node, since we had not touched them in time.
    `strange`: foreign jobs, put aside. `reconnected`: how often a connection was made again.
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
    """A tick that has come out, for the node that took it. One of its verbs is called, once.

    Any thread may call it, and it returns at once: the queue sends it within about a second. Until then no other node
    gets the tick, however long that takes.
    """

    @property
    def tick(self) -> Tick:
        """The tick that has come out."""

    @property
    def place(self) -> Place | None:
        """Its position, or None if it is in this process."""

    def done(self) -> None:
        """Delete the tick: it has been run, or need not be."""

    def release(self, seconds: int = 0) -> None:
        """Give the tick back, for any node, after that many seconds."""

    def bury(self) -> None:
        """Put the tick aside: no node gets it until `Queue.kick`."""


CallAt = Callable[[float, Callable[[], None]], object]
"""Calls a function at an instant in the clock's monotonic seconds; from any thread."""

Deliver = Callable[[list[Delivery]], object]
"""Takes ticks that have come out; called by any thread, and returns at once."""


class Queue(Protocol):
    """A queue holds ticks until they are due. Its methods are synchronous, for any thread.

    Some wait for a server, for some seconds at most: never call those on the event loop.
    """

    @property
    def is_immediate(self) -> bool:
        """Whether the queue never waits for anything outside the process. Then it is called on the event loop."""

    def open(self, clock: Clock, call_at: CallAt, deliver: Deliver) -> None:
        """Begin to take due ticks, and give each to `deliver`, at most about a second before it is due.

        Does not wait for a server, and does not raise if there is none yet.
        """

    def listen(self, wheres: Collection[str]) -> None:
        """Give out ticks for these labels, too, from about a second later until the end.

        Called on the event loop, before `open` or after it, with texts as in `Tick.where`. Without it only ticks for
        any node come out; a queue in one process gives out all.
        """

    def instance(self) -> str:
        """Return which start of which server answers now. May wait, and raise QueueUnavailable."""

    def put(self, ticks: Sequence[Tick]) -> list[Place | None]:
        """Put each tick, to come out when it is due. Return each tick's position.

        None: the server refused it, and it waits in this process alone. Put such ticks again later, or they end with
        the process.
        """

    def cancel(self, places: Sequence[tuple[Tick, Place]]) -> list[bool]:
        """Remove ticks, buried ones too. False: the tick is gone or being run, or its position has another tick.

        May wait, and raise QueueUnavailable.
        """

    def look(self, places: Sequence[tuple[Tick, Place]]) -> list[Position | None]:
        """Return the state of each tick; None: it is not there. May wait, and raise QueueUnavailable."""

    def census(self, kind: Kind) -> Census:
        """Count the ticks of that kind. May wait, and raise QueueUnavailable."""

    def kick(self, kind: Kind, most: int) -> int:
        """Let at most `most` ticks come out that were put aside, and return their number. May wait; raises
        QueueUnavailable.
        """

    def statistics(self) -> QueueStatistics:
        """Return what has been done since `open`."""

    def close(self) -> None:
        """Release everything; ticks that were given out and not settled go to other nodes. Does not raise."""


class Bounded(Protocol):
    """A queue that leaves to other nodes the ticks for which its process has no room.

    A scheduler calls this method, where there is one, whenever its room has changed. Without it, the scheduler takes
    every tick, and after a second gives back those without room while other nodes are there.
    """

    def bound(self, most: int | None) -> None:
        """Take ticks only while fewer than `most` have come out here and are not settled; None: without a bound.

        Called on the event loop, before `open` or after it; returns at once. Ticks that have come out stay out.
        """


def delay_of(due_us: int, now_us: int, longest: int) -> int:
    """Return for how many whole seconds a tick can wait elsewhere and still come out in time; 0 to `longest`."""
    return min(max((due_us - now_us - LEAD_US) // SECOND_US, 0), longest)
