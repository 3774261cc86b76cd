"""Which work may start: one capacity, named limits, lines of waiting work.

Work takes every unit it needs or holds none, so nothing deadlocks. Work with equal needs waits in one *line*, best rank
first. A line whose head could start is *open*. A line refused by a full limit is *parked* there, and costs others
nothing.

Within a limit a better-ranked line goes first, even if it needs more units. A line with several limits might never find
them free together. After `PATIENCE` refusals it reserves them: others take no units until it starts. One line reserves
at a time, and it holds no units, so nothing deadlocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from heapq import heappop, heappush
from itertools import islice
from typing import Final, Generic

from .._errors import UnknownLimit
from .limit import C, HeldUnits, Lender, LentLimit, Limit, LimitStatistics, Line
from .needs import Needs
from .plain_line import COMPACT_ABOVE, PlainLine, Rank

PATIENCE: Final = 8


class Limits(Generic[C]):
    def __init__(self, capacity: float, limits: Mapping[str, float]) -> None:
        self.capacity = capacity
        self.used = 0
        self._sizes = dict(limits)
        self._limits: dict[str, Limit] = {}
        self._lines: dict[Needs, Line[C]] = {}
        self.open_lines: list[tuple[Rank, Line[C]]] = []
        self._reserved: Line[C] | None = None
        self._lender: Lender | None = None
        self._lent: Collection[str] = ()
        self._rest: Collection[str] = ()
        self._begun: set[C] = set()
        self.plain: PlainLine[C] = PlainLine()
        """Work that needs capacity alone."""
        self.waiting = 0

    def check(self, needs: Needs) -> None:
        for name, units in needs:
            if units > self._size_of(name):
                msg = f"limit {name!r} has {self._size_of(name):g} units and never room for {units}"
                raise ValueError(msg)
            if self._lent and not name.isprintable() and self.is_lent(name):
                msg = f"limit {name!r} is shared with others, who know it by its name: that must be printable"
                raise ValueError(msg)

    def take(self, claim: C) -> bool:
        """Take all units needed, unless that overtakes other work. False: call `wait`."""
        if self.used >= self.capacity or self.open_lines or self.plain:
            return False
        if claim.needs:
            if self._reserved is not None:
                return False
            for name, units in claim.needs:
                limit = self._limit(name)
                if limit.parked or not limit.has_room(units):
                    return False
            self._hold(claim)
        self.used += 1
        return True

    def wait(self, claim: C, rank: Rank) -> None:
        self.waiting += 1
        if not claim.needs:
            self.plain.push(rank, claim)
            return
        line = self._lines.get(claim.needs)
        if line is None:
            line = self._lines[claim.needs] = Line(claim.needs)
        heappush(line.queue, (rank, claim))
        if rank < line.key:
            self._stand(line, line.place, rank)
            self._look_again(line.needs)

    def forget(self, claim: C) -> None:
        """Drop cancelled work (`is_waiting` is False). Call `admit` next."""
        self.waiting -= 1
        if not claim.needs:
            self.plain.cancelled()
            return
        line = self._lines[claim.needs]
        line.cancelled += 1
        if line.cancelled > COMPACT_ABOVE and line.cancelled * 2 > len(line.queue):
            line.compact()
        self._head_may_differ(line)

    def withdraw(self, claim: C) -> None:
        """Remove waiting work that may `wait` again. Walks along its line."""
        self.waiting -= 1
        if not claim.needs:
            self.plain.remove(claim)
            return
        line = self._lines[claim.needs]
        line.compact()
        self._head_may_differ(line)

    def _head_may_differ(self, line: Line[C]) -> None:
        head = line.head()
        if head is None:
            self._close(line)
        elif head != line.key:
            self._stand(line, line.place, head)
            self._look_again(line.needs)

    def give_back(self, claim: C) -> None:
        self.used -= 1
        if claim.needs:
            needs = claim.needs
            for name, _ in needs:
                self._limit(name).holders.pop(claim, None)
            if claim in self._begun:
                self._begun.discard(claim)
                needs = tuple(need for need in needs if not self.rests(need[0]))
            self.rested(needs)

    def begins(self, claim: C) -> Needs:
        """Return the work's paced units, which only `rested` gives back."""
        resting = tuple(need for need in claim.needs if self.rests(need[0]))
        if resting:
            self._begun.add(claim)
        return resting

    def rested(self, needs: Needs) -> None:
        """Return units to their limits. Call `admit` next."""
        for name, units in needs:
            self._limit(name).used -= units
        self._drop_idle_members(needs)
        self._look_again(needs)

    def admit(self) -> Iterator[C]:
        while self.used < self.capacity:
            if self.plain and (not self.open_lines or self.plain.head() < self.open_lines[0][0]):
                claim = self.next_plain()
            elif self.open_lines:
                claim = self._next_of_lines()
            else:
                return
            if claim is not None:
                yield claim

    def next_plain(self) -> C | None:
        """Start the best work that needs capacity alone. None: cancelled, or no work."""
        claim = self.plain.pop()
        if claim is not None:
            self.waiting -= 1
            self.used += 1
        return claim

    def pieces(self) -> int:
        """Count waiting work, pieces in bundles too. Any thread."""
        return self.waiting + sum(claim.size - 1 for claim in self.plain.works())

    def clear(self) -> list[C]:
        of_lines = [claim for line in self._lines.values() for _, claim in line.queue if claim.is_waiting]
        claims = [*self.plain.clear(), *of_lines]
        self._lines.clear()
        self.open_lines.clear()
        self._reserved = None
        self.waiting = 0
        for limit in self._limits.values():
            limit.parked.clear()
            limit.stranded.clear()
        return claims

    def resize(self, capacity: float | None, limits: Mapping[str, float]) -> None:
        if capacity is not None:
            self.capacity = capacity
        self._sizes.update(limits)
        self._reserved = None
        for name, limit in self._limits.items():
            limit.size = self._size_of(name)
        for limit in self._limits.values():
            for line in [*limit.stranded, *(line for _, line in limit.parked)]:
                if line.place is limit and line.queue:
                    self._stand(line, None, line.key)
            limit.stranded.clear()
            limit.parked.clear()

    def lend(self, names: Collection[str], lender: Lender) -> None:
        self._lent, self._lender = names, lender

    def let_rest(self, names: Collection[str]) -> None:
        self._rest = names

    def rests(self, name: str) -> bool:
        return bool(self._rest) and self._of(name) in self._rest

    def look_again(self, names: Collection[str]) -> None:
        self._look_again(tuple((name, 1) for name in names))

    def used_of(self, name: str) -> int:
        limit = self._limits.get(name)
        return 0 if limit is None else limit.used

    def held(self, name: str, most: int) -> HeldUnits[C]:
        """Return how the units of a limit are held now. Any thread."""
        limit = self._limits.get(name)
        if limit is None:
            return HeldUnits(self._size_of(name), 0)
        holders = limit.holders
        try:
            some = tuple(islice(holders, most))
        except RuntimeError:  # another thread has changed it meanwhile: a copy takes longer, if many hold units
            some = tuple(islice(holders.copy(), most))
        return HeldUnits(limit.size, limit.used, some, len(holders))

    def ahead(self, needs: Needs) -> int:
        """Count the work of a line but its last. Any thread."""
        line = self._lines.get(needs)
        return 0 if line is None else max(0, len(line.queue) - line.cancelled - 1)

    def place_of(self, needs: Needs) -> str | None:
        """Return the limit that holds up waiting work with these needs. None: no named limit does. Any thread."""
        line = self._lines.get(needs)
        place = None if line is None else line.place
        return next((name for name, _ in needs if place is not None and self._limits.get(name) is place), None)

    def waiting_for_lent(self, most: int) -> Iterator[tuple[Needs, list[Rank], int]]:
        """Yield the lines that only lent limits hold up: needs, first `most` ranks, and length, cancelled included."""
        for line in self._lines.values():
            place = line.place
            is_held_up = place is not None and not isinstance(place, LentLimit)
            if not is_held_up and any(self.is_lent(name) for name, _ in line.needs):
                yield line.needs, line.best(most), len(line.queue)

    def held_up(self) -> int:
        return sum(len(line.queue) - line.cancelled for line in self._lines.values() if line.place is not None)

    def is_lent(self, name: str) -> bool:
        return bool(self._lent) and self._of(name) in self._lent

    def statistics(self) -> dict[str, LimitStatistics]:
        named = {
            name: LimitStatistics(size, 0, 0) for name, size in list(self._sizes.items()) if not name.endswith(":*")
        }
        for name, limit in list(self._limits.items()):  # a copy: any thread may ask
            lines = {id(line): line for line in [*limit.stranded, *(line for _, line in limit.parked)]}
            waiting = sum(line.count() for line in lines.values() if line.place is limit)
            family = _family_of(name) if limit.is_family_member else None
            named[name] = LimitStatistics(limit.size, limit.used, waiting, family)
        return named

    def _next_of_lines(self) -> C | None:
        key, line = heappop(self.open_lines)
        if not line.stands_at(None, key):
            return None
        head = line.head()
        if head is None:
            self._close(line)
        elif head != key:
            self._stand(line, None, head)
        elif (full := self._first_refusal(line, head)) is not None:
            self._park(line, full, head)
        else:
            return self._start_head(line)
        return None

    def _of(self, name: str) -> str:
        return name if name in self._sizes else f"{name.partition(':')[0]}:*"

    def _size_of(self, name: str) -> float:
        size = self._sizes.get(name)
        if size is None:
            size = self._sizes.get(_family_of(name))
        if size is None:
            known = ", ".join(sorted(self._sizes)) or "none"
            msg = f"there is no limit {name!r}; known: {known}. Add it to limits= or correct the name"
            raise UnknownLimit(msg)
        return size

    def _limit(self, name: str) -> Limit:
        limit = self._limits.get(name)
        if limit is None:
            limit = self._limits[name] = self._new_limit(name)
        return limit

    def _new_limit(self, name: str) -> Limit:
        size, is_member = self._size_of(name), name not in self._sizes
        if self._lender is not None and self.is_lent(name):
            return LentLimit(size, is_member, name=name, lender=self._lender)
        return Limit(size, is_member)

    def _hold(self, claim: C) -> None:
        for name, units in claim.needs:
            limit = self._limit(name)
            limit.used += units
            limit.holders[claim] = None

    def _drop_idle_members(self, needs: Needs) -> None:
        for name, _ in needs:
            limit = self._limits.get(name)
            if limit is not None and limit.is_family_member and limit.is_idle():
                del self._limits[name]

    def _first_refusal(self, line: Line[C], head: Rank) -> Limit | None:
        for name, units in line.needs:
            limit = self._limit(name)
            if not limit.has_room(units) or self._is_held_for_another(line, name):
                return limit
            best = limit.best_parked()
            if best is not None and best < head and line is not self._reserved:
                return limit
        return None

    def _is_held_for_another(self, line: Line[C], name: str) -> bool:
        reserved = self._reserved
        return reserved is not None and reserved is not line and any(name == need for need, _ in reserved.needs)

    def _park(self, line: Line[C], limit: Limit, head: Rank) -> None:
        line.refusals += 1
        is_passed_over = line.refusals >= PATIENCE and len(line.needs) > 1
        if is_passed_over and self._reserved is None and not self._is_stranded(line):
            self._reserved = line
        self._stand(line, limit, head)
        self._look_again(line.needs)

    def _is_stranded(self, line: Line[C]) -> bool:
        return any(units > self._limit(name).size for name, units in line.needs)

    def _start_head(self, line: Line[C]) -> C:
        _, claim = heappop(line.queue)
        self.waiting -= 1
        self.used += 1
        self._hold(claim)
        line.refusals = 0
        if self._reserved is line:
            self._reserved = None
            self._look_again(line.needs)
        head = line.head()
        if head is None:
            self._close(line)
        else:
            self._stand(line, None, head)
        return claim

    def _stand(self, line: Line[C], place: Limit | None, key: Rank) -> None:
        line.place, line.key = place, key
        if place is None:
            heappush(self.open_lines, (key, line))
        elif any(self._limits.get(name) is place and units > place.size for name, units in line.needs):
            place.stranded.append(line)
        else:
            heappush(place.parked, (key, line))

    def _look_again(self, needs: Needs) -> None:
        for name, _ in needs:
            limit = self._limits.get(name)
            line = None if limit is None else self._whose_turn(limit)
            if limit is None or line is None or self._is_held_for_another(line, name):
                continue
            if limit.has_room(dict(line.needs)[name]):
                self._stand(line, None, line.key)

    def _whose_turn(self, limit: Limit) -> Line[C] | None:
        if self._reserved is not None and self._reserved.place is limit:
            return self._reserved
        return None if limit.best_parked() is None else limit.parked[0][1]

    def _close(self, line: Line[C]) -> None:
        del self._lines[line.needs]
        if self._reserved is line:
            self._reserved = None
        self._look_again(line.needs)
        self._drop_idle_members(line.needs)


def _family_of(name: str) -> str:
    return f"{name.partition(':')[0]}:*"
