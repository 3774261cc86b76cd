"""Wishes: waiting work, as the store learns of it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from timerqueue import Needs

from ...stores import Wish

Line = tuple[Needs, list[float], int]
"""Waiting work with the same needs: the first ranks, and the number of all."""


def wishes_of(
    lines: Iterable[Line], idle: Mapping[str, int], is_lent: Callable[[str], bool]
) -> dict[str, list[tuple[float, int]]]:
    """Return for how many units, of which rank, work waits at each lent limit, best first.

    Families come first everywhere, so two nodes never wait for each other's units.
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
    found: list[Wish] = []
    for wish in wishes:
        if size <= 0:
            break
        found.append(wish._replace(units=min(wish.units, size)))
        size -= wish.units
    return tuple(found)


def _is_wanted_first(need: tuple[str, int]) -> tuple[bool, str]:
    return ":" not in need[0], need[0]
