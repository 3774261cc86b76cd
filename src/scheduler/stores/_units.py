"""The protocol that lends the units of the fleet's limits to its nodes.

A limit of N is N numbered units, each lent to one epoch at a time. A dead node's units stay lent until its last lease
ends by the store's clock, because its runs may go on. A unit of a limit on the pace begins work once per window, then
rests, in use. A dead node's units rest from the end of its lease.

In a round, a node says how many units it uses and since when more work waits. One transaction reads the store, calls
`decide`, and writes the rows:

    a free unit        -> goes to the earliest wish of all nodes; each node takes only its own
    an idle unit       -> counts as free in its holder's round
    a unit in use      -> is owed to clearly earlier wishes of others: returned when its run ends

Each round repeats everything under a rising number, so a lost answer or a late round does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil, inf
from typing import Final, NamedTuple, Protocol

from attrs import frozen

MOST_UNITS: Final = 10_000
"""The most units of one limit. Each lent unit is a row."""

FRESH: Final = 1.0
"""Seconds for which a wish counts."""


CLEARLY_US: Final = 400_000
"""Microseconds by which others' work must wait longer to get a unit in use. Passing it on costs a short run."""


class Wish(NamedTuple):
    """Units wanted by work due at this instant."""

    due_us: int
    units: int


@frozen
class Ask:
    """A node's part in a round of one limit.

    `used`: units of running work, or that began work within the window. `wishes`: of waiting work, best first, the
    node's idle units included. `keeps`: idle units that may stay while no work waits anywhere. `is_news`: no work
    lacked units before. `window`: seconds, for a limit on the pace.
    """

    size: int
    used: int
    wishes: tuple[Wish, ...] = ()
    keeps: int = 0
    is_news: bool = False
    window: float = 0.0


@frozen
class Lent:
    """A node's part of one limit after a round.

    `owed`: units in use that go to others after their runs. `size`: the smallest that any node named. `lacks`: wishes
    not granted. `window`: the longest that any node named.
    """

    held: int
    owed: int
    size: int
    lacks: int = 0
    window: float = 0.0


@frozen
class Books:
    """A limit as stored. `units`: epochs by unit number. `wishes`: others' fresh wishes by epoch."""

    size: int
    units: Mapping[int, int]
    wishes: Mapping[int, Sequence[Wish]]
    window: float = 0.0


@frozen
class Decision:
    takes: Sequence[int]
    gives: Sequence[int]
    lent: Lent
    is_to_be_told: bool
    """Notify other nodes: work waits, or units may be free."""


@frozen(kw_only=True)
class Loan:
    """One node's units of one limit. `agent` None: dead; its units are free in `left` seconds."""

    limit: str
    epoch: int
    agent: str | None
    units: int
    size: int | None
    waiting: int
    left: float | None


def decide(me: int, asked: Ask, books: Books) -> Decision:
    """Decide what a node takes and gives back. Pure."""
    mine = sorted(number for number, epoch in books.units.items() if epoch == me)
    used = min(asked.used, len(mine))
    others_wish = any(books.wishes.values())
    room = books.size - len(books.units) + len(mine) - used
    wishes = sorted(
        [(wish, me) for wish in asked.wishes]
        + [(wish, epoch) for epoch, theirs in books.wishes.items() for wish in theirs],
        key=lambda each: (each[0].due_us, each[1]),
    )
    won, before = _shared_out(max(0, room), wishes, me)
    unwanted = max(0, room - sum(wish.units for wish, _ in wishes))
    won += max(0, min(asked.keeps - won, len(mine) - used - won, unwanted))
    lacks = max(0, sum(wish.units for wish in asked.wishes) - won)
    held = used + won
    before += max(0, -room)
    owed = min(used, ceil(before * used / max(1, len(books.units))))
    free = (number for number in range(1, books.size + 1) if number not in books.units)
    takes = [number for number, _ in zip(free, range(held - len(mine)), strict=False)]
    return Decision(
        takes=takes,
        gives=mine[held:],
        lent=Lent(min(held, len(mine) + len(takes)), owed, books.size, lacks, books.window),
        is_to_be_told=bool((others_wish and mine[held:]) or (asked.is_news and lacks)),
    )


def _shared_out(room: int, wishes: Iterable[tuple[Wish, int]], me: int) -> tuple[int, int]:
    """Return our share of `room` units, and the lack of others who clearly waited longer."""
    won, first_of_ours = 0, inf
    lacking: list[Wish] = []
    for wish, epoch in wishes:
        got = min(room, wish.units)
        room -= got
        if epoch == me:
            won += got
        if got == wish.units:
            continue
        if epoch != me:
            lacking.append(wish._replace(units=wish.units - got))
        elif first_of_ours == inf:
            first_of_ours = wish.due_us
    return won, sum(wish.units for wish in lacking if wish.due_us + CLEARLY_US < first_of_ours)


class Lending(Protocol):
    """The methods that lend units. Synchronous; they raise like Store.

    One thread at a time calls `declare`, `round` and `give_back`; any thread calls `loans`.
    """

    @property
    def epoch(self) -> int:
        """Our incarnation; 0: not open. Any thread."""

    def declare(self, sizes: Mapping[str, int], windows: Mapping[str, float]) -> None:
        """Announce, with the next round, the sizes of the fleet's limits and families.

        `windows`: for limits on the pace. The smallest size and longest window of living nodes win.
        """

    def hear(self, hint: Callable[[], None]) -> None:
        """Call `hint`, from any thread, when others want or return units. It may be lost."""

    def round(self, asked: Mapping[str, Ask]) -> Mapping[str, Lent]:
        """Carry out a round. Raises StoreTakenOver if we were buried: we have no units then.

        It may have succeeded without an answer. A late round does nothing.
        """

    def give_back(self) -> None:
        """Give back all units after our last run. Paced units first rest."""

    def loans(self) -> Collection[Loan]:
        """Return each node's units and waiting work."""
