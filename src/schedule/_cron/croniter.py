"""The only file that knows croniter, which reads L, W and # in the two day fields.

Croniter is slow to import and to parse. It gets single items only, which keeps its habits out: `1-1` as the whole
cycle, AND between W or # and the other day field.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from attrs import frozen

from .._common import ScheduleError
from .field import DAY, WEEKDAY, Field, values

if TYPE_CHECKING:
    from croniter import croniter

_RARE: Final = {DAY: re.compile("[LW]", re.IGNORECASE), WEEKDAY: re.compile("[#L]", re.IGNORECASE)}
_NTH: Final = re.compile(r"([^#]+)#([0-9]+)")
_LAST: Final = re.compile(r"L([0-7])|([0-7]|[a-z]{3})L", re.IGNORECASE)
_ADVICE: Final = {
    DAY: (
        "write L for the last day of the month, LW for its last day from Monday to Friday, 15W for the one nearest to "
        "the 15th; days before the last one have no sign"
    ),
    WEEKDAY: "write fri#3 for the third Friday of the month (#1 to #5), friL for the last",
}


@frozen
class Rare:
    values: int = 0
    """Days that are numbers after all: 15-L."""
    last: bool = False
    nearest: tuple[int, ...] = ()
    """The Monday to Friday nearest to these days, cut to the month."""
    nth: tuple[tuple[int, int], ...] = ()
    """(weekday, which of the month); -1 is the last."""


def is_rare(field: Field, text: str) -> bool:
    return _RARE[field].search(text) is not None


@lru_cache(maxsize=1024)
def read_day(text: str) -> Rare:
    """Read L, 15W, LW and 15-L. Raises ScheduleError if unreadable."""
    # 31W is cut to the month's length, so it is the last weekday of any month; croniter has no LW.
    read = _read(DAY, text, "0 0 31W * *" if text.upper() == "LW" else f"0 0 {text} * *")
    if read.nearest_weekday:
        return Rare(nearest=tuple(read.nearest_weekday))
    days = read.expanded[2]
    return Rare(last=True) if days == ["l"] else Rare(values=sum(1 << day for day in days))


@lru_cache(maxsize=1024)
def read_weekday(text: str) -> Rare:
    """Read 5#3, fri#3, mon-fri#1, L5, 5L and friL. Raises ScheduleError if unreadable."""
    numbered, last = _NTH.fullmatch(text), _LAST.fullmatch(text)
    if numbered:
        days, pattern = numbered[1], f"{{}}#{numbered[2]}"
    elif last:
        days, pattern = last[1] or last[2], "L{}"
    else:
        raise ScheduleError(f"cannot read {text!r} as day-of-week: {_ADVICE[WEEKDAY]}")
    # Weekdays are spelt out first: croniter takes mon-mon#2 for all weekdays.
    chosen = values(WEEKDAY, days)
    items = ",".join(pattern.format(day) for day in range(7) if chosen >> day & 1)
    read = _read(WEEKDAY, text, f"0 0 * * {items}")
    found = {(day, -1 if nth == "l" else nth) for day, which in read.nth_weekday_of_month.items() for nth in which}
    return Rare(nth=tuple(sorted(found)))


def _read(field: Field, text: str, expression: str) -> croniter:
    from croniter import croniter  # noqa: PLC0415 - costs 0.1 s, which most programs never need

    try:
        return croniter(expression, start_time=0.0)
    except ValueError:  # its message quotes an expression that the user did not write
        raise ScheduleError(f"cannot read {text!r} as {field.name}: {_ADVICE[field]}") from None
