"""The seam behind which ticks wait until they are due.

Four facts shape it. A queue may lose what it holds, and may give a tick twice, too early or too late: the tick's record
decides, never the queue. Whole seconds are all that a server can count: a tick comes out up to a second before it is
due, and whoever takes it waits for the rest. A number that a server gave may stand for something else once that server
has started anew: a place is a number and the instance that gave it, and what lies there is compared before it is
deleted. And a queue may refuse: then the tick stands in this process's own heap, and its answer says so by None.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Final, Protocol

from attrs import field, frozen

from timerqueue import Clock

from .._values import SchedulerError

LEAD_US: Final = 100_000
"""Microseconds before its due instant at which a tick comes out at the latest, so that its record can be looked at."""

SECOND_US: Final = 1_000_000

FORGOTTEN: Final = -2
"""Seconds left, to whoever has a tick, with which its queue should have given it to others by now."""


class QueueError(SchedulerError):
    """A queue could not do what it was asked for. The message says which one, what is wrong, and what to do."""


class QueueUnavailable(QueueError):
    """The queue's server cannot be asked now, so that nobody knows what it holds. Ask again later."""


class Kind(Enum):
    """The deed that a tick stands for: run a job, or audit that each job has its tick."""

    RUN = "run"
    AUDIT = "audit"


@frozen
class Tick:
    """One due instant of one job, as a queue holds it. `due_us`: microseconds since 1970 in UTC.

    `generation`: of an audit, counted by who puts them, so that those of before can be told from the one that counts.
    `where`: the labels of the agents that it is for, as its job says it; None: it is for any. It says whom the queue
    gives the tick, and is no part of what the tick is: one that stands elsewhere is the same tick.
    """

    job_id: str
    due_us: int
    kind: Kind = Kind.RUN
    generation: int = 0
    where: str | None = field(default=None, eq=False)


@frozen
class Place:
    """Where a tick stands: the number that a server gave it, and which start of which server that was."""

    instance: str
    number: int


class Standing(Enum):
    """How a tick stands in its queue: waits, is due, was taken by somebody, or was put aside.

    Nobody gets a tick that is BURIED. An audit cancels it and puts it again.
    """

    DELAYED = "delayed"
    READY = "ready"
    RESERVED = "reserved"
    BURIED = "buried"


@frozen
class Position:
    """How a tick stands, and in how many whole seconds the queue gives it out, by the queue's own clock.

    `is_astray`: to others than those that it is for.
    """

    standing: Standing
    seconds_left: int
    is_astray: bool = False

    @property
    def is_forgotten(self) -> bool:
        """Whether the time of whoever took it was over some seconds ago, and it has not come out again.

        A beanstalkd 1.12 does that to some of what a connection holds that is silent and does not end.
        """
        return self.standing is Standing.RESERVED and self.seconds_left < FORGOTTEN


@frozen
class Census:
    """How many ticks of one kind a queue holds, by how they stand."""

    delayed: int = 0
    ready: int = 0
    reserved: int = 0
    buried: int = 0

    @property
    def total(self) -> int:
        """Return how many there are, those that somebody has taken included."""
        return self.delayed + self.ready + self.reserved + self.buried


class Reason(Enum):
    """Why a tick stands in this process's heap instead of in the server."""

    DRAINING = "the server is being drained"
    OUT_OF_MEMORY = "the server has no room, in memory or on its disk"
    TOO_BIG = "the tick is longer than the server takes"
    UNREACHABLE = "the server cannot be reached"


@frozen
class QueueStatistics:
    """Counts of a queue in this process. `here`: ticks that went to the process's own heap, by the reason.

    `premature`: came out too early by more than a second, and went back. `hops`: the same, because they are due later
    than the server can count. `expired`: taken by somebody else, for we had not touched them in time. `strange`: put
    aside, for they are no ticks of ours. `reconnected`: how often a connection was made anew.
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
    """A tick that has come out, for whoever took it. One of its verbs is called once, by any thread, and returns at
    once: the queue sends it within about a second. Until then nobody else gets the tick, however long that takes.
    """

    @property
    def tick(self) -> Tick:
        """The tick that has come out."""

    @property
    def place(self) -> Place | None:
        """Where it stands, or None if in this process."""

    def done(self) -> None:
        """Delete the tick: it has been run, or need not be."""

    def release(self, seconds: int = 0) -> None:
        """Give the tick back, for whoever takes it next, after so many seconds."""

    def bury(self) -> None:
        """Put the tick aside: nobody gets it until `Queue.kick`."""


CallAt = Callable[[float, Callable[[], None]], object]
"""Have a function called at an instant in the clock's monotonic seconds; from any thread."""

Deliver = Callable[[list[Delivery]], object]
"""Take ticks that have come out; called by any thread, and returns at once."""


class Queue(Protocol):
    """A queue holds ticks until they are due. All methods are synchronous; any thread may call them, and some wait for
    a server, though no longer than some seconds: never call those on the event loop.
    """

    @property
    def is_immediate(self) -> bool:
        """Whether the queue never waits for anything outside the process. Then it is called on the event loop."""

    def open(self, clock: Clock, call_at: CallAt, deliver: Deliver) -> None:
        """Begin to take what is due, and give it to `deliver` from at most about a second before its due instant on.

        Does not wait for a server, and does not raise if there is none yet.
        """

    def listen(self, wheres: Collection[str]) -> None:
        """Give out what is for these labels, too, from about a second later on, and until the end.

        Called on the event loop, before `open` or after it, with texts as in `Tick.where`. Without it only what is for
        any agent comes out, though in a queue of one process everything does.
        """

    def instance(self) -> str:
        """Return which start of which server answers now. May wait, and raise QueueUnavailable."""

    def put(self, ticks: Sequence[Tick]) -> list[Place | None]:
        """Have each tick come out when it is due. Return where each one stands, or None for those that stand in this
        process alone, because the server would not have them: put those again later, or they end with the process.
        """

    def cancel(self, places: Sequence[tuple[Tick, Place]]) -> list[bool]:
        """Take ticks out again, buried ones too. Tell of each whether it stood there: False if it is gone, is being
        run, or if something else stands there by now. May wait, and raise QueueUnavailable.
        """

    def look(self, places: Sequence[tuple[Tick, Place]]) -> list[Position | None]:
        """Tell how each tick stands, None: not there. May wait, and raise QueueUnavailable."""

    def census(self, kind: Kind) -> Census:
        """Count the ticks of that kind. May wait, and raise QueueUnavailable."""

    def kick(self, kind: Kind, most: int) -> int:
        """Have so many of those put aside come out again, and tell how many did. May wait; raises QueueUnavailable."""

    def statistics(self) -> QueueStatistics:
        """Return what has been done since `open`."""

    def close(self) -> None:
        """Let go of everything; ticks that were given out and not settled go to others. Does not raise."""


class Bounded(Protocol):
    """A queue that can leave to others what its process has no room for, beside all that a `Queue` can do.

    A scheduler whose queue has this method calls it whenever its room has changed. Without it, it takes whatever comes
    out, and gives back after a second what has no room here while other agents are there.
    """

    def bound(self, most: int | None) -> None:
        """Take ticks only while fewer than `most` have come out here and are not settled; None: as many as it likes.

        Called on the event loop, before `open` or after it; returns at once. What has come out stays out.
        """


def delay_of(due_us: int, now_us: int, longest: int) -> int:
    """Return for how many whole seconds a tick can wait elsewhere, so that it comes out in time; 0 to `longest`."""
    return min(max((due_us - now_us - LEAD_US) // SECOND_US, 0), longest)
