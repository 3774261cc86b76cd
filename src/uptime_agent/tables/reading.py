"""Read the tables over one connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from socket import socket
from typing import Final

from anyio.to_thread import run_sync

from timerqueue import Clock

from ..checks import Resolver
from ..libpq import Bytes, Connection, NoDriver, Query, ServerError, Unreachable
from ..postgres import Dialler
from ..text import printable
from .place import TablesPlace
from .rows import TableRow, row_of
from .schema import VERSION, listen_of, read_of

WITHIN: Final = 10.0
"""Seconds for all rows."""
COLUMNS: Final = 3
MOST_BYTES: Final = 8 * 1024 * 1024
MOST_ROWS: Final = 20_000

_MISSING: Final = ("42P01", "3F000")


class TablesUnread(Exception):
    """The tables cannot be read. The text says why."""


class TableReader:
    """A connection to the tables."""

    def __init__(self, place: TablesPlace, connection: Connection) -> None:
        self._place = place
        self._connection = connection

    @property
    def is_worn(self) -> bool:
        """Whether this connection should be replaced."""
        return self._connection.is_worn

    async def listen(self) -> None:
        """Subscribe to changes. Raises TablesUnread."""
        await self._asked(listen_of(self._place.schema))

    async def rows(self) -> list[TableRow]:
        """Return all rows of one instant, also unreadable rows. Raises TablesUnread."""
        found = await self._asked(read_of(self._place.schema), width=COLUMNS)
        rows = await run_sync(lambda: [row_of(*each) for each in found])
        versions = [row.values.get("version") for row in rows if row.table == "meta"]
        if versions != [VERSION]:
            have = printable(str(versions[:3]))
            raise TablesUnread(f"{self._place} have version {have}, this release knows {VERSION}")
        return [row for row in rows if row.table != "meta"]

    async def changed(self) -> None:
        """Wait for a change. Raises TablesUnread."""
        try:
            await self._connection.notified()
        except Unreachable as exc:
            raise TablesUnread(f"{self._place}: {exc}") from None

    async def _asked(self, sql: str, width: int = 0) -> Sequence[Bytes]:
        query = Query(sql.encode(), WITHIN, width=width, most_bytes=MOST_BYTES, most_rows=MOST_ROWS, together=1)
        try:
            answer = await self._connection.fetch(query)
        except ServerError as exc:
            advice = ": make them by `timerqueue tables FILE`" if exc.sqlstate in _MISSING else ""
            raise TablesUnread(f"{self._place}: {exc} ({exc.sqlstate}){advice}") from None
        except Unreachable as exc:
            raise TablesUnread(f"{self._place}: {exc}") from None
        except TimeoutError:
            raise TablesUnread(f"{self._place}: no answer within {WITHIN:g} s") from None
        return answer.rows


@asynccontextmanager
async def reader(place: TablesPlace, resolver: Resolver, clock: Clock) -> AsyncIterator[TableReader]:
    """Connect while the body runs. Raises TablesUnread."""
    left: list[socket] = []
    connection = None
    try:
        try:
            connection = await Dialler(place.server, resolver, clock).dial(None, left.append)
        except (Unreachable, NoDriver) as exc:
            raise TablesUnread(f"{place}: {exc}") from None
        yield TableReader(place, connection)
    finally:
        rest = None if connection is None else connection.leave()
        for each in (*left, *([] if rest is None else [rest])):
            each.close()
