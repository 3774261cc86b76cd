"""A new connection, at the first address that answers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

import anyio
from attrs import frozen

from timerqueue import Clock

from ...checks import Resolver, Unresolved
from ...libpq import Connection, Server, Unreachable

CONNECT_WITHIN: Final = 5.0
"""Seconds for name, addresses and login."""

Left = Callable[[socket.socket], None]


@frozen
class Dialler:
    """Connects to one server. `within`: seconds."""

    server: Server
    resolver: Resolver
    clock: Clock
    within: float = CONNECT_WITHIN

    async def dial(self, database: str | None, left: Left, may_go_on: Callable[[], bool] = lambda: True) -> Connection:
        """Connect. `left` gets failed connections, and must await their end. Raises Unreachable.

        `may_go_on` precedes each further address: the failed one still counts.
        """
        began = self.clock.monotonic()
        connection, error = None, f"{self.server} does not answer within {self.within:g} s"
        with anyio.move_on_after(self.within):
            addresses = await self._addresses()
            named = self.clock.monotonic() - began
            for number, address in enumerate(addresses):
                share = (self.within - (self.clock.monotonic() - began)) / (len(addresses) - number)
                try:
                    connection = await self._dial(database, address, share, left)
                except Unreachable as exc:
                    if number == len(addresses) - 1 or not may_go_on():
                        raise
                    error = str(exc)
                else:
                    if not self.server.is_local:
                        connection.phases = {"name": named, **connection.phases}
                    break
        if connection is None:
            raise Unreachable(error)
        return connection

    async def _addresses(self) -> list[str] | list[None]:
        if self.server.is_local:
            return [None]
        try:
            return await self.resolver.addresses(self.server.host)
        except Unresolved as exc:
            raise Unreachable(str(exc)) from None

    async def _dial(self, database: str | None, address: str | None, within: float, left: Left) -> Connection:
        connection = Connection(self.server, address, self.clock.monotonic, database)
        is_there = False
        try:
            with anyio.fail_after(within):
                await connection.connect()
            is_there = True
        except TimeoutError:
            raise Unreachable(f"{self.server} does not answer within {within:.3g} s") from None
        except OSError as exc:  # of ours: no descriptor is left
            raise Unreachable(f"cannot connect to {self.server}: {exc.strerror}") from None
        finally:
            rest = None if is_there else connection.leave()
            if rest is not None:
                left(rest)
        return connection
