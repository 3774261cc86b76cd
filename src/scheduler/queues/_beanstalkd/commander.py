"""The one connection that puts, cancels and looks: whatever does not take ticks. One caller at a time has it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final, TypeVar

from timerqueue import Clock

from .._queue import Census, Kind, Place, Position, QueueUnavailable, Reason, Standing, Tick
from .address import Address
from .body import decode, encode
from .connection import Client, Connection, greenstalk
from .tally import Tally

PAUSE: Final = 1.0
"""Seconds for which a server that could not be reached is left alone."""

LARGEST_NUMBER: Final = 2**64 - 1

PRIORITIES: Final = {Kind.RUN: 65_536, Kind.AUDIT: 100}
"""A smaller number goes first: an audit is never behind the runs that it looks after."""

T = TypeVar("T")


def tube_of(tube: str, kind: Kind) -> str:
    """Return where ticks of that kind stand: audits apart, so that they can be counted."""
    match kind:
        case Kind.RUN:
            return tube
        case Kind.AUDIT:
            return f"{tube}.audit"


class Commander:
    """Puts, cancels and looks. Any thread may call; one at a time is served. All of it may wait for the server."""

    def __init__(self, address: Address, tube: str, ttr: int, clock: Clock, tally: Tally) -> None:
        self._address = address
        self._tube = tube
        self._ttr = ttr
        self._clock = clock
        self._tally = tally
        self._lock = Lock()
        self._connection: Connection | None = None
        self._had_one = False
        self._closed = False
        self._leave_alone_until = float("-inf")
        self._why = ""

    def instance(self) -> str:
        """Return which start of the server answers. Raises QueueUnavailable."""
        return self._ask(_asked_instance)

    def put(self, tick: Tick, delay: int) -> Place | Reason:
        """Put one tick that comes out after `delay` whole seconds, or tell why the server has it not."""
        body = encode(tick)
        try:
            return self._ask(lambda connection: self._put(connection, tick.kind, body, delay))
        except QueueUnavailable:
            return Reason.UNREACHABLE
        except greenstalk.DrainingError:
            return Reason.DRAINING
        except (greenstalk.OutOfMemoryError, greenstalk.BuriedError):
            return Reason.OUT_OF_MEMORY
        except greenstalk.JobTooBigError:
            return Reason.TOO_BIG

    def cancel(self, tick: Tick, place: Place) -> bool:
        """Delete a tick, if it is what stands at that place."""
        return _is_possible(place) and self._ask(lambda connection: _cancel(connection, tick, place))

    def look(self, tick: Tick, place: Place) -> Position | None:
        """Tell how a tick stands, if it is what stands at that place."""
        return self._ask(lambda connection: _look(connection, tick, place)) if _is_possible(place) else None

    def census(self, kind: Kind) -> Census:
        """Count a tube. One that the server does not know is empty."""
        return self._ask(lambda connection: _census(connection, tube_of(self._tube, kind)))

    def kick(self, kind: Kind, most: int) -> int:
        """Have so many of a tube's that were buried come out."""
        return self._ask(lambda connection: self._kick(connection, kind, most))

    def close(self) -> None:
        """Close the connection, for good."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _ask(self, what: Callable[[Connection], T]) -> T:
        """Ask, and once more on a new connection if this one has ended unnoticed since it was last used."""
        with self._lock:
            is_used = self._connection is not None
            try:
                return self._asked(what)
            except QueueUnavailable:
                if not is_used:
                    raise
                return self._asked(what)

    def _asked(self, what: Callable[[Connection], T]) -> T:
        try:
            return what(self._connected())
        except QueueUnavailable as error:
            self._connection, self._why = None, str(error)
            raise

    def _connected(self) -> Connection:
        if self._connection is not None:
            return self._connection
        if self._closed or self._clock.monotonic() < self._leave_alone_until:
            raise QueueUnavailable(self._why or f"beanstalkd at {self._address}: the queue is closed")
        try:
            self._connection = Connection(self._address, ["default"])
        except QueueUnavailable:
            self._leave_alone_until = self._clock.monotonic() + PAUSE
            raise
        if self._had_one:
            self._tally.count("reconnected")
        self._had_one = True
        return self._connection

    def _put(self, connection: Connection, kind: Kind, body: bytes, delay: int) -> Place | Reason:
        if len(body) > connection.longest:
            return Reason.TOO_BIG
        connection.use(tube_of(self._tube, kind))
        priority, ttr = PRIORITIES[kind], self._ttr
        try:
            number = connection.ask(lambda client: client.put(body, priority, delay, ttr))
        except greenstalk.BuriedError as error:  # there was no room to sort it in: it would never come out
            found = error.id
            if found is not None:
                connection.ask(lambda client: client.delete(found))
            raise
        return Place(connection.instance, number)

    def _kick(self, connection: Connection, kind: Kind, most: int) -> int:
        connection.use(tube_of(self._tube, kind))
        return connection.ask(lambda client: client.kick(most))


def _asked_instance(connection: Connection) -> str:
    connection.ask(lambda client: client.using())  # whether it is still there
    return connection.instance


def _is_possible(place: Place) -> bool:
    """Tell whether a server can have given that number: what it cannot read would end the connection."""
    return 0 < place.number <= LARGEST_NUMBER


def _cancel(connection: Connection, tick: Tick, place: Place) -> bool:
    """A number alone proves nothing: after a restart without a log numbers begin at 1 again."""

    def delete(client: Client) -> bool:
        if decode(client.peek(place.number).body) != tick:
            return False
        client.delete(place.number)
        return True

    try:
        return connection.ask(delete)
    except greenstalk.NotFoundError:
        return False


def _look(connection: Connection, tick: Tick, place: Place) -> Position | None:
    def look(client: Client) -> Position | None:
        if place.instance != connection.instance and decode(client.peek(place.number).body) != tick:
            return None
        found = client.stats_job(place.number)
        return Position(Standing(found["state"]), found["time-left"])

    try:
        return connection.ask(look)
    except greenstalk.NotFoundError:
        return None


def _census(connection: Connection, tube: str) -> Census:
    try:
        found = connection.ask(lambda client: client.stats_tube(tube))
    except greenstalk.NotFoundError:
        return Census()
    return Census(
        found["current-jobs-delayed"],
        found["current-jobs-ready"],
        found["current-jobs-reserved"],
        found["current-jobs-buried"],
    )
