"""Rows as the text of COPY, written column by column: the driver would look at each value for what it may be."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, Final

from ...contract import Column, Type
from ..values import instant

_SPECIAL: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_NOTHING: Final = "\\N"


def copy_text(at_us: int, series: int, columns: Sequence[Column], values: Sequence[tuple[Any, ...]], count: int) -> str:
    """Return the lines of one sample: its series, its instant, the number of the row, then the columns."""
    head = f"{series}\t{spelled_instant(at_us)}\t"
    numbers = [f"{head}{number}" for number in range(count)]
    cells = [_cells(column.type, each) for column, each in zip(columns, values, strict=True)]
    return "\n".join(map("\t".join, zip(numbers, *cells, strict=True))) + "\n"


def spelled_instant(at_us: int) -> str:
    """Return an instant with its offset: the session's time zone changes nothing."""
    return instant(at_us).isoformat(sep=" ")


def read_instant(value: dt.datetime) -> int:
    """Return an instant that the driver has read as microseconds since 1970."""
    return round((value - instant(0)) / dt.timedelta(microseconds=1))


def _cells(type_: Type, values: tuple[Any, ...]) -> list[str]:
    if type_ is Type.TEXT:
        return _texts(values)
    spell = _SPELL.get(type_, str)
    return [_NOTHING if value is None else spell(value) for value in values]


def _texts(values: tuple[str | None, ...]) -> list[str]:
    joined = "".join(filter(None, values))
    if any(special in joined for special in "\\\n\r\t"):
        return [_NOTHING if value is None else value.translate(_SPECIAL) for value in values]
    return [_NOTHING if value is None else value for value in values]


_SPELL: Final[dict[Type, Callable[[Any], str]]] = {Type.DOUBLE: repr, Type.TIMESTAMP: spelled_instant}
