"""Pipelines: queries sent together and answered in order, each in its own transaction.

A query's failure costs the others nothing. Its settings end with its transaction, so they work behind poolers. A server
may send anything: an answer that fits no question, or exceeds its bounds, ends the connection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Final

import anyio
from attrs import field, frozen

from .errors import Garbled, ServerError, Unreachable, one_line
from .wire import PqWire

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

LOCK_TIMEOUT: Final = "200ms"

SETTINGS: Final = b"""/* timerqueue */ SELECT pg_catalog.set_config('transaction_read_only', 'on', true),
    pg_catalog.set_config('search_path', 'pg_catalog', true), pg_catalog.set_config('TimeZone', 'UTC', true),
    pg_catalog.set_config('DateStyle', 'ISO', true), pg_catalog.set_config('lock_timeout', $1, true),
    pg_catalog.set_config('statement_timeout', $2, true)"""

SLOWEST_NETWORK: Final = 1.0
"""Seconds beyond a query's own time: a stalled server ends no query."""

MOST_BYTES: Final = 4 * 1024 * 1024
"""Bytes of an answer's rows, up to ten times that in memory."""
MOST_ROWS: Final = 50_000
MOST_DROPPED: Final = 10_000

_OF_ROW: Final = 7
_OF_VALUE: Final = 4
_OF_COLUMN: Final = 19
"""Bytes of a row, a value and a column, besides their texts."""
_READS: Final = 3
"""Calls to read a TLS record, whose rest wakes no socket."""

Bytes = tuple[bytes | None, ...]
"""A row as the server writes it."""


@frozen
class Query:
    """A query, and the seconds that the server may take.

    `width`: columns, if known. `most_bytes`, `most_rows`: of the answer. `together`: rows of a portion.
    """

    sql: bytes
    timeout: float
    width: int | None = field(default=None, kw_only=True)
    most_bytes: int = field(default=MOST_BYTES, kw_only=True)
    most_rows: int = field(default=MOST_ROWS, kw_only=True)
    together: int = field(default=8, kw_only=True)


@frozen
class QueryAnswer:
    """Rows, or an error. `seconds`: on the server; a pipeline's first answer includes the network."""

    names: tuple[str, ...] = ()
    rows: tuple[Bytes, ...] = ()
    error: ServerError | None = None
    seconds: float = 0.0


def send(connection: PGconn, query: Query) -> None:
    """Put a query and its settings into libpq's buffer."""
    milliseconds = max(int(query.timeout * 1000), 1)
    connection.send_query_params(SETTINGS, [LOCK_TIMEOUT.encode(), b"%dms" % milliseconds])
    connection.send_query_params(query.sql, None)
    connection.pipeline_sync()


class Pipeline:
    """The answers of a connection."""

    def __init__(self, connection: PGconn, wire: PqWire) -> None:
        from psycopg.pq import ConnStatus, ExecStatus  # noqa: PLC0415

        self._pg = connection
        self._wire = wire
        self._status = ExecStatus
        self._bad = ConnStatus.BAD
        self._pieces = {ExecStatus.SINGLE_TUPLE, ExecStatus.TUPLES_CHUNK}
        self._error: ServerError | None = None
        """The last error, after which the server may close the connection."""

    async def answers(self, queries: Sequence[Query], now: Callable[[], float]) -> AsyncIterator[QueryAnswer]:
        """Yield answers in order.

        Raises Unreachable if the connection breaks or an answer makes no sense, TimeoutError if it is late.
        """
        began = now()
        for query in queries:
            with anyio.fail_after(query.timeout + SLOWEST_NETWORK):
                names, rows = await self._answer(query)
            ended = now()
            yield QueryAnswer(names, rows, self._error, ended - began)
            began = ended

    async def drain(self) -> None:
        """Drop results up to the next Sync. Raises Unreachable."""
        self._begin()
        others = 0
        while others < MOST_DROPPED:
            result = await self._result()
            if result is not None and result.status in self._pieces:
                self._wire.allow(_size(_rows(result)))
                continue
            if result is not None and result.status == self._status.PIPELINE_SYNC:
                return
            others += 1
        raise Garbled("an answer without an end")

    async def _answer(self, query: Query) -> tuple[tuple[str, ...], tuple[Bytes, ...]]:
        self._begin()
        while (result := await self._result()) is not None:
            if result.status != self._status.TUPLES_OK:
                raise _garbled(result)
            self._wire.allow(_size_of_columns(result) + _size(_rows(result)))
        if self._error is None:
            self._take_rows(query.together)
        names, rows = await self._rows(query)
        end = await self._result()
        if end is None:
            raise Garbled("nothing at all")
        if end.status != self._status.PIPELINE_SYNC:
            raise _garbled(end)
        return ((), ()) if self._error is not None else (names, tuple(rows))

    async def _rows(self, query: Query) -> tuple[tuple[str, ...], list[Bytes]]:
        names: tuple[str, ...] = ()
        rows: list[Bytes] = []
        left = query.most_bytes
        while (result := await self._result()) is not None:
            if result.status in self._pieces:
                _check_width(result, query)
                found = _rows(result)
                size = _size(found)
                self._wire.allow(size)
                rows += found
                left -= size
                if left < 0 or len(rows) > query.most_rows:
                    bounds = f"{query.most_bytes:,} bytes or {query.most_rows:,} rows"
                    raise Unreachable(f"the server sends more than {bounds} for one query")
            elif result.status in {self._status.TUPLES_OK, self._status.COMMAND_OK}:
                names = self._names(result, query)
            elif result.status != self._status.PIPELINE_ABORTED or self._error is None:
                raise _garbled(result)
        return names, rows

    def _take_rows(self, together: int) -> None:
        from psycopg import NotSupportedError  # noqa: PLC0415

        with suppress(NotSupportedError):  # libpq before 17
            if together > 1:
                self._pg.set_chunked_rows_mode(together)
                return
        self._pg.set_single_row_mode()

    def _names(self, result: PGresult, query: Query) -> tuple[str, ...]:
        _check_width(result, query)
        self._wire.allow(_size_of_columns(result))
        return tuple([(result.fname(at) or b"").decode("utf-8", "replace") for at in range(result.nfields)])

    async def _result(self) -> PGresult | None:
        """None ends a query's results. An error is noted and skipped."""
        while True:
            if self._pg.is_busy():
                await self._arrived()
            result = self._pg.get_result()
            if result is None and self._pg.status != self._bad:
                return None
            is_error = result is not None and result.status == self._status.FATAL_ERROR
            if result is None or (is_error and not _state(result)):
                raise Unreachable(str(self._error or self._pg.get_error_message("utf-8") or "the connection is lost"))
            if not is_error:
                return result
            self._error = ServerError(_state(result), _message(result))

    async def _arrived(self) -> None:
        try:
            while self._pg.is_busy():
                await self._wire.exchange()
                consume(self._pg)
        except Unreachable:
            if self._error is None:
                raise
            raise Unreachable(str(self._error)) from None  # it has said why, and closed the connection

    def _begin(self) -> None:
        self._error = None
        self._wire.begin()


def consume(connection: PGconn) -> None:
    """Take what the server has sent. Raises Unreachable."""
    from psycopg import Error  # noqa: PLC0415

    try:
        for _ in range(_READS if connection.ssl_in_use else 1):
            connection.consume_input()
            if not connection.is_busy():
                return
    except Error as exc:
        raise Unreachable(str(exc)) from None


def _check_width(result: PGresult, query: Query) -> None:
    if query.width is not None and result.nfields != query.width:
        raise Garbled(f"rows of {result.nfields} columns, where the query has {query.width}")


def _rows(result: PGresult) -> list[Bytes]:
    get, width = result.get_value, range(result.nfields)
    return [tuple([get(at, column) for column in width]) for at in range(result.ntuples)]


def _size_of_columns(result: PGresult) -> int:
    return sum(len(result.fname(at) or b"") + _OF_COLUMN for at in range(result.nfields))


def _size(rows: Sequence[Bytes]) -> int:
    width = len(rows[0]) if rows else 0
    return (_OF_ROW + _OF_VALUE * width) * len(rows) + sum(map(len, filter(None, chain.from_iterable(rows))))


def _garbled(result: PGresult) -> Garbled:
    from psycopg.pq import ExecStatus  # noqa: PLC0415

    return Garbled(ExecStatus(result.status).name.lower().replace("_", " "))


def _state(result: PGresult) -> str:
    from psycopg.pq import DiagnosticField  # noqa: PLC0415

    return one_line((result.error_field(DiagnosticField.SQLSTATE) or b"")[:5].decode("ascii", "replace"))


def _message(result: PGresult) -> str:
    from psycopg.pq import DiagnosticField  # noqa: PLC0415

    primary = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b"an error without words"
    return primary.decode("utf-8", "replace")
