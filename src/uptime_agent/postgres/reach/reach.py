"""One server and its requests. Those for one database share a pipeline.

One driver takes a connection and all requests of a line; later ones go into its next round. A pipeline of unwanted
requests is cancelled on the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing, suppress
from logging import getLogger
from typing import Final

import anyio
from attrs import define, evolve, field

from timerqueue import Clock

from ...libpq import Connection, NoDriver, Query, QueryAnswer, ServerError, ServerFull, Unreachable
from ..contract import Failure, OutcomeKind, Probe, Role, Rows, Variant, pick
from .breaker import Breaker
from .connections import Connections, NoRoom, Spawn
from .reading import WrongShape, class_of, rows_of, text_of
from .request import ProbeRequest, Result, failed, skipped

logger = getLogger(__name__)

EXTENSIONS: Final = b"""/* timerqueue:extensions */ SELECT extname, extversion, nspname
    FROM pg_catalog.pg_extension JOIN pg_catalog.pg_namespace AS n ON n.oid = extnamespace"""
EXTENSIONS_WITHIN: Final = 2.0

CUT_OFF: Final = "cut off: its job was removed, or the agent stopped"

Line = tuple[str | None, bool, bool]
"""A database; whether new connections are needed; whether it is cheap."""


@define(eq=False)
class _Link:
    connection: Connection
    is_fresh: bool
    has_answered: bool = False
    is_broken: bool = field(default=False)


class ServerReach:
    """One server, left alone while silent."""

    def __init__(self, connections: Connections, breaker: Breaker, spawn: Spawn, clock: Clock) -> None:
        self.connections = connections
        self.breaker = breaker
        self.version: int | None = None
        self.is_standby: bool | None = None
        self._spawn = spawn
        self._clock = clock
        self._lines: dict[Line, list[ProbeRequest]] = {}
        self._under_way: dict[anyio.CancelScope, list[ProbeRequest]] = {}
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Nothing is asked, and every connection is released."""
        return not self._lines and not self.connections.used

    def close(self) -> None:
        """Give up all requests and connections."""
        self._is_closed = True
        for waiting in list(self._lines.values()):
            self.give_up(waiting)
        for wanted in list(self._under_way.values()):
            self.give_up(wanted)
        self.connections.close()

    def ask(self, request: ProbeRequest) -> None:
        """Have a request answered. It ends in any case."""
        line = (request.database, request.probe.call is not None, request.probe.is_cheap)
        if self._is_closed:
            request.end(skipped(CUT_OFF))
            return
        if not self.breaker.admits(line, self._clock.monotonic()):
            request.end(skipped(f"breaker: {self.breaker.error}"))
            return
        waiting = self._lines.get(line)
        if waiting is not None:
            waiting.append(request)
            return
        self._lines[line] = [request]
        self._spawn(self._drive, line)

    def give_up(self, requests: Sequence[ProbeRequest]) -> None:
        """End unwanted requests. A pipeline of these is cancelled on the server."""
        self._end([request for request in requests if request.is_open], skipped(CUT_OFF))
        for scope, wanted in list(self._under_way.items()):
            if not any(request.is_open for request in wanted):
                scope.cancel()

    async def _drive(self, line: Line) -> None:
        waiting = self._lines[line]
        try:
            while any(request.is_open for request in waiting):
                await self._round(line, waiting)
        except Exception as exc:
            logger.exception("a round of probes failed")
            _end_all(waiting, failed(Failure.QUERY, f"a defect of ours: {type(exc).__name__}: {exc}"))
        finally:
            del self._lines[line]
            self.breaker.withdrew(line)
            _end_all(waiting, skipped(CUT_OFF))

    async def _round(self, line: Line, waiting: list[ProbeRequest]) -> None:
        database, needs_fresh, _ = line
        open_ones = [request for request in waiting if request.is_open]
        patience = min(request.wait_until for request in open_ones) - self._clock.monotonic()
        try:
            connection, is_fresh = await self.connections.take(database, patience, is_fresh=needs_fresh)
        except NoRoom as exc:
            now = self._clock.monotonic()
            late = [request for request in open_ones if request.wait_until <= now] or open_ones[:1]
            self._end(late, skipped(f"budget: {exc}"))
            return
        except (Unreachable, NoDriver) as exc:
            self._unreachable(waiting, exc)
            return
        link = _Link(connection, is_fresh)
        try:
            self.version = connection.server_version
            self.is_standby = connection.is_standby
            requests = [request for request in waiting if request.is_open]
            waiting[:] = [] if not needs_fresh else requests[1:]
            await self._answer(link, requests[:1] if needs_fresh else requests, waiting)
        finally:
            if link.connection.is_clean:
                self.connections.release(connection, database)
            else:
                self.connections.discard(connection)

    def _unreachable(self, waiting: list[ProbeRequest], error: Exception) -> None:
        self.breaker.failed(str(error), self._clock.monotonic())
        open_ones = [request for request in waiting if request.is_open]
        waiting.clear()
        self._end(open_ones, failed(Failure.CONNECT, str(error)))
        if isinstance(error, ServerFull):
            self.connections.sweep()

    async def _answer(self, link: _Link, requests: list[ProbeRequest], again: list[ProbeRequest]) -> None:
        """Answer requests. If an idle connection had died, they go in `again`."""
        try:
            await self._answer_all(link, requests, again)
        except (Unreachable, TimeoutError) as exc:
            is_silent = isinstance(exc, TimeoutError)
            error = "the server does not answer" if is_silent else str(exc)
            unanswered = [request for request in requests if request.is_open]
            if not link.is_fresh and not link.has_answered and not is_silent:
                once_more = [request for request in unanswered if not request.tries]
                unanswered = [request for request in unanswered if request.tries]
                now = self._clock.monotonic()
                for request in once_more:
                    request.put_back(now)
                again[:0] = once_more
            else:
                self.breaker.failed(error, self._clock.monotonic())
            self._end(unanswered, failed(Failure.TIMEOUT if is_silent else Failure.CONNECT, error))

    async def _answer_all(self, link: _Link, requests: list[ProbeRequest], again: list[ProbeRequest]) -> None:
        """`again` gets requests after a cancelled pipeline, whose late answers would be taken for theirs."""
        extensions = await self._extensions(link, requests)
        fitting: list[tuple[ProbeRequest, Variant]] = []
        for request in requests:
            found = self._fitting(request.probe, extensions)
            if isinstance(found, Result):
                self._end([request], found)
            elif found is not None:
                fitting.append((request, found))
            else:
                await self._call(link, request)
        shared = [each for each in fitting if each[0].probe.is_cheap]
        for together in (shared, *([each] for each in fitting if not each[0].probe.is_cheap)):
            if not link.connection.is_clean:
                again += [request for request, _ in together]
            elif together:
                await self._pipeline(link, together)

    def _fitting(self, probe: Probe, extensions: dict[str, tuple[str, str]]) -> Variant | Result | None:
        """Return the variant; None: a call; or why nothing is asked."""
        if probe.role is not Role.ANY and self.is_standby is not None:
            role = Role.STANDBY if self.is_standby else Role.PRIMARY
            if role is not probe.role:
                return skipped(f"role: the server is a {role.value}, the probe is for a {probe.role.value}")
        if probe.call is not None:
            return None
        version = self.version or 0
        known = extensions.get(probe.extension or "")
        if probe.extension is not None and known is None:
            return skipped(f"missing extension: {probe.extension} is not in this database")
        variant = pick(probe, version, *(known or ()))
        if variant is None:
            return skipped(f"version: nothing to ask a server {version // 10_000}")
        return variant

    async def _extensions(self, link: _Link, requests: list[ProbeRequest]) -> dict[str, tuple[str, str]]:
        if not any(request.probe.extension for request in requests):
            return {}
        try:
            answer = await link.connection.fetch(Query(EXTENSIONS, EXTENSIONS_WITHIN, width=3))
        except ServerError:
            return {}
        link.has_answered = True
        texts = [[text_of(value or b"") for value in row] for row in answer.rows]
        return {name: (version, schema) for name, version, schema in texts}

    async def _pipeline(self, link: _Link, together: Sequence[tuple[ProbeRequest, Variant]]) -> None:
        wanted = [(request, variant) for request, variant in together if request.is_open]
        if not wanted:
            return
        queries = [Query(variant.sql.encode(), request.left) for request, variant in wanted]
        with anyio.CancelScope() as scope:
            self._under_way[scope] = [request for request, _ in wanted]
            try:
                await self._answered(link, wanted, queries)
            finally:
                del self._under_way[scope]

    async def _answered(
        self, link: _Link, wanted: Sequence[tuple[ProbeRequest, Variant]], queries: list[Query]
    ) -> None:
        async with aclosing(link.connection.run(queries)) as answers:  # type: ignore[type-var]
            for request, variant in wanted:
                request.begin(self._clock.monotonic())  # those before it in the pipeline were its wait, not its work
                answer = await anext(answers)
                link.has_answered = True
                self.breaker.succeeded()
                result = _result(request.probe, answer)
                self._end([request], result if variant.is_proven else evolve(result, is_unproven=True))
            async for _ in answers:
                pass

    async def _call(self, link: _Link, request: ProbeRequest) -> None:
        began = self._clock.monotonic()
        request.begin(began)
        assert request.probe.call is not None
        caller = _Caller(link.connection, began + request.left, self._clock)
        try:
            with anyio.fail_after(request.left):
                rows = await request.probe.call(caller)
        except ServerError as exc:
            self._end([request], failed(class_of(exc.sqlstate), str(exc)))
            return
        link.has_answered = True
        self.breaker.succeeded()
        self._end([request], Result(kind=OutcomeKind.STORED, rows=rows, cost=self._clock.monotonic() - began))

    def _end(self, requests: Sequence[ProbeRequest], result: Result) -> None:
        now = self._clock.monotonic()
        for request in requests:
            begun = now if request.begun is None else request.begun
            executed = request.spent + now - begun
            request.end(evolve(result, waited=now - request.asked - executed, executed=executed))


@define(eq=False)
class _Caller:
    _connection: Connection
    _until: float
    _clock: Clock

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of each part of connecting."""
        return self._connection.phases

    async def fetch(self, sql: str) -> Rows:
        """Run a query; return texts. Raises ServerError."""
        left = self._until - self._clock.monotonic()
        answer = await self._connection.fetch(Query(sql.encode(), left))
        self._connection.phases["first_row"] = answer.seconds
        return tuple(tuple(None if value is None else text_of(value) for value in row) for row in answer.rows)


def _result(probe: Probe, answer: QueryAnswer) -> Result:
    if answer.error is not None:
        error = answer.error
        why = f"{error} ({error.sqlstate})"
        return Result(kind=OutcomeKind.FAILED, failure=class_of(error.sqlstate), reason=why, cost=answer.seconds)
    try:
        rows, left_out = rows_of(probe, answer)
    except (WrongShape, ValueError, ArithmeticError) as exc:
        return Result(kind=OutcomeKind.FAILED, failure=Failure.QUERY, reason=str(exc), cost=answer.seconds)
    kind = OutcomeKind.PARTIAL if left_out else OutcomeKind.STORED
    reason = f"{left_out:,} rows were left out" if left_out else None
    return Result(kind=kind, reason=reason, rows=rows, left_out=left_out, cost=answer.seconds)


def _end_all(waiting: list[ProbeRequest], result: Result) -> None:
    for request in waiting:
        with suppress(Exception):
            request.end(result)
