"""Answers as values and classes of failures."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from ...libpq import QueryAnswer
from ..contract import Failure, Probe, Row, Rows, Type, Value

LEFT_OUT: Final = "left_out"
"""A last column that counts further rows."""

_CLASSES: Final[Mapping[str, Failure]] = {
    "42501": Failure.PERMISSION,
    "57014": Failure.TIMEOUT,
    "55P03": Failure.TIMEOUT,
    "25P03": Failure.TIMEOUT,
    "42P01": Failure.MISSING_FEATURE,
    "42703": Failure.MISSING_FEATURE,
    "42883": Failure.MISSING_FEATURE,
    "3F000": Failure.MISSING_FEATURE,
    "0A000": Failure.MISSING_FEATURE,
    "55000": Failure.MISSING_FEATURE,
    "58P01": Failure.MISSING_FEATURE,
}
_OF_CONNECTIONS: Final = ("08", "57P", "28", "53300", "3D000")


class WrongShape(Exception):
    """An answer lacks the probe's columns."""


def class_of(sqlstate: str) -> Failure:
    """Return an SQLSTATE's class."""
    if sqlstate.startswith(_OF_CONNECTIONS):
        return Failure.CONNECT
    return _CLASSES.get(sqlstate, Failure.QUERY)


def rows_of(probe: Probe, answer: QueryAnswer) -> tuple[Rows, int]:
    """Return the kept rows, and how many were left out. Raises WrongShape."""
    counts_rest = answer.names[-1:] == (LEFT_OUT,)
    width = len(answer.names) - counts_rest
    if width != len(probe.columns):
        msg = f"the query gives {width} columns, the probe has {len(probe.columns)}"
        raise WrongShape(msg)
    readers = [READERS[column.type] for column in probe.columns]
    kept: list[Row] = []
    size = 0
    for row in answer.rows[: probe.most_rows]:
        size += len(b"".join(filter(None, row)))
        if size > probe.most_bytes:
            break
        kept.append(tuple([None if value is None else read(value) for value, read in zip(row, readers)]))  # noqa: B905
    rest = int(answer.rows[0][-1] or 0) if counts_rest and answer.rows else 0
    return tuple(kept), rest + len(answer.rows) - len(kept)


def text_of(value: bytes) -> str:
    """Decode, with a sign for invalid UTF-8."""
    return value.decode("utf-8", "replace")


def _instant(value: bytes) -> Value:
    try:
        return dt.datetime.fromisoformat(value.decode()).astimezone(dt.UTC)
    except (ValueError, OverflowError):  # infinity, or a year that Python does not know
        return None


READERS: Final[Mapping[Type, Callable[[bytes], Value]]] = {
    Type.BIGINT: int,
    Type.DOUBLE: float,
    Type.TEXT: text_of,
    Type.BOOLEAN: lambda value: value == b"t",
    Type.TIMESTAMP: _instant,
    Type.NUMERIC: lambda value: Decimal(value.decode()),
}
