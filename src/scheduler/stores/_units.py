"""The protocol by which the units of the fleet's limits are lent to its nodes.

A limit of N is N numbered units, never a counter. A unit is lent to one node at a time, and is in the store under that
incarnation's epoch while it is lent. A living node gives its units back itself. A dead node's runs may still go on
somewhere until the end of its last lease. So its units stay lent until then, by the store's clock.

A limit on the pace is a limit of N whose units rest: with each, work begins once in a window. A resting unit is in use.
A dead node's units rest from the end of its lease on: until then it may have begun work with them.

Nodes speak in rounds. In each a node says how many units it uses, and since when more work waits there. The store is
read, `decide` says from that what the node takes and gives back, and the rows are written, all in one transaction:

    a free unit        -> goes to the earliest wish of all nodes; a node takes only what is free and its own turn
    an idle unit       -> counts as free in its holder's round
    a unit in use      -> is owed to clearly earlier wishes of others: it goes back when its run has ended

Each round says everything again and has a rising number. So a lost answer, or a late round, does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil, inf
from typing import Final, NamedTuple, Protocol

from attrs import frozen

MOST_UNITS: Final = 10_000
"""The most units of one limit: each is a row while it is lent."""

FRESH: Final = 1.0
"""Seconds for which a wish counts. A node that does not repeat it does not look for its units either."""


CLEARLY_US: Final = 400_000
"""Microseconds by which work must have waited longer than the holder's own next work to get a unit in use.

Handing a unit over costs about as much as a short run, and crowded nodes would do little else.
"""


class Wish(NamedTuple):
    """The wish for `units` by work that has waited since it was due, in UTC microseconds."""

    due_us: int
    units: int


@frozen
class Ask:
    """A node's part in a round of one limit.

    `size`: how many units the limit has, as this node was told. `used`: units of running work. `wishes`: of waiting
    work, best first, also for idle units that the node holds. `keeps`: how many idle units may stay while no work waits
    for them anywhere. `is_news`: no work lacked any before. `window`: in seconds, of a limit on the pace; 0: it is
    none. `used` then includes units with which work has begun within the window.
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

    `held`: its units. `owed`: how many units in use others get when their runs have ended. `size`: the smallest number
    of units that any node named. `lacks`: how many units it has wished for and not got. `window`: the longest that any
    node named.
    """

    held: int
    owed: int
    size: int
    lacks: int = 0
    window: float = 0.0


@frozen
class Books:
    """A limit as the store has it. `size`: the smallest that any node named. `window`: the longest.

    `units`: the lent units, by their numbers, with the epochs of their holders. `wishes`: the fresh wishes of other
    nodes, by their epochs.
    """

    size: int
    units: Mapping[int, int]
    wishes: Mapping[int, Sequence[Wish]]
    window: float = 0.0


@frozen
class Decision:
    """The outcome of a round for one node: numbers of units, and what it has then."""

    takes: Sequence[int]
    gives: Sequence[int]
    lent: Lent
    is_to_be_told: bool
    """Tell other nodes at once that work waits, or that units they wait for may be there."""


@frozen(kw_only=True)
class Loan:
    """The units of one limit that one node has, for people.

    `agent`: its name; None: it is dead, and the units are free once `left` seconds have passed.
    """

    limit: str
    epoch: int
    agent: str | None
    units: int
    size: int | None
    waiting: int
    left: float | None


def decide(me: int, asked: Ask, books: Books) -> Decision:
    """Decide what a node takes and gives back in a round of one limit. Pure."""
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
    """Return our units if `room` units go to the wishes in their order, and how many others lack.

    Only others count that have waited clearly longer than our first wish that is not fulfilled.
    """
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
    """The verbs by which units are lent. Synchronous. Each raises what Store's verbs raise.

    One thread at a time calls `declare`, `round` and `give_back`; any calls `loans`.
    """

    @property
    def epoch(self) -> int:
        """Our incarnation; 0: the store is not open. Any thread."""

    def declare(self, sizes: Mapping[str, int], windows: Mapping[str, float]) -> None:
        """Say with the next round which limits of the fleet we know, families included, and how many units each has.

        `windows`: for limits on the pace. The smallest size of all living nodes holds, and the longest window.
        """

    def hear(self, hint: Callable[[], None]) -> None:
        """Call `hint`, from any thread, when others wait for units or have given some back. The call may be lost."""

    def round(self, asked: Mapping[str, Ask]) -> Mapping[str, Lent]:
        """Carry out a round of these limits. Raises StoreTakenOver if we were buried: we have no units then.

        It may have been carried out although its answer was lost. An earlier round that comes after a later one does
        nothing.
        """

    def give_back(self) -> None:
        """Give back all units at the end, when none of our runs is left. Paced units are free after their window."""

    def loans(self) -> Collection[Loan]:
        """Return which node has how many units, and how many wait, for people."""
