"""Rows as the text of COPY, column by column.

The driver would examine each value.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from ...contract import Column, Type
from ..values import instant

_SPECIAL: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_NOTHING: Final = "\\N"


def row_heads(series: int, at_us: int, count: int) -> list[str]:
    """Return series, instant and row number."""
    head = f"{series}\t{spelled_instant(at_us)}\t"
    return [head + number for number in map(str, range(count))]


def copy_text(heads: Sequence[str], columns: Sequence[Column], values: Sequence[Sequence[Any]]) -> bytes:
    """Return lines. Values are in the form of storage."""
    cells = [_cells(column.type, each) for column, each in zip(columns, values, strict=True)]
    return ("\n".join(map("\t".join, zip(heads, *cells, strict=True))) + "\n").encode()


@lru_cache(maxsize=1_024)
def spelled_instant(at_us: int) -> str:
    """Spell an instant with its offset: the session's time zone changes nothing."""
    return instant(at_us).isoformat(sep=" ")


def read_instant(value: dt.datetime) -> int:
    """Return microseconds since 1970."""
    return round((value - instant(0)) / dt.timedelta(microseconds=1))


def _cells(type_: Type, values: Sequence[Any]) -> Iterable[str]:
    if type_ is Type.TEXT:
        return _texts(values)
    spell = _SPELL.get(type_, str)
    if None in values:
        return [_NOTHING if value is None else spell(value) for value in values]
    return map(spell, values)


def _texts(values: Sequence[str | None]) -> Iterable[str]:
    joined = "".join(filter(None, values))
    if any(special in joined for special in "\\\n\r\t"):
        return [_NOTHING if value is None else value.translate(_SPECIAL) for value in values]
    return [_NOTHING if value is None else value for value in values]


_SPELL: Final[dict[Type, Callable[[Any], str]]] = {Type.DOUBLE: repr, Type.TIMESTAMP: spelled_instant}
