"""JSON that gives back exactly what was put in, or refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from .._values import InvalidJob

LARGEST: Final = 1024 * 1024
"""Characters in a stored row."""

MAX_VALUES: Final = 100_000
"""Values in one column."""

MAX_DEPTH: Final = 100
"""Levels of lists and mappings."""

_SHORT: Final = 1_000
_SHOWN: Final = 100
_NESTED: Final = frozenset({list, tuple, dict})
_LISTS: Final = frozenset({list, tuple})
_LARGEST_NUMBER: Final = 10_000
"""Bits: Python reads no number of more than 4,300 digits."""

_dump: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode


T = TypeVar("T")


def kept(size: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Keep the last `size` values. Long texts would fill the memory."""

    def decorate(read: Callable[[str], T]) -> Callable[[str], T]:
        remember = lru_cache(maxsize=size)(read)
        return wraps(read)(lambda text: remember(text) if len(text) <= _SHORT else read(text))

    return decorate


def json_text(value: Any, place: str) -> str:
    """Return `value` as compact JSON with sorted keys. `place` names it in errors.

    Tuples become lists. Raises InvalidJob for other types or subclasses, keys that are not texts, NaN, infinities,
    texts with NUL or invalid Unicode, and beyond the limits above.
    """
    if not _is_flat(value):
        check_json(value, place)
    return _dump(value)


def quick_text(value: Any) -> str | None:
    """Return `value` as compact JSON, unchecked. None: JSON cannot hold it."""
    try:
        return _dump(value)
    except (TypeError, ValueError, RecursionError):
        return None


def check_json(value: Any, place: str) -> None:
    rest: list[tuple[Any, _Place, int]] = [(value, _Place(None, place), 0)]
    count = 0
    while rest:
        value, where, depth = rest.pop()
        kind = type(value)
        is_nested = kind in _NESTED
        count += len(value) if is_nested else 0
        if depth > MAX_DEPTH or count > MAX_VALUES:
            msg = f"{where} holds too much: at most {MAX_DEPTH} levels and {MAX_VALUES} values"
            raise InvalidJob(msg)
        if not is_nested:
            _check_single(value, where)
        elif kind is dict:
            for key in value:
                _check_key(key, where)
            rest += [(item, _Place(where, key), depth + 1) for key, item in value.items() if not _is_fine(item)]
        else:
            rest += [(item, _Place(where, index), depth + 1) for index, item in enumerate(value) if not _is_fine(item)]


def copied(value: T) -> T:
    """Copy lists and mappings: a caller's changes must not reach the stored value."""
    kind: type = type(value)
    if kind not in _NESTED:
        return value
    if kind is dict:
        return {key: copied(item) for key, item in value.items()}  # type: ignore[attr-defined, return-value]
    if kind is list:
        return list(map(copied, value))  # type: ignore[call-overload, return-value]
    return tuple(map(copied, value)) if value else value  # type: ignore[call-overload, return-value]


def read_json(text: str) -> Any:
    """Raises InvalidJob for text that `json_text` would not write, such as a repeated key."""
    try:
        value = _load(text)
    except (ValueError, RecursionError) as exc:
        too_deep = isinstance(exc, RecursionError)  # from Python 3.14 on, `check_json` sees most of these texts first
        reason = f"value holds too much: at most {MAX_DEPTH} levels and {MAX_VALUES} values" if too_deep else str(exc)
        msg = f"it is not JSON as it should be: {reason}"
        raise InvalidJob(msg) from None
    if not text.isascii() or "\\u" in text or _is_large(text):
        check_json(value, "value")
    return value


def _is_large(text: str) -> bool:
    return len(text) > MAX_DEPTH and (text.count("[") + text.count("{") > MAX_DEPTH or text.count(",") >= MAX_VALUES)


def check_text(value: str, place: object) -> None:
    """Raise InvalidJob for a text that some stores cannot hold."""
    if not value.isprintable() and ("\0" in value or not _is_unicode(value)):
        msg = f"{place} must be Unicode text without NUL, not {value[:_SHOWN]!r}"
        raise InvalidJob(msg)


class _Place(NamedTuple):
    parent: _Place | None
    key: str | int

    def __str__(self) -> str:
        found = ""
        place = self
        while place.parent is not None:
            key = place.key
            found = f"[{key}]{found}" if isinstance(key, int) else f"[{json.dumps(key[:_SHOWN])}]{found}"
            place = place.parent
        return f"{place.key}{found if len(found) <= _SHOWN else f'{found[:_SHOWN]}...'}"


def _is_fine(value: Any) -> bool:
    return (type(value) is str and value.isprintable()) or value is None or type(value) is bool


def _is_flat(value: Any) -> bool:
    return type(value) in _LISTS and len(value) <= MAX_DEPTH and all(map(_is_fine, value))


def _check_single(value: Any, place: _Place) -> None:
    kind = type(value)
    if kind is str:
        check_text(value, place)
    elif kind is float:
        if not math.isfinite(value):
            msg = f"{place} must be a finite number, not {value!r}"
            raise InvalidJob(msg)
    elif kind is int:
        if value.bit_length() > _LARGEST_NUMBER:
            msg = f"{place} is a number of {value.bit_length()} bits: at most {_LARGEST_NUMBER} can be stored"
            raise InvalidJob(msg)
    elif value is not None and kind is not bool:
        msg = (
            f"{place} is a {kind.__qualname__}, and a stored job holds only what JSON can: texts, numbers, booleans, "
            "None, and lists and dicts of them"
        )
        raise InvalidJob(msg)


def _check_key(key: Any, place: _Place) -> None:
    if type(key) is not str:
        msg = f"{place} has a key that is a {type(key).__qualname__}: keys must be texts"
        raise InvalidJob(msg)
    if not key.isprintable():
        check_text(key, f"a key of {place}")


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        msg = f"the key {repeated[:_SHOWN]!r} comes twice"
        raise ValueError(msg)
    return found


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        _refuse(text)
    return number


def _refuse(text: str) -> NoReturn:
    msg = f"{text[:_SHOWN]} is no number that can be stored"
    raise ValueError(msg)


_decoder: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_object)


def _load(text: str) -> Any:
    """`decode` takes twice as long: it looks for blanks around the text."""
    try:
        value, end = _decoder.raw_decode(text)
    except json.JSONDecodeError:
        return _decoder.decode(text)
    return value if end == len(text) else _decoder.decode(text)
