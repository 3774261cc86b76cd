"""Wishes: the work that waits in lines here, as the store learns of it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from timerqueue import Needs

from ...stores import Wish

Line = tuple[Needs, list[float], int]
"""Work that waits with the same needs: the ranks of the first, and the number of all."""


def wishes_of(
    lines: Iterable[Line], idle: Mapping[str, int], is_lent: Callable[[str], bool]
) -> dict[str, list[tuple[float, int]]]:
    """Return how many units, of which rank, work waits for at each lent limit, best first. Pure.

    Work that needs several limits wishes for them one after another, in the same order everywhere: members of families
    first. So two nodes never hold units that each other waits for.
    """
    works: list[tuple[float, Needs, int]] = []
    for needs, ranks, count in lines:
        wanted = tuple(sorted((need for need in needs if is_lent(need[0])), key=_is_wanted_first))
        works += [(rank, wanted, 1) for rank in ranks]
        if ranks and count > len(ranks):
            works.append((ranks[-1], wanted, count - len(ranks)))
    left = dict(idle)
    wishes: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for rank, wanted, times in sorted(works):
        there = times
        for name, units in wanted:
            wishes[name].append((rank, units * there))
            got = max(0, min(left.get(name, 0), units * there))
            left[name] = left.get(name, 0) - got
            there = got // units
            if not there:
                break
    return dict(wishes)


def bounded(wishes: Iterable[Wish], size: int) -> tuple[Wish, ...]:
    """Return the first wishes, up to the size of one limit."""
    found: list[Wish] = []
    for wish in wishes:
        if size <= 0:
            break
        found.append(wish._replace(units=min(wish.units, size)))
        size -= wish.units
    return tuple(found)


def _is_wanted_first(need: tuple[str, int]) -> tuple[bool, str]:
    return ":" not in need[0], need[0]
