"""The control API of an agent, served at a Unix socket and at an address."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Final

import anyio

from scheduler import Scheduler
from scheduler.web import PlaceOf, app
from timerqueue import Clock

from ..config import Api
from ..web import AsgiHandler, HttpServer, NotListening, Peers, forget, listen, listen_at, most_connections
from .callers import Known
from .guard import Guard
from .inside import Inside
from .routes import routes_of
from .tokens import TokenFile

MOST: Final = 2_000
"""Open connections."""


class ApiServer:
    """Listens from the start, and answers until it is cancelled.

    `say`: hears of trouble with tokens, and when requests may be lost. `place_of`: where the file defines a job.
    """

    def __init__(
        self,
        api: Api,
        scheduler: Scheduler,
        clock: Clock,
        say: Callable[[str], None],
        *,
        inside: Inside,
        place_of: PlaceOf,
    ) -> None:
        self._api = api
        tokens = TokenFile(api.tokens)
        if (trouble := tokens.trouble) is not None:
            say(f"no token is valid: {trouble}")
        ours = os.geteuid() if hasattr(os, "geteuid") else None
        peers = Peers(most_connections(MOST))
        guard = Guard(Known(find=tokens.find, ours=ours, proxies=api.proxies), tokens, api.hosts, peers, clock)
        guard.app = app(scheduler, access=guard.access, routes=routes_of(inside), place_of=place_of)
        self._server = HttpServer(
            clock, AsgiHandler(guard), peers, say, what="requests to the control API", port="the control API"
        )
        self._listeners: list[socket.socket] = []
        self._tokens = tokens

    def open(self) -> None:
        """Listen. Raises NotListening."""
        if self._api.is_beyond and not self._tokens.tokens and not self._api.proxies.networks:
            raise NotListening(
                f"[api] would listen beyond this machine, and nobody could ask: {self._api.tokens} has no token. Add "
                "one: timerqueue token add NAME FILE --scope read"
            )
        try:
            if hasattr(socket, "AF_UNIX"):
                self._listeners.append(listen_at(self._api.socket, "the control API"))
            if self._api.listen is not None:
                self._listeners.append(listen(*self._api.listen, "the control API"))
        except NotListening:
            self.close()
            raise

    def close(self) -> None:
        """Stop listening. The Unix socket is removed."""
        while self._listeners:
            forget(self._listeners.pop())

    async def run(self) -> None:
        """Answer requests until cancelled."""
        try:
            async with anyio.create_task_group() as group:
                for each in self._listeners:
                    group.start_soon(self._server.serve, each)
        finally:
            self.close()
