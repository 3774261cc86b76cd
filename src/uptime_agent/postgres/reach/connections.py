"""All connections to one server under one limit: new, used, idle and leaving ones.

A place is free when the server has closed its side (see libpq/leaving.py), so the server never counts more than the
limit. A request without a place waits in line. The idle connection to another database that was unused longest makes
room.

A server that releases nothing within the time for a login stands still. When that takes all places, it counts as
silent. A silent address keeps a place of its own: several addresses may lead to one server. Targets that are one server
share places (see places.py).
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from contextlib import closing
from typing import Final

import anyio

from timerqueue import Clock

from ...libpq import Connection, Unreachable, gone
from .dialling import Dialler
from .places import Places, Waiter

IDLE_FOR: Final = 60.0
"""Seconds after which an idle connection is closed."""

Spawn = Callable[..., object]
"""A call that starts a coroutine function with arguments, next to the caller."""


CLOSED: Final = "the server is not asked any more"
STUCK: Final = "the server does not answer: it lets go of none of our connections"


class NoRoom(Exception):
    """No connection was free in time."""


class Connections:
    """The connections of one target, at most `limit` in any state. `None` names the server's own database.

    `used`: places taken, at most what the server counts. `leaving`: of those, closing ones; `stuck`: of those, what the
    server has not released in time.
    """

    def __init__(self, dialler: Dialler, limit: int, spawn: Spawn, clock: Clock) -> None:
        self.limit = limit
        self.used = 0
        self.leaving = 0
        self.stuck = 0
        self.is_closed = False
        self.places = Places(self)
        self._dialler = dialler
        self._spawn = spawn
        self._clock = clock
        self._idle: deque[tuple[float, str | None, Connection]] = deque()

    @property
    def idle(self) -> int:
        """The number of open, unused connections."""
        return len(self._idle)

    @property
    def idle_since(self) -> float | None:
        """When the longest idle one was used, in monotonic seconds; None: none is idle."""
        return self._idle[0][0] if self._idle else None

    def share(self, other: Connections) -> None:
        """Share one limit with another target's connections to the same server."""
        if self.places is not other.places:
            self.places.join(other.places)

    async def take(self, database: str | None, within: float, *, is_fresh: bool = False) -> tuple[Connection, bool]:
        """Return a connection and whether it is new. `is_fresh`: it must be.

        Raises NoRoom after `within` seconds in line, Unreachable. Give it back by `release` or `discard`.
        """
        if self.is_closed:
            raise NoRoom(CLOSED)
        known = None if is_fresh else self._idle_one(database)
        if known is None:
            known = await self._place(database, within, is_fresh=is_fresh)
        return (known, False) if known is not None else (await self._dial(database), True)

    def release(self, connection: Connection, database: str | None) -> None:
        """Take back a usable connection."""
        waiting = self.places.waiting
        is_over = self.is_closed or self.places.used > self.places.limit
        if not connection.is_clean or is_over or self._is_outdated(connection):
            self.discard(connection)
            return
        for waiter in waiting:
            if waiter.holder is self and waiter.database == database and not waiter.is_fresh:
                waiting.remove(waiter)
                waiter.handed = connection
                waiter.turn.set()
                return
        if waiting:
            self.discard(connection)
        else:
            self._idle.append((self._clock.monotonic(), database, connection))

    def discard(self, connection: Connection) -> None:
        """Close a connection. Its queries are cancelled on the server; its place is free when it is gone."""
        self.leaving += 1
        self._spawn(self._leave, connection)

    def resize(self, limit: int) -> None:
        """Change the limit. A lower one closes idle connections at once, others when given back."""
        self.limit = limit
        self.places.fit()

    def sweep(self) -> None:
        """Close connections that were idle for too long."""
        while self._idle and self._idle[0][0] <= self._clock.monotonic() - IDLE_FOR:
            self.evict()

    def close(self) -> None:
        """Close idle ones now, the others when given back. Waiting requests end."""
        self.is_closed = True
        while self._idle:
            self.evict()
        for waiter in [each for each in self.places.waiting if each.holder is self]:
            self.places.waiting.remove(waiter)
            waiter.turn.set()
        self.places.fit()

    def follow(self, dialler: Dialler) -> None:
        """Use this dialler from now on. Connections of another role end when given back."""
        self._dialler = dialler
        for entry in [each for each in self._idle if self._is_outdated(each[2])]:
            self._idle.remove(entry)
            self.discard(entry[2])

    def _is_outdated(self, connection: Connection) -> bool:
        return connection.server != self._dialler.server

    def evict(self) -> None:
        """Close the connection that is idle longest."""
        self.discard(self._idle.popleft()[2])

    def _idle_one(self, database: str | None) -> Connection | None:
        for entry in reversed(self._idle):
            if entry[1] == database:
                self._idle.remove(entry)
                return entry[2]
        return None

    async def _place(self, database: str | None, within: float, *, is_fresh: bool) -> Connection | None:
        """Wait for a place; return None with one, or a connection that was passed on."""
        if self.places.take(self):
            return None
        if self.places.are_stuck:
            raise Unreachable(STUCK)
        waiter = Waiter(self, database, is_fresh)
        self.places.waiting.append(waiter)
        self.places.make_room()
        try:
            with anyio.move_on_after(max(within, 0.0)):
                await waiter.turn.wait()
        except BaseException:
            self._withdraw(waiter)
            raise
        if not waiter.turn.is_set():
            self._withdraw(waiter)
            raise NoRoom(f"no connection was free within {within:.3g} s (limit {self.places.limit})")
        if waiter.handed is None and not waiter.has_place:
            if self.is_closed:
                raise NoRoom(CLOSED)
            raise Unreachable(STUCK)
        return waiter.handed

    def _withdraw(self, waiter: Waiter) -> None:
        if waiter in self.places.waiting:
            self.places.waiting.remove(waiter)
        elif waiter.handed is not None:
            self.release(waiter.handed, waiter.database)
        elif waiter.has_place:
            self.places.free(self)

    async def _dial(self, database: str | None) -> Connection:
        """Connect, with a place that was taken. An address after a silent one takes another place, if possible."""
        left: list[socket.socket] = []
        connection, taken = None, 1

        def another() -> bool:
            nonlocal taken
            has_place = len(left) < taken or self.places.take(self)
            taken = max(taken, len(left) + has_place)
            return has_place

        try:
            connection = await self._dialler.dial(database, left.append, another)
            return connection
        finally:
            # A place is that of the connection, or of what was begun in vain until the server has let it go.
            for _ in range(taken - len(left) - (connection is not None)):
                self.places.free(self)
            for each in left:
                self.leaving += 1
                self._spawn(self._see_off, each)

    async def _leave(self, connection: Connection) -> None:
        if not connection.is_clean:
            with anyio.CancelScope(shield=True):
                await connection.give_up()
        await self._see_off(connection.leave())

    async def _see_off(self, left: socket.socket | None) -> None:
        """Free a leaving place once the server has released it."""
        try:
            if left is not None:
                with closing(left):
                    await self._let_go(left)
        finally:
            self.leaving -= 1
            self.places.free(self)

    async def _let_go(self, left: socket.socket) -> None:
        """Return once the server has released a connection; note if that takes longer than a login."""
        with anyio.move_on_after(self._dialler.within):
            await gone(left)
            return
        self.places.mark_stuck(self)
        try:
            await gone(left)
        finally:
            self.stuck -= 1
