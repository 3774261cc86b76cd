"""One connection, asked in pipelines."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Final

import anyio

from .errors import Unreachable, refused
from .leaving import leave
from .pipeline import Pipeline, Query, QueryAnswer, consume, send
from .server import Server, no_driver
from .waiting import on_socket_of, polled
from .wire import PqWire

CANCEL_WITHIN: Final = 2.0
"""Seconds for a server to end its queries."""
CANCEL_AGAIN_AFTER: Final = 0.3
"""Seconds after which a cancel request counts as lost."""

_OF_NOTIFICATION: Final = 11
"""Bytes besides its texts."""


class Connection:
    """A connection to one database. Always call `leave` at the end. `now` and `phases` count seconds."""

    def __init__(
        self, server: Server, address: str | None, now: Callable[[], float], database: str | None = None
    ) -> None:
        try:
            from psycopg.pq import PGconn  # noqa: PLC0415
        except ImportError as exc:
            raise no_driver(exc) from None
        self.server = server
        self.database = server.database if database is None else database
        self.phases: dict[str, float] = {}
        self.is_clean = False
        self._now = now
        self._began = now()
        self._unanswered = 0
        self._pg = PGconn.connect_start(server.conninfo(self.database, address).encode())
        self._wire = PqWire(self._pg)
        self._pipeline = Pipeline(self._pg, self._wire)

    async def connect(self) -> None:
        """Log in. Raises Unreachable, and ServerFull if the server has no room."""
        from psycopg.pq import ConnStatus  # noqa: PLC0415

        if self._pg.status == ConnStatus.BAD:
            raise refused(self._pg.get_error_message("utf-8"))
        if not await polled(self._pg.connect_poll, self._wire.until, self._stepped):
            raise refused(self._pg.get_error_message("utf-8"))
        self._measure("login")
        self._pg.nonblocking = 1
        self._pg.enter_pipeline_mode()
        self.is_clean = True

    @property
    def server_version(self) -> int:
        """A number: 180006 is 18.6."""
        return self._pg.server_version

    @property
    def is_standby(self) -> bool | None:
        """Whether it is in recovery, as last told. Poolers do not tell."""
        told = self._pg.parameter_status(b"in_hot_standby")
        return None if told is None else told == b"on"

    @property
    def backend(self) -> int:
        """The server's process id."""
        return self._pg.backend_pid

    @property
    def is_worn(self) -> bool:
        """Whether another connection should replace it."""
        return self._wire.is_worn

    async def run(self, queries: Sequence[Query]) -> AsyncIterator[QueryAnswer]:
        """Send queries together, and yield answers in order. Raises Unreachable, TimeoutError.

        After that, or to skip the rest, call `give_up` and `leave`.
        """
        from psycopg import Error  # noqa: PLC0415

        self.is_clean = False
        self._unanswered = len(queries)
        try:
            for query in queries:
                send(self._pg, query)
            async with aclosing(self._pipeline.answers(queries, self._now)) as found:  # type: ignore[type-var]
                async for answer in found:
                    self._unanswered -= 1
                    yield answer
        except Error as exc:  # the connection is not in the state that an answer leads to
            raise Unreachable(str(exc)) from None
        self.is_clean = not self.is_worn

    async def fetch(self, query: Query) -> QueryAnswer:
        """Run one query. Raises Unreachable, TimeoutError, ServerError."""
        async with aclosing(self.run([query])) as found:  # type: ignore[type-var]
            answer = await anext(found)
            async for _ in found:
                pass
        if answer.error is not None:
            raise answer.error
        return answer

    async def notified(self) -> None:
        """Return after a notification that we LISTEN to. Raises Unreachable."""
        self._wire.begin()
        while not self._has_heard():
            await self._wire.exchange()
            consume(self._pg)

    def _has_heard(self) -> bool:
        """Take notifications out of libpq, which bounds its memory."""
        has_heard = False
        while (told := self._pg.notifies()) is not None:
            has_heard = True
            self._wire.allow(_OF_NOTIFICATION + len(told.relname) + len(told.extra))
        return has_heard

    async def give_up(self) -> bool:
        """Have the server cancel our queries. Returns whether it did, within CANCEL_WITHIN.

        A request ends one query. Between two queries it ends nothing, so it is sent again.
        """
        if not self._unanswered:
            return True
        with anyio.move_on_after(CANCEL_WITHIN, shield=True), suppress(Unreachable):
            while self._unanswered:
                with anyio.move_on_after(CANCEL_AGAIN_AFTER):
                    if not await self._cancelled():
                        return False
                    await self._pipeline.drain()
                    self._unanswered -= 1
            return True
        return False

    async def _cancelled(self) -> bool:
        from psycopg import Error, NotSupportedError  # noqa: PLC0415
        from psycopg.pq import ConnStatus  # noqa: PLC0415

        if self._pg.status != ConnStatus.OK:
            return False
        try:
            request = self._pg.cancel_conn()
        except NotSupportedError:  # libpq before 17
            await anyio.to_thread.run_sync(self._pg.get_cancel().cancel, abandon_on_cancel=True)
            return True
        try:
            request.start()
            return await polled(request.poll, on_socket_of(request))
        except Error:  # the server refuses us, or there is no descriptor left
            return False
        finally:
            request.finish()

    def leave(self) -> socket.socket | None:
        """Close it. Pass the result to `gone`."""
        self.is_clean = False
        return leave(self._pg, self._wire)

    def _stepped(self) -> None:
        from psycopg.pq import ConnStatus  # noqa: PLC0415

        if self._pg.status == ConnStatus.BAD:
            return
        if "connect" not in self.phases and self._pg.status != ConnStatus.STARTED:
            self._measure("connect")
        elif "tls" not in self.phases and self._pg.ssl_in_use and self._pg.status != ConnStatus.SSL_STARTUP:
            self._measure("tls")

    def _measure(self, phase: str) -> None:
        now = self._now()
        self.phases[phase], self._began = now - self._began, now
