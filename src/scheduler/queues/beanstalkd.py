"""A queue in a beanstalkd. It needs `pip install timerqueue[beanstalkd]`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from logging import getLogger
from typing import Final

from timerqueue import Clock, Resident

from ._beanstalkd.address import address_of
from ._beanstalkd.commander import Commander
from ._beanstalkd.reserver import LONGEST_DELAY, Reserver
from ._beanstalkd.tally import ReservationTally
from ._beanstalkd.tubes import LONGEST_SUFFIX
from ._queue import (
    SECOND_US,
    Bounded,
    CallAt,
    Census,
    Deliver,
    Kind,
    Place,
    Position,
    Queue,
    QueueError,
    QueueStatistics,
    Reason,
    Tick,
    delay_of,
)
from .local import LocalQueue

__all__ = ["BeanstalkdQueue"]

logger = getLogger(__name__)

LONGEST_NAME: Final = 200
NAME: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()")
SECONDS_TO_END: Final = 3.0


class BeanstalkdQueue(Resident):
    """A queue in the beanstalkd at `address`: "host", "host:port", "[IPv6]:port" or "unix:/path".

    `tube` tells fleets on one server apart. `ttr`: whole seconds after which the server gives a silent node's tick to
    others; runs may take longer. `reservers`: connections that take ticks, a thread each; 0: this queue only puts. Use
    two or more for thousands of ticks a second: at each end of a tick the server searches all of a connection's ticks.
    `window`: unsettled ticks per connection.
    """

    def __init__(
        self, address: str, *, tube: str = "timerqueue", ttr: int = 30, reservers: int = 1, window: int = 10_000
    ) -> None:
        self._address = address_of(address)
        self._tube = _checked_tube(tube)
        self._ttr = _checked("ttr", ttr, 3, LONGEST_DELAY)
        self._how_many = _checked("reservers", reservers, 0, 100)
        self._window = _checked("window", window, 1, 1_000_000)
        self._tally = ReservationTally()
        self._refuge = LocalQueue()
        self._reservers: list[Reserver] = []
        self._wheres: frozenset[str] | None = None
        self._most: int | None = None
        self._commander: Commander | None = None
        self._clock: Clock | None = None
        self._refused_for: Reason | None = None

    def __repr__(self) -> str:
        return f"BeanstalkdQueue({str(self._address)!r}, tube={self._tube!r})"

    @property
    def is_immediate(self) -> bool:
        """False."""
        return False

    def open(self, clock: Clock, call_at: CallAt, deliver: Deliver) -> None:
        """See Queue."""
        if self._commander is not None:
            msg = f"{self} is open already: give each Scheduler a queue of its own"
            raise QueueError(msg)
        self._bind_to_process("BeanstalkdQueue", "_address", "_tube")
        self._clock = clock
        self._commander = Commander(self._address, self._tube, self._ttr, clock, self._tally)
        self._refuge.open(clock, call_at, deliver)
        self._reservers = [
            Reserver(
                self._address,
                self._tube,
                ttr=self._ttr,
                window=self._window,
                most=self._part(index),
                clock=clock,
                tally=self._tally,
                deliver=deliver,
            )
            for index in range(self._how_many)
        ]
        if self._wheres is not None:
            self.listen(self._wheres)
        for reserver in self._reservers:
            reserver.start()

    def listen(self, wheres: Collection[str]) -> None:
        """See Queue."""
        self._wheres = frozenset(wheres).union(self._wheres or ())
        for reserver in self._reservers:
            reserver.listen(self._wheres)

    def bound(self, most: int | None) -> None:
        """See Bounded. The connections share the bound."""
        self._most = most
        for index, reserver in enumerate(self._reservers):
            reserver.bound(self._part(index))

    def instance(self) -> str:
        """See Queue."""
        return self._commands().instance()

    def put(self, ticks: Sequence[Tick]) -> list[Place | None]:
        """See Queue. May wait; does not raise."""
        commander, clock = self._commands(), self._clock
        assert clock is not None
        now_us = int(clock.wall() * SECOND_US)
        answers = commander.put([(tick, delay_of(tick.due_us, now_us, LONGEST_DELAY)) for tick in ticks])
        return [self._answered(tick, answer) for tick, answer in zip(ticks, answers, strict=True)]

    def cancel(self, places: Sequence[tuple[Tick, Place]]) -> list[bool]:
        """See Queue."""
        return self._commands().cancel(places)

    def look(self, places: Sequence[tuple[Tick, Place]]) -> list[Position | None]:
        """See Queue."""
        return self._commands().look(places)

    def census(self, kind: Kind) -> Census:
        """See Queue."""
        return self._commands().census(kind)

    def kick(self, kind: Kind, most: int) -> int:
        """See Queue."""
        return self._commands().kick(kind, _checked("most", most, 1, LONGEST_DELAY))

    def statistics(self) -> QueueStatistics:
        """See Queue."""
        return self._tally.statistics()

    def close(self) -> None:
        """See Queue. Waits some seconds at most, until what was settled is sent."""
        for reserver in self._reservers:
            reserver.close(SECONDS_TO_END)
        self._reservers = []
        if self._commander is not None:
            self._commander.close()
        self._refuge.close()

    def _part(self, index: int) -> int | None:
        return None if self._most is None else (self._most + self._how_many - 1 - index) // self._how_many

    def _commands(self) -> Commander:
        if self._commander is None:
            msg = f"{self} is not open: give it to a Scheduler, or call open() first"
            raise QueueError(msg)
        return self._commander

    def _answered(self, tick: Tick, answer: Place | Reason) -> Place | None:
        if isinstance(answer, Reason):
            self._tally.count_here(answer)
            if self._refused_for is not answer:
                logger.warning("%r: %s; ticks wait in this process instead", self, answer.value)
            self._refused_for = answer
            self._refuge.put([tick])
            return None
        self._tally.count("placed")
        if self._refused_for is not None:
            logger.info("%r takes ticks again", self)
        self._refused_for = None
        return answer


def _checked_tube(tube: str) -> str:
    longest = LONGEST_NAME - LONGEST_SUFFIX
    if not tube or tube.startswith("-") or not set(tube) <= NAME or len(tube) > longest:
        msg = f"no name of a tube: {tube!r}; letters, digits and -+/;.$_() are allowed, no - first, {longest} at most"
        raise QueueError(msg)
    return tube


def _checked(name: str, number: int, least: int, most: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        msg = f"{name} is {number!r}: give a whole number from {least} to {most}"
        raise QueueError(msg)
    return number


_: type[Queue] = BeanstalkdQueue
__: type[Bounded] = BeanstalkdQueue
