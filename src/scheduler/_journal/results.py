"""A run's last result as JSON, at a bounded cost.

Most are dicts of Python's own types. A walk checks this and the size, then `json` encodes it in a third of the time.
Others are written piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json.encoder import JSONEncoder, encode_basestring_ascii
from math import isfinite
from typing import Any, Final

from ..stores import LONGEST_RESULT

_LARGEST_NUMBER: Final = 4 * LONGEST_RESULT
"""Bits."""

_FEW: Final = 3

_written: Final = JSONEncoder(check_circular=False, allow_nan=False, separators=(",", ":")).encode


def result_text(results: Sequence[object]) -> str | None:
    """None: JSON cannot hold the last result in LONGEST_RESULT characters.

    Errors of the user's object are caught. Subclasses of Python's own types count as these.
    """
    pieces: list[str] = []
    room, result = LONGEST_RESULT, results[-1]
    try:
        if isinstance(result, dict) and _FEW < dict.__len__(result) < room and _is_plain(plain := dict.copy(result)):
            text = _written(plain)
            return text if len(text) <= room else None
        for piece in _pieces(result):
            room -= len(piece)
            if room < 0:
                return None
            pieces.append(piece)
    except BaseException:  # noqa: BLE001 - the user's object has raised, or has changed meanwhile
        return None
    return "".join(pieces)


def _is_plain(value: dict[Any, Any]) -> bool:
    room = LONGEST_RESULT
    left: list[Any] = [value]
    while left and room >= 0:
        each = left.pop()
        kind = type(each)
        if kind is str:
            room -= len(each)
        elif kind is int:
            room -= each.bit_length() // 4
        elif kind is dict:
            room -= len(each)
            if room < 0 or any(type(key) is not str for key in each):
                return False
            room -= sum(map(len, each))
            left += each.values()
        elif kind is list:
            room -= len(each)
            if room < 0:
                return False
            left += each
        elif kind is not float and each is not None and kind is not bool:
            return False
    return room >= 0


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield _text(value)
    elif value is None or value is True or value is False:
        yield "null" if value is None else "true" if value else "false"
    elif isinstance(value, int):
        yield _number(value)
    elif isinstance(value, float):
        yield _fraction(value)
    elif isinstance(value, dict):
        yield from _object(value)
    elif isinstance(value, list):
        yield from _array(list.__iter__(value))
    elif isinstance(value, tuple):
        yield from _array(tuple.__iter__(value))
    else:
        msg = f"JSON has no {type(value)}"
        raise TypeError(msg)


def _array(items: Iterator[Any]) -> Iterator[str]:
    before = "["
    for item in items:
        yield before
        yield from _pieces(item)
        before = ","
    yield "]" if before == "," else "[]"


def _object(value: dict[Any, Any]) -> Iterator[str]:
    before = "{"
    for key, item in dict.items(value):
        yield f"{before}{_key(key)}:"
        yield from _pieces(item)
        before = ","
    yield "}" if before == "," else "{}"


def _key(key: Any) -> str:
    if isinstance(key, str):
        return _text(key)
    if isinstance(key, int | float) or key is None:
        return f'"{next(_pieces(key))}"'
    msg = f"no key of JSON: {type(key)}"
    raise TypeError(msg)


def _text(value: str) -> str:
    if str.__len__(value) > LONGEST_RESULT:
        raise ValueError
    return encode_basestring_ascii(str.__str__(value))


def _number(value: int) -> str:
    if int.bit_length(value) > _LARGEST_NUMBER:
        raise ValueError
    return int.__repr__(value)


def _fraction(value: float) -> str:
    if not isfinite(float.__float__(value)):
        raise ValueError
    return float.__repr__(value)
