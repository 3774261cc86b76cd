"""Puts, cancels and looks, but takes no ticks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress, groupby
from threading import Lock
from typing import Final, TypeVar

from timerqueue import Clock

from .._queue import Census, Kind, Place, Position, QueueUnavailable, Reason, Standing, Tick
from .address import Address
from .body import decode, encode
from .connection import BeanstalkConnection, greenstalk
from .tally import ReservationTally
from .tubes import are_of, tube_for
from .wire import AT_ONCE, Reply

PAUSE: Final = 1.0
"""Seconds without a try after a server was not reached."""

LARGEST_NUMBER: Final = 2**64 - 1

PRIORITIES: Final = {Kind.RUN: 65_536, Kind.AUDIT: 100}
"""The smaller goes first: no audit waits behind runs that it checks."""

T = TypeVar("T")


class Commander:
    """Serves one caller at a time, from any thread. Calls may wait for the server."""

    def __init__(self, address: Address, tube: str, ttr: int, clock: Clock, tally: ReservationTally) -> None:
        self._address = address
        self._tube = tube
        self._ttr = ttr
        self._clock = clock
        self._tally = tally
        self._lock = Lock()
        self._connection: BeanstalkConnection | None = None
        self._had_one = False
        self._closed = False
        self._leave_alone_until = float("-inf")
        self._why = ""

    def instance(self) -> str:
        """Raises QueueUnavailable."""
        return self._ask(_asked_instance)

    def put(self, ticks: Sequence[tuple[Tick, int]]) -> list[Place | Reason]:
        """`ticks`: with delays in whole seconds. Does not raise.

        A tick sent just before the connection ended may be put twice.
        """
        answers: list[Place | Reason] = []
        order = sorted(range(len(ticks)), key=lambda at: tube_for(self._tube, ticks[at][0]))  # each tube in one go
        try:
            self._ask(lambda connection: self._put(connection, [ticks[at] for at in order], answers))
        except QueueUnavailable:
            answers += [Reason.UNREACHABLE] * (len(ticks) - len(answers))
        found = dict(zip(order, answers, strict=True))
        return [found[at] for at in range(len(ticks))]

    def cancel(self, places: Sequence[tuple[Tick, Place]]) -> list[bool]:
        return self._ask(lambda connection: _cancel(connection, places))

    def look(self, places: Sequence[tuple[Tick, Place]]) -> list[Position | None]:
        return self._ask(lambda connection: _look(connection, places, self._tube))

    def census(self, kind: Kind) -> Census:
        return self._ask(lambda connection: _census(connection, self._tubes(connection, kind)))

    def kick(self, kind: Kind, most: int) -> int:
        return self._ask(lambda connection: self._kick(connection, kind, most))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _ask(self, what: Callable[[BeanstalkConnection], T]) -> T:
        """Ask on a new connection if the old one had ended unnoticed."""
        with self._lock:
            is_used = self._connection is not None
            try:
                return self._asked(what)
            except QueueUnavailable:
                if not is_used:
                    raise
                return self._asked(what)

    def _asked(self, what: Callable[[BeanstalkConnection], T]) -> T:
        try:
            return what(self._connected())
        except QueueUnavailable as error:
            self._connection, self._why = None, str(error)
            raise

    def _connected(self) -> BeanstalkConnection:
        if self._connection is not None:
            return self._connection
        if self._closed or self._clock.monotonic() < self._leave_alone_until:
            raise QueueUnavailable(self._why or f"beanstalkd at {self._address}: the queue is closed")
        try:
            self._connection = BeanstalkConnection(self._address, ["default"], 0.0)
        except QueueUnavailable:
            self._leave_alone_until = self._clock.monotonic() + PAUSE
            raise
        if self._had_one:
            self._tally.count("reconnected")
        self._had_one = True
        return self._connection

    def _put(
        self, connection: BeanstalkConnection, ticks: Sequence[tuple[Tick, int]], answers: list[Place | Reason]
    ) -> None:
        for tube, same in groupby(ticks[len(answers) :], lambda each: tube_for(self._tube, each[0])):
            connection.use(tube)
            waiting = list(same)
            priority = PRIORITIES[waiting[0][0].kind]
            for first in range(0, len(waiting), AT_ONCE):
                answers += self._put_some(connection, priority, waiting[first : first + AT_ONCE])

    def _put_some(
        self, connection: BeanstalkConnection, priority: int, ticks: Sequence[tuple[Tick, int]]
    ) -> list[Place | Reason]:
        bodies = [encode(tick) for tick, _ in ticks]
        fit = [len(body) <= connection.longest for body in bodies]
        publisher = [
            b"put %d %d %d %d\r\n%b\r\n" % (priority, delay, self._ttr, len(body), body)
            for body, (_, delay), fits in zip(bodies, ticks, fit, strict=True)
            if fits
        ]
        given = connection.exchange(publisher)
        buried = [b"delete %d\r\n" % answer.number for answer in given if answer.word == b"BURIED"]
        if buried:  # the server had no room to sort them in: they would never come out
            connection.exchange(buried)
        rest = iter(given)
        return [_placed(connection, next(rest)) if fits else Reason.TOO_BIG for fits in fit]

    def _kick(self, connection: BeanstalkConnection, kind: Kind, most: int) -> int:
        kicked = 0
        for tube in self._tubes(connection, kind):
            left = min(most - kicked, _census_of(connection, tube).buried)
            if left > 0:  # without buried ones the server kicks delayed ones
                connection.use(tube)
                kicked += connection.ask(partial(greenstalk.Client.kick, bound=left))
        return kicked

    def _tubes(self, connection: BeanstalkConnection, kind: Kind) -> list[str]:
        return are_of(self._tube, kind, connection.ask(lambda client: client.tubes()))


def _asked_instance(connection: BeanstalkConnection) -> str:
    connection.ask(lambda client: client.using())  # whether it is still there
    return connection.instance


def _is_possible(place: Place) -> bool:
    """An impossible number would end the connection."""
    return 0 < place.number <= LARGEST_NUMBER


def _placed(connection: BeanstalkConnection, answer: Reply) -> Place | Reason:
    match answer.word:
        case b"INSERTED":
            return Place(connection.instance, answer.number)
        case b"DRAINING":
            return Reason.DRAINING
        case b"JOB_TOO_BIG":
            return Reason.TOO_BIG
        case _:
            return Reason.OUT_OF_MEMORY


def _cancel(connection: BeanstalkConnection, places: Sequence[tuple[Tick, Place]]) -> list[bool]:
    """Peek first: after a restart without a log, numbers begin at 1 again."""
    there = _are_there(connection, places)
    found = iter(connection.exchange([b"delete %d\r\n" % place.number for _, place in _only(places, there)]))
    return [is_there and next(found).word == b"DELETED" for is_there in there]


def _look(connection: BeanstalkConnection, places: Sequence[tuple[Tick, Place]], tube: str) -> list[Position | None]:
    """Peek first at jobs from before a restart: their numbers may mean others now."""
    in_doubt = [place.instance != connection.instance for _, place in places]
    confirmed = iter(_are_there(connection, _only(places, in_doubt)))
    asked = [_is_possible(at[1]) and (not doubt or next(confirmed)) for at, doubt in zip(places, in_doubt, strict=True)]
    found = iter(connection.exchange([b"stats-job %d\r\n" % place.number for _, place in _only(places, asked)]))
    return [
        _position(next(found), tube_for(tube, tick)) if is_asked else None
        for (tick, _), is_asked in zip(places, asked, strict=True)
    ]


def _are_there(connection: BeanstalkConnection, places: Sequence[tuple[Tick, Place]]) -> list[bool]:
    possible = [_is_possible(place) for _, place in places]
    found = iter(connection.exchange([b"peek %d\r\n" % place.number for _, place in _only(places, possible)]))
    return [
        is_possible and decode(next(found).body) == tick
        for (tick, _), is_possible in zip(places, possible, strict=True)
    ]


def _only(places: Sequence[tuple[Tick, Place]], wanted: Sequence[bool]) -> list[tuple[Tick, Place]]:
    return list(compress(places, wanted))


def _position(answer: Reply, tube: str) -> Position | None:
    if answer.word != b"OK":
        return None
    fields = dict(line.split(b": ", 1) for line in answer.body.splitlines() if b": " in line)
    is_astray = fields[b"tube"].strip(b'"') != tube.encode()
    return Position(Standing(fields[b"state"].decode()), int(fields[b"time-left"]), is_astray)


def _census(connection: BeanstalkConnection, tubes: Sequence[str]) -> Census:
    found = [_census_of(connection, tube) for tube in tubes]
    return Census(
        sum(each.delayed for each in found),
        sum(each.ready for each in found),
        sum(each.reserved for each in found),
        sum(each.buried for each in found),
    )


def _census_of(connection: BeanstalkConnection, tube: str) -> Census:
    try:
        found = connection.ask(partial(greenstalk.Client.stats_tube, tube=tube))
    except greenstalk.NotFoundError:  # it has become empty, and is gone
        return Census()
    return Census(
        found["current-jobs-delayed"],
        found["current-jobs-ready"],
        found["current-jobs-reserved"],
        found["current-jobs-buried"],
    )
