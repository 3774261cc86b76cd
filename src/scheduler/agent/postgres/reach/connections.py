"""All connections to one server under one limit: those being made, those in use, idle ones, and those that leave.

A place is free when the server has closed its side of what was there (see libpq/leaving.py): so the server never counts
more than the limit. Who finds no place waits in line; an idle connection to another database makes room, the one that
was used longest ago first.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from typing import Final

import anyio
from attrs import define, field

from timerqueue import Clock

from ...libpq import Connection, gone
from .dialling import Dialler

IDLE_FOR: Final = 60.0
"""Seconds after which an idle connection is closed."""

Spawn = Callable[..., object]
"""A call that starts a coroutine function with arguments, beside the caller."""


class NoRoom(Exception):
    """No connection was free within the time that one may wait for it."""


@define(eq=False)
class _Waiter:
    database: str | None
    is_fresh: bool
    turn: anyio.Event = field(factory=anyio.Event)
    handed: Connection | None = None
    has_place: bool = False


class Connections:
    """The connections to one server; at most `limit`, whatever they do. `None` names the server's own database."""

    def __init__(self, dialler: Dialler, limit: int, spawn: Spawn, clock: Clock) -> None:
        self.limit = limit
        self.used = 0
        """Places that are taken: as many as the server may count, at most."""
        self._dialler = dialler
        self._spawn = spawn
        self._clock = clock
        self._idle: deque[tuple[float, str | None, Connection]] = deque()
        self._waiting: deque[_Waiter] = deque()
        self._is_closed = False

    @property
    def idle(self) -> int:
        """How many are open and not in use."""
        return len(self._idle)

    async def take(self, database: str | None, within: float, *, is_fresh: bool = False) -> tuple[Connection, bool]:
        """Return a connection and whether it was just made. `is_fresh`: it has to be.

        Raises NoRoom after `within` seconds in line, Unreachable. Give it back by `release` or `discard`.
        """
        known = None if is_fresh else self._idle_one(database)
        if known is None:
            known = await self._place(database, within, is_fresh=is_fresh)
        return (known, False) if known is not None else (await self._dial(database), True)

    def release(self, connection: Connection, database: str | None) -> None:
        """Take back a connection that can be used again."""
        if not connection.is_clean or self._is_closed or self.used > self.limit:
            self.discard(connection)
            return
        for waiter in self._waiting:
            if waiter.database == database and not waiter.is_fresh:
                self._waiting.remove(waiter)
                waiter.handed = connection
                waiter.turn.set()
                return
        if self._waiting:
            self.discard(connection)
        else:
            self._idle.append((self._clock.monotonic(), database, connection))

    def discard(self, connection: Connection) -> None:
        """Close a connection. What it still does is cancelled on the server; its place is free when it is gone."""
        self._spawn(self._leave, connection)

    def resize(self, limit: int) -> None:
        """Change the limit. A lower one closes idle connections at once, others when they are given back."""
        self.limit = limit
        while self.used - self._leaving() > self.limit and self._idle:
            self._evict()
        self._admit()

    def sweep(self) -> None:
        """Close what has been idle for too long."""
        while self._idle and self._idle[0][0] <= self._clock.monotonic() - IDLE_FOR:
            self._evict()

    def close(self) -> None:
        """Close the idle ones now and the others when they are given back."""
        self._is_closed = True
        while self._idle:
            self._evict()

    _left = 0

    def _leaving(self) -> int:
        return self._left

    def _idle_one(self, database: str | None) -> Connection | None:
        for entry in reversed(self._idle):
            if entry[1] == database:
                self._idle.remove(entry)
                return entry[2]
        return None

    async def _place(self, database: str | None, within: float, *, is_fresh: bool) -> Connection | None:
        """Wait for a place; return None with one, or a connection that was handed over."""
        if self.used < self.limit and not self._waiting:
            self.used += 1
            return None
        waiter = _Waiter(database, is_fresh)
        self._waiting.append(waiter)
        if self._idle:
            self._evict()
        try:
            with anyio.move_on_after(max(within, 0.0)):
                await waiter.turn.wait()
        except BaseException:
            self._withdraw(waiter)
            raise
        if not waiter.turn.is_set():
            self._withdraw(waiter)
            raise NoRoom(f"no connection was free within {within:.3g} s (limit {self.limit})")
        return waiter.handed

    def _withdraw(self, waiter: _Waiter) -> None:
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        elif waiter.handed is not None:
            self.release(waiter.handed, waiter.database)
        elif waiter.has_place:
            self._free()

    async def _dial(self, database: str | None) -> Connection:
        left: list[socket.socket] = []
        connection = None
        try:
            connection = await self._dialler.dial(database, left.append)
            return connection
        finally:
            # The place is that of the connection, or else of what was begun in vain, until the server has let it go.
            if connection is None or left:
                self._left += connection is None
                self._spawn(self._see_off, left, connection is None)

    async def _leave(self, connection: Connection) -> None:
        self._left += 1
        with anyio.CancelScope(shield=True):
            await connection.give_up()
        rest = connection.leave()
        await self._see_off([] if rest is None else [rest], True)  # noqa: FBT003 - it had a place

    async def _see_off(self, left: list[socket.socket], has_place: bool) -> None:  # noqa: FBT001 - spawned by position
        try:
            for each in left:
                await gone(each)
        finally:
            for each in left:
                each.close()
            if has_place:
                self._left -= 1
                self._free()

    def _evict(self) -> None:
        self.discard(self._idle.popleft()[2])

    def _free(self) -> None:
        self.used -= 1
        self._admit()

    def _admit(self) -> None:
        """Give free places to those who wait, the first one first."""
        while self._waiting and self.used < self.limit:
            waiter = self._waiting.popleft()
            self.used += 1
            waiter.has_place = True
            waiter.turn.set()
