"""The last result of a run as JSON, at a cost that has its bound whatever the result is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any, Final

from ..stores import LONGEST_RESULT

_LARGEST_NUMBER: Final = 4 * LONGEST_RESULT
"""Bits: a longer number has more digits than may be stored."""


def result_text(results: Sequence[object]) -> str | None:
    """The last result as JSON. None for one that JSON cannot hold, or not in LONGEST_RESULT characters.

    It is written down piece by piece, and no more of it is looked at once there are too many. What it does when it is
    looked at is nobody else's trouble: subclasses of Python's own types count for what these say.
    """
    pieces: list[str] = []
    room = LONGEST_RESULT
    try:
        for piece in _pieces(results[-1]):
            room -= len(piece)
            if room < 0:
                return None
            pieces.append(piece)
    except BaseException:  # noqa: BLE001 - it is the user's object that raised, or has changed meanwhile
        return None
    return "".join(pieces)


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
    """As text: JSON has no other keys."""
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
