"""The seam behind which the units of limits that are the fleet's are lent to its agents.

A limit of N is N numbered units, never a counter: a unit is lent to one agent at a time, and stands in the store under
the epoch of that incarnation for as long as it is lent. A living agent gives its units back itself. Those of a dead one
stay lent until the end of its last lease, by the store's clock: until then its runs may still go on somewhere.

A limit on the pace is a limit of N whose units rest: with each, work begins once in a window. One that rests is in use;
those of a dead agent rest from the end of its lease on, for until then it may have begun work with them.

Agents speak in rounds. In each an agent says how many units it uses, and who waits there for more since when; the store
is read, `decide` says from that what the agent takes and gives back, and the rows are written, all in one transaction:

    a free unit        -> goes to the earliest wish of all agents; an agent takes only what is free and its own turn
    an idle unit       -> counts as free in its holder's round
    a unit in use      -> is owed to clearly earlier wishes of others: it goes back when its run has ended

Each round says everything anew, and has a number that rises, so one whose answer was lost, and one that comes late,
does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil, inf
from typing import Final, NamedTuple, Protocol

from attrs import frozen

MOST_UNITS: Final = 10_000
"""Units of one limit at most: each is a row while it is lent."""

FRESH: Final = 1.0
"""Seconds for which a wish counts: who does not repeat it does not look for its units either."""


CLEARLY_US: Final = 400_000
"""Microseconds by which work has to have waited longer than the holder's own next before the holder owes it a unit that
is in use: to hand on a unit costs about as much as a short run, and agents in a crowd would do little else.
"""


class Wish(NamedTuple):
    """The wish for `units` by work that has waited since it was due, in UTC microseconds."""

    due_us: int
    units: int


@frozen
class Ask:
    """An agent's part in a round of one limit.

    `size`: how many units the limit has, as this agent was told. `used`: those that run there. `wishes`: those that
    wait, best first, also for units that the agent holds and that are idle. `keeps`: so many
    idle units may stay while nobody waits for them anywhere. `is_news`: nobody lacked any before. `window`: in seconds,
    of a limit on the pace: of `used` are those, too, with which work has begun no longer ago. 0: it is none.
    """

    size: int
    used: int
    wishes: tuple[Wish, ...] = ()
    keeps: int = 0
    is_news: bool = False
    window: float = 0.0


@frozen
class Lent:
    """An agent's part of one limit after a round.

    `held`: its units. `owed`: as many of those that are in use others get when their runs have ended. `size`: how many
    units the limit has, by the lowest word of all agents. `lacks`: how many it has wished for and not got. `window`: by
    the longest word of all agents.
    """

    held: int
    owed: int
    size: int
    lacks: int = 0
    window: float = 0.0


@frozen
class Books:
    """A limit as the store has it. `size`: by the lowest word of all agents. `units`: those that are lent, by their
    numbers, with the epochs of who has them. `wishes`: of others, by their epochs, those that are fresh. `window`: by
    the longest word of all agents.
    """

    size: int
    units: Mapping[int, int]
    wishes: Mapping[int, Sequence[Wish]]
    window: float = 0.0


@frozen
class Decision:
    """The outcome of a round for one agent: numbers of units, and what it has then."""

    takes: Sequence[int]
    gives: Sequence[int]
    lent: Lent
    is_to_be_told: bool
    """Others are to hear of it at once: that somebody waits, or that what they wait for may be there."""


@frozen(kw_only=True)
class Loan:
    """The units of one limit that one agent has, for people. `agent`: its name; None: it is dead, and they are free
    once `left` seconds have passed.
    """

    limit: str
    epoch: int
    agent: str | None
    units: int
    size: int | None
    waiting: int
    left: float | None


def decide(me: int, asked: Ask, books: Books) -> Decision:
    """Decide what an agent takes and gives back in a round of one limit. Pure."""
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
    """How many units are ours if so many go to these wishes in their order, and how many are still lacking to others
    that have waited clearly longer than the first of ours that gets less than it wants.
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
    """The verbs by which units are lent. All are synchronous, and raise what those of a Store raise.

    One thread at a time calls `declare`, `round` and `give_back`; any calls `loans`.
    """

    @property
    def epoch(self) -> int:
        """Our incarnation; 0: the store is not open. Any thread."""

    def declare(self, sizes: Mapping[str, int], windows: Mapping[str, float]) -> None:
        """Say with the next round which limits of the fleet we know, families too, how many units each has, and in
        which window if they limit the pace. The lowest word of all living agents holds, and the longest window.
        """

    def hear(self, hint: Callable[[], None]) -> None:
        """Have `hint` called, from any thread, when others wait for units or have given back some. It may be lost."""

    def round(self, asked: Mapping[str, Ask]) -> Mapping[str, Lent]:
        """Carry out a round of these limits. Raises StoreTakenOver if we have been buried: we have no units then.

        It may have been carried out although its answer was lost. An earlier round that comes after a later one does
        nothing.
        """

    def give_back(self) -> None:
        """Give back all that we have, at the end, when nothing of us runs any more. What limits the pace is free after
        its window.
        """

    def loans(self) -> Collection[Loan]:
        """Return who has how many units, and how many wait, for people."""
