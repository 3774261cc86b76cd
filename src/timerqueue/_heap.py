"""TimerHeap: entries in order of due times. Pure: callers pass the time.

Emptying a heap of 100,000 single entries costs about 4 us each, nearly all cache misses. So this heap holds unsorted
*slots* of a sixteenth of a second. When a slot is due, C code sorts it once into the opened list.

Three rules, held by tests/timerqueue/test_heap.py:
- An entry's due time never changes while the opened list refers to it.
- Sorting is stable and insertion goes after equals, so ties keep the order of pushes.
- Cancelling removes an entry that is quickly found, else marks it. Marks go when the slot opens, or when they outnumber
  live entries.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort_right
from collections.abc import Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

SLOT_WIDTH: Final = 0.0625
"""Seconds. Idle jobs share slots, and sorting 100,000 entries a second stalls no task."""

SMALL: Final = 64
"""Largest closed slot searched for a cancelled entry."""

NEAR: Final = 2_048
"""Most entries that move up when one is removed."""

# Values of `Entry.slot` other than the number of a slot.
OUT: Final = float("-inf")
"""Never pushed, cancelled, or fired."""
GHOST: Final = float("inf")
"""Cancelled, but still in the opened list."""

_due_of = attrgetter("due")


class Entry:
    """An entry of at most one TimerHeap, which alone writes `due` (seconds)."""

    __slots__ = ("due", "slot")

    def __init__(self) -> None:
        self.due = 0.0
        self.slot = OUT

    @property
    def is_waiting(self) -> bool:
        return self.slot != OUT and self.slot != GHOST  # noqa: PLR1714 - twice as fast, on every timer


_NOBODY: Final[Any] = Entry()

E = TypeVar("E", bound=Entry)


class TimerHeap(Generic[E]):
    """Entries by due time; ties keep the order of pushes. Not thread-safe.

    push: O(1) for a future slot, O(log n) for an open one. cancel: O(1). pop_due: O(log n) and a slice. Sorting adds
    O(log n) per entry, in C.
    """

    def __init__(self, slot_width: float = SLOT_WIDTH) -> None:
        self._width = slot_width
        self._numbers: list[float] = []  # heapq of the numbers of closed slots
        self._slots: dict[float, list[E]] = {}
        self._opened: list[E] = []  # sorted by due
        self._opened_until = OUT  # number of the newest slot opened so far
        self._live = 0
        self._marks = 0  # references to entries that were cancelled or pushed again elsewhere

    def __len__(self) -> int:
        return self._live

    def push(self, entry: E, due: float) -> None:
        """Add `entry`. Raises ValueError if it waits already: use `reschedule`."""
        if entry.slot != OUT:
            if entry.slot != GHOST:
                msg = f"{entry!r} is waiting already: reschedule it"
                raise ValueError(msg)
            self._expel(entry)
        entry.due = due
        number = due // self._width
        entry.slot = number
        self._live += 1
        if number <= self._opened_until:
            insort_right(self._opened, entry, key=_due_of)
        elif (slot := self._slots.get(number)) is not None:
            slot.append(entry)
        else:
            self._slots[number] = [entry]
            heappush(self._numbers, number)

    def push_all(self, entries: Sequence[E], dues: Sequence[float]) -> None:
        width, slots, known, slot = self._width, self._slots, OUT, None
        for entry, due in zip(entries, dues, strict=True):
            number = due // width
            if number != known:  # an open slot is not in `_slots`
                known, slot = number, slots.get(number)
            if slot is None or entry.slot != OUT:
                self.push(entry, due)
                self._live -= 1
                slot = slots.get(number)
            else:
                entry.due = due
                entry.slot = known  # one float object for all of them
                slot.append(entry)
        self._live += len(entries)

    def cancel(self, entry: E) -> bool:
        number = entry.slot
        if number in (OUT, GHOST):
            return False
        self._live -= 1
        if number <= self._opened_until:
            entry.slot = GHOST
            self._marks += 1
        else:
            entry.slot = OUT
            self._take_out(entry, self._slots[number])
        if self._marks > self._live:
            self._compact()
        return True

    def reschedule(self, entry: E, due: float) -> bool:
        """Move to `due`, after entries due then. False if it was not waiting."""
        if not self.cancel(entry):
            return False
        self.push(entry, due)
        return True

    def pop_due(self, now: float, at_most: int | None = None) -> list[E]:
        while self._numbers and self._numbers[0] * self._width <= now:
            self._open_next_slot()
        batch: list[E] = []
        while part := self._cut_due(now, None if at_most is None else at_most - len(batch)):
            batch += part if not self._marks else [entry for entry in part if not self._forget_ghost(entry)]
        for entry in batch:
            entry.slot = OUT
        self._live -= len(batch)
        return batch

    def next_due(self) -> float | None:
        """A time before which no entry is due (after a cancel perhaps too early); None if empty."""
        self._drop_leading_ghosts()
        if self._opened:
            return self._opened[0].due
        if not self._live:
            return None
        number = self._numbers[0]
        entries = self._slots[number]
        if self._marks:
            entries = [entry for entry in entries if entry.slot == number]
        return min(entries, key=_due_of).due if entries else number * self._width

    def _cut_due(self, now: float, at_most: int | None) -> list[E]:
        opened = self._opened
        if not opened or opened[0].due > now:
            return []
        end = bisect_right(opened, now, key=_due_of)
        if at_most is not None:
            end = min(end, at_most)
        part = opened[:end]
        del opened[:end]
        return part

    def _take_out(self, entry: E, slot: list[E]) -> None:
        count = len(slot)
        if count == 1:  # the slot must not be empty: its number is in `_numbers`
            slot[0] = _NOBODY
            self._marks += 1
        elif slot[-1] is entry:  # cancelled soon after its push
            slot.pop()
        elif slot[index := bisect_left(slot, entry.due, max(0, count - NEAR), count - 1, key=_due_of)] is entry:
            del slot[index]
        elif count <= SMALL:
            slot.remove(entry)
        else:
            self._marks += 1

    def _drop_leading_ghosts(self) -> None:
        count = 0
        for entry in self._opened:
            if not self._forget_ghost(entry):
                break
            count += 1
        del self._opened[:count]

    def _open_next_slot(self) -> None:
        number = heappop(self._numbers)
        entries = self._slots.pop(number)
        self._opened_until = number
        if self._marks:
            entries = self._without_marks(entries, number)
        entries.sort(key=_due_of)
        self._opened += entries

    def _without_marks(self, entries: list[E], number: float) -> list[E]:
        """Drop cancelled and moved entries. An entry pushed again counts from its last push."""
        if len(entries) == 1:  # most slots, when entries are few or intervals long
            if entries[0].slot == number:
                return entries
            self._marks -= 1
            return []
        newest_first = dict.fromkeys(entry for entry in reversed(entries) if entry.slot == number)
        kept = list(newest_first)
        kept.reverse()
        self._marks -= len(entries) - len(kept)
        return kept

    def _forget_ghost(self, entry: E) -> bool:
        if entry.slot != GHOST:
            return False
        entry.slot = OUT
        self._marks -= 1
        return True

    def _expel(self, entry: E) -> None:
        """Remove a cancelled entry from the opened list: its due time will change."""
        index = self._opened.index(entry, bisect_left(self._opened, entry.due, key=_due_of))
        del self._opened[index]
        self._forget_ghost(entry)

    def _compact(self) -> None:
        self._opened = [entry for entry in self._opened if not self._forget_ghost(entry)]
        slots = {number: self._without_marks(entries, number) for number, entries in self._slots.items()}
        self._slots = {number: entries for number, entries in slots.items() if entries}
        self._numbers = sorted(self._slots)
