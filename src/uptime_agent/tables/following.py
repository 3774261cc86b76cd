"""Follow the tables: read them at the start, at triggers, and every few seconds.

It listens before it reads, to miss nothing. While the database is away, the last rows or their copy hold.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import anyio
from anyio.to_thread import run_sync
from attrs import field, frozen

from timerqueue import Clock

from ..checks import Resolver
from ..postgres import Layer, PostgresTarget
from .copy import read_back, written
from .place import TablesPlace
from .reading import TableReader, TablesUnread, reader
from .rows import Known, TableRow, taken_in, targets_of

AGAIN_AFTER: Final = 1.0
"""Seconds between attempts to connect."""
REST: Final = 0.2
"""Seconds between readings, at least."""
MOST_TOLD: Final = 20


@frozen
class FoundRows:
    """The valid rows. `wrong`: mistakes in others."""

    known: Known = field(factory=dict)
    wrong: tuple[str, ...] = ()

    def targets(self, around: tuple[Layer, ...]) -> tuple[PostgresTarget, ...]:
        """The servers, each with its scopes. `around`: outer scopes."""
        return targets_of(self.known, around)


async def read_once(place: TablesPlace, resolver: Resolver, clock: Clock, named: Collection[str] = ()) -> FoundRows:
    """Read the tables once. Raises TablesUnread."""
    async with reader(place, resolver, clock) as opened:
        known, wrong = await _judged(await opened.rows(), {}, place, named)
    return FoundRows(known, tuple(wrong))


class Tables:
    """Follows tables. `say` gets messages. `named`: servers in the file."""

    def __init__(
        self,
        place: TablesPlace,
        resolver: Resolver,
        clock: Clock,
        *,
        follow: Callable[[FoundRows], Awaitable[None]],
        say: Callable[[str], None],
        named: Callable[[], Collection[str]],
    ) -> None:
        self._place = place
        self._resolver = resolver
        self._clock = clock
        self._follow = follow
        self._say = say
        self._named = named
        self._found: FoundRows | None = None
        self._is_away = False

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                async with reader(self._place, self._resolver, self._clock) as opened:
                    await opened.listen()
                    while not opened.is_worn:
                        await self._read(opened)
                        with anyio.move_on_after(self._place.poll):
                            await opened.changed()
                        await self._clock.sleep(REST)
            except TablesUnread as exc:
                await self._lost(str(exc))
            await self._clock.sleep(AGAIN_AFTER)

    async def _read(self, opened: TableReader) -> None:
        before = self._found or FoundRows()
        rows, named = await opened.rows(), self._named()
        known, wrong = await _judged(rows, before.known, self._place, named)
        if self._is_away:
            self._is_away = False
            self._say(f"{self._place} can be read again")
        known_wrong = frozenset(before.wrong)
        self._tell([each for each in wrong if each not in known_wrong])
        if self._found is None or known != before.known:
            await self._keep(known)
            self._found = FoundRows(known, tuple(wrong))
            await self._follow(self._found)
        else:
            self._found = FoundRows(before.known, tuple(wrong))

    def _tell(self, wrong: Sequence[str]) -> None:
        for each in wrong[:MOST_TOLD]:
            self._say(f"a row of {self._place} is not used: {each}")
        if len(wrong) > MOST_TOLD:
            self._say(f"{len(wrong) - MOST_TOLD:,} more rows of {self._place} are not used")

    async def _lost(self, reason: str) -> None:
        if self._is_away:
            return
        self._is_away = True
        if self._found is not None:
            self._say(f"{reason}; what was read last holds on")
            return
        kept = None if self._place.copy is None else await run_sync(read_back, self._place.copy, self._place.origin)
        if kept is None:
            self._say(f"{reason}; there is no copy of them, so none of their servers is probed until they can be read")
            return
        rows, at = kept
        known, wrong = await _judged(rows, {}, self._place, self._named())
        self._found = FoundRows(known, tuple(wrong))
        instant = datetime.fromtimestamp(at, UTC).isoformat(sep=" ", timespec="seconds")
        self._say(f"{reason}; their copy of {instant} holds until then")
        await self._follow(self._found)

    async def _keep(self, known: Known) -> None:
        if self._place.copy is None:
            return
        rows = [each.row for each in known.values()]
        try:
            await run_sync(written, self._place.copy, self._place.origin, rows, self._clock.wall())
        except OSError as exc:
            self._say(f"{self._place.copy}: the rows of {self._place} cannot be kept: {exc.strerror or exc}")


async def _judged(
    rows: Iterable[TableRow], known: Known, place: TablesPlace, named: Collection[str]
) -> tuple[Known, list[str]]:
    """Judge rows in a thread: libpq reads 1,000 dsn a second, and checks go on meanwhile."""
    return await run_sync(taken_in, rows, known, place, named)
