"""All connections to one server under one limit: new, used, idle and leaving ones.

A place is free once the server has closed its side (libpq/leaving.py): it never counts more than the limit. If all
places stay unreleased for a login's time, the server counts as silent.
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
"""Seconds."""

Spawn = Callable[..., object]
"""Starts a coroutine function, next to the caller."""


CLOSED: Final = "the server is not asked any more"
STUCK: Final = "the server does not answer: it lets go of none of our connections"


class NoRoom(Exception):
    """No connection was free in time."""


class Connections:
    """One target's connections. Database `None`: the server's own.

    `used`: taken places. `leaving`: of those, closing ones; `stuck`: of those, unreleased in time.
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
        """How many are idle."""
        return len(self._idle)

    @property
    def idle_since(self) -> float | None:
        """The longest idle one's last use, in monotonic seconds."""
        return self._idle[0][0] if self._idle else None

    def share(self, other: Connections) -> None:
        """Share one limit with a target on the same server."""
        if self.places is not other.places:
            self.places.join(other.places)

    async def take(self, database: str | None, within: float, *, is_fresh: bool = False) -> tuple[Connection, bool]:
        """Return a connection, and whether it is new. Give it back by `release` or `discard`.

        Raises NoRoom after `within` seconds, Unreachable.
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
        """Close it, cancelling its queries."""
        self.leaving += 1
        self._spawn(self._leave, connection)

    def resize(self, limit: int) -> None:
        """Change the limit. Excess connections close when idle."""
        self.limit = limit
        self.places.fit()

    def sweep(self) -> None:
        """Close long idle connections."""
        while self._idle and self._idle[0][0] <= self._clock.monotonic() - IDLE_FOR:
            self.evict()

    def close(self) -> None:
        """Close idle ones now, others when given back. Waiting requests end."""
        self.is_closed = True
        while self._idle:
            self.evict()
        for waiter in [each for each in self.places.waiting if each.holder is self]:
            self.places.waiting.remove(waiter)
            waiter.turn.set()
        self.places.fit()

    def follow(self, dialler: Dialler) -> None:
        """Use this dialler. Connections of another role end."""
        self._dialler = dialler
        for entry in [each for each in self._idle if self._is_outdated(each[2])]:
            self._idle.remove(entry)
            self.discard(entry[2])

    def _is_outdated(self, connection: Connection) -> bool:
        return connection.server != self._dialler.server

    def evict(self) -> None:
        """Close the longest idle connection."""
        self.discard(self._idle.popleft()[2])

    def _idle_one(self, database: str | None) -> Connection | None:
        for entry in reversed(self._idle):
            if entry[1] == database:
                self._idle.remove(entry)
                return entry[2]
        return None

    async def _place(self, database: str | None, within: float, *, is_fresh: bool) -> Connection | None:
        """Wait for a place, or for a connection that is passed on."""
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
        """After a silent address the next takes another place."""
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
        try:
            if left is not None:
                with closing(left):
                    await self._let_go(left)
        finally:
            self.leaving -= 1
            self.places.free(self)

    async def _let_go(self, left: socket.socket) -> None:
        with anyio.move_on_after(self._dialler.within):
            await gone(left)
            return
        self.places.mark_stuck(self)
        try:
            await gone(left)
        finally:
            self.stuck -= 1
