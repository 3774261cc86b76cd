"""Pipelines: queries that are sent together and answered in order, each in a transaction of its own.

Between two Syncs everything is one transaction. Each query has its own Sync, so that one that fails costs the others
nothing; and before it, in the same transaction, its settings: read only, an empty search path, and how long it may wait
for a lock and run. They end with that transaction, so they hold behind a pooler of transactions as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Final

import anyio
from attrs import frozen

from .errors import ServerError, Unreachable

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

LOCK_TIMEOUT: Final = "200ms"

SETTINGS: Final = b"""/* timerqueue */ SELECT pg_catalog.set_config('transaction_read_only', 'on', true),
    pg_catalog.set_config('search_path', 'pg_catalog', true), pg_catalog.set_config('TimeZone', 'UTC', true),
    pg_catalog.set_config('DateStyle', 'ISO', true), pg_catalog.set_config('lock_timeout', $1, true),
    pg_catalog.set_config('statement_timeout', $2, true)"""

SLOWEST_NETWORK: Final = 1.0
"""Seconds beyond a query's own time in which its answer has to come: the server ends it, unless it stands still."""

Bytes = tuple[bytes | None, ...]
"""A row as the server writes it."""


@frozen
class Query:
    """A query, and how many seconds the server may take for it."""

    sql: bytes
    timeout: float


@frozen
class Answer:
    """Rows as the server writes them, with the names of their columns; or an error. `seconds`: on the server.

    The seconds of the first answer of a pipeline have the way there and back in them.
    """

    names: tuple[str, ...] = ()
    rows: tuple[Bytes, ...] = ()
    error: ServerError | None = None
    seconds: float = 0.0


def send(connection: PGconn, query: Query) -> None:
    """Put a query, its settings and its Sync into libpq's buffer."""
    milliseconds = max(int(query.timeout * 1000), 1)
    connection.send_query_params(SETTINGS, [LOCK_TIMEOUT.encode(), b"%dms" % milliseconds])
    connection.send_query_params(query.sql, None)
    connection.pipeline_sync()


async def answers(connection: PGconn, queries: Sequence[Query], now: Callable[[], float]) -> AsyncIterator[Answer]:
    """Give the answers of queries that were sent, in their order, as they come.

    Raises Unreachable if the connection breaks, TimeoutError if one answer does not come in time.
    """
    began = now()
    for query in queries:
        with anyio.fail_after(query.timeout + SLOWEST_NETWORK):
            found = await segment(connection)
        ended = now()
        yield _answer(found, ended - began)
        began = ended


async def segment(connection: PGconn) -> list[PGresult]:
    """Return the results up to the next Sync. Raises Unreachable."""
    from psycopg.pq import ConnStatus, ExecStatus  # noqa: PLC0415

    found: list[PGresult] = []
    while True:
        while connection.is_busy():
            if connection.flush():
                await _either(connection.socket)
            else:
                await anyio.wait_readable(connection.socket)
            consume(connection)
        result = connection.get_result()
        if result is None:
            if connection.status == ConnStatus.BAD:
                raise Unreachable(_message(found[-1]) if found else connection.get_error_message())
            continue
        if result.status == ExecStatus.PIPELINE_SYNC:
            return found
        if result.status == ExecStatus.FATAL_ERROR and not _state(result):
            raise Unreachable(connection.get_error_message() or "the connection is lost")
        found.append(result)


async def _either(socket: int) -> None:
    """Wait until there is something to read, or room to write."""
    async with anyio.create_task_group() as group:

        async def end_with(wait: Callable[[int], object]) -> None:
            await wait(socket)  # type: ignore[misc] # both are coroutine functions
            group.cancel_scope.cancel()

        group.start_soon(end_with, anyio.wait_readable)
        group.start_soon(end_with, anyio.wait_writable)


def consume(connection: PGconn) -> None:
    """Take what the server has sent. Raises Unreachable."""
    from psycopg import OperationalError  # noqa: PLC0415

    try:
        connection.consume_input()
    except OperationalError as exc:
        raise Unreachable(str(exc)) from None


def _answer(found: list[PGresult], seconds: float) -> Answer:
    from psycopg.pq import ExecStatus  # noqa: PLC0415

    for result in found:
        if result.status == ExecStatus.FATAL_ERROR:
            return Answer(error=ServerError(_state(result), _message(result)), seconds=seconds)
    last = found[-1]
    names = tuple([(last.fname(at) or b"").decode() for at in range(last.nfields)])
    get, width = last.get_value, range(last.nfields)
    rows = tuple([tuple([get(at, column) for column in width]) for at in range(last.ntuples)])
    return Answer(names, rows, None, seconds)


def _state(result: PGresult) -> str:
    from psycopg.pq import DiagnosticField  # noqa: PLC0415

    return (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()


def _message(result: PGresult) -> str:
    from psycopg.pq import DiagnosticField  # noqa: PLC0415

    primary = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b"an error without words"
    return primary.decode("utf-8", "replace")
