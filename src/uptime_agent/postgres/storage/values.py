"""The form of storage: comparable values from any driver, spool or server.

TEXT: UTF-8 without NUL. TIMESTAMP: microseconds since 1970 in UTC. NUMERIC: a whole number, or digits. NaN is None.
Stored values pass unchanged. Columns are processed as a whole: single values cost ten times as much.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from types import NoneType
from typing import Any, Final, assert_never

from attrs import evolve

from ..contract import Column, Probe, Row, Sample, Type
from .errors import Unstorable

Values = tuple[Any, ...]

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND: Final = dt.timedelta(microseconds=1)
_FIRST_INSTANT: Final = (dt.datetime(1, 1, 2, tzinfo=dt.UTC) - EPOCH) // MICROSECOND
_LAST_INSTANT: Final = (dt.datetime(9999, 12, 30, tzinfo=dt.UTC) - EPOCH) // MICROSECOND
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_LONGEST_NUMBER: Final = 400
"""Digits."""


def normal_columns(sample: Sample) -> list[Values]:
    """Return each column's values. Raises Unstorable."""
    return normal_values(sample.probe, sample.rows)


def normal_values(probe: Probe, rows: Sequence[Row]) -> list[Values]:
    """Like `normal_columns`, of several samples."""
    columns = probe.columns
    if not rows:
        return [()] * len(columns)
    if set(map(len, rows)) != {len(columns)}:
        msg = f"a row of probe {probe.name} has not its {len(columns)} columns: {_names(columns)}"
        raise Unstorable(msg)
    given = zip(*rows, strict=True)
    return [_normal(probe, column, values) for column, values in zip(columns, given, strict=True)]


def fingerprint(sample: Sample, normal: Sequence[Values] | None = None) -> str:
    """Return a fingerprint, equal over restarts, drivers and the spool."""
    columns = [
        [_spoken(column.type, value) for value in values]
        for column, values in zip(
            sample.probe.columns, normal_columns(sample) if normal is None else normal, strict=True
        )
    ]
    return evolve(sample, rows=tuple(zip(*columns, strict=True))).fingerprint()


def instant(at_us: int) -> dt.datetime:
    """Return the instant of microseconds since 1970."""
    return EPOCH + dt.timedelta(microseconds=at_us)


def _spoken(type_: Type, value: Any) -> Any:
    """As a driver returns it."""
    if value is None:
        return None
    if type_ is Type.TIMESTAMP:
        return instant(value)
    return Decimal(value) if type_ is Type.NUMERIC else value


def _normal(probe: Probe, column: Column, values: Values) -> Values:
    kinds = set(map(type, values)) - {NoneType}
    if not kinds or _is_normal(column.type, kinds, values):
        return values
    try:
        return tuple([None if value is None else _converted(column.type, value) for value in values])
    except (ArithmeticError, TypeError, ValueError) as error:
        msg = f"column {column.name} of probe {probe.name} ({column.type.value}): {error}"
        raise Unstorable(msg) from None


def _is_normal(type_: Type, kinds: set[type], values: Values) -> bool:
    match type_:
        case Type.BIGINT:
            return kinds == {int} and _is_within(values, _LEAST, _MOST)
        case Type.TIMESTAMP:
            return kinds == {int} and _is_within(values, _FIRST_INSTANT, _LAST_INSTANT)
        case Type.NUMERIC:
            return kinds == {int} and _is_within(values, _LEAST, _MOST)
        case Type.DOUBLE:
            total = sum(_present(values)) if kinds == {float} else math.nan
            return total == total  # noqa: PLR0124 - NaN is not, and what holds one adds up to it
        case Type.BOOLEAN:
            return kinds == {bool}
        case Type.TEXT:
            if kinds != {str}:
                return False
            joined = "".join(filter(None, values))
            return joined.isascii() and "\0" not in joined
        case _:
            assert_never(type_)


def _is_within(values: Values, least: int, most: int) -> bool:
    present = _present(values)
    return bool(least <= min(present) and max(present) <= most)


def _present(values: Values) -> Sequence[Any]:
    return [value for value in values if value is not None] if None in values else values


def _converted(type_: Type, value: Any) -> Any:
    match type_:
        case Type.BIGINT:
            return _whole(value)
        case Type.DOUBLE:
            return _double(value)
        case Type.TEXT:
            return _text(value)
        case Type.BOOLEAN:
            return _truth(value)
        case Type.TIMESTAMP:
            return _instant(value)
        case Type.NUMERIC:
            return _number(value)
        case _:
            assert_never(type_)


def _whole(value: Any) -> int:
    whole = int(value)
    if whole != value or not _LEAST <= whole <= _MOST:
        msg = f"{str(value)[:60]} is no whole number of 64 bits"
        raise ValueError(msg)
    return whole


def _double(value: Any) -> float | None:
    number = value.total_seconds() if isinstance(value, dt.timedelta) else float(value)
    return None if number != number else number + 0.0  # noqa: PLR0124 - NaN; and -0.0 becomes 0.0


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else _spelled(value)
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _spelled(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str) if isinstance(value, dict | list) else str(value)


def _truth(value: Any) -> bool:
    if value not in {0, 1}:
        msg = f"{value!r} is neither true nor false"
        raise ValueError(msg)
    return bool(value)


def _instant(value: Any) -> int:
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        msg = f"{value} has no time zone"
        raise ValueError(msg)
    instant = (value - EPOCH) // MICROSECOND if isinstance(value, dt.datetime) else _whole(value)
    if not _FIRST_INSTANT <= instant <= _LAST_INSTANT:
        msg = f"{value} is not between the years 1 and 9999"
        raise ValueError(msg)
    return instant


def _number(value: Any) -> int | str | None:
    number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if number.is_nan():
        return None
    if number.is_infinite():
        return str(number)
    exponent = number.as_tuple().exponent
    if number and (abs(number.adjusted()) > _LONGEST_NUMBER or abs(int(exponent)) > _LONGEST_NUMBER):
        msg = f"a number of more than {_LONGEST_NUMBER} digits"
        raise ValueError(msg)
    return int(number) if number == number.to_integral_value() else format(number, "f").rstrip("0")


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)
