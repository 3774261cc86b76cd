"""Answers become values again: what `to_json` wrote, read by the type hints of its class."""

from __future__ import annotations

import enum
import math
import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, cast

from attrs import NOTHING, fields, has

from ..._shape import JobSpec, from_json

T = TypeVar("T")
Reader = Callable[[Any], Any]


def value_of(kind: type[T], data: Any) -> T:
    """Return a value of this attrs class. Keys that it does not know are of a newer API, and left out."""
    reader: Reader = _reader_of(kind)  # type: ignore[arg-type] # a class can be hashed
    return cast("T", reader(data))


@cache
def _reader_of(hint: Any) -> Reader:
    if hint in _KNOWN:
        return _KNOWN[hint]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {word: each for each in hint for word in (each.value, getattr(each, "key", each.value))}.__getitem__
    if isinstance(hint, type) and has(hint):
        return _reader_of_class(hint)
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in {types.UnionType, typing.Union}:
        return _reader_of_union(parts)
    if origin in {tuple, list, frozenset}:
        item = _reader_of(parts[0])
        return lambda data: origin(map(item, data))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, value = map(_reader_of, parts)
        return lambda data: {key(name): value(each) for name, each in data.items()}
    return _same


def _reader_of_class(kind: type[Any]) -> Reader:
    hints = typing.get_type_hints(kind)
    readers = {each.name: _reader_of(hints[each.name]) for each in fields(kind)}
    missing = {each.name: None for each in fields(kind) if each.default is NOTHING}  # kept from callers who only read

    def read(data: Any) -> Any:
        said = {name: readers[name](each) for name, each in data.items() if name in readers}
        return kind(**{**missing, **said})

    return read


def _reader_of_union(parts: tuple[Any, ...]) -> Reader:
    others = [part for part in parts if part is not types.NoneType]
    reader = _reader_of(others[0]) if len(others) == 1 else _same
    return lambda data: None if data is None else reader(data)


def _same(data: Any) -> Any:
    return data


def _instant(data: str) -> datetime:
    return datetime.fromisoformat(data)


def _number(data: float | str | None) -> float:
    """Read a number, an instant as UTC seconds, or null for no bound."""
    if data is None:
        return math.inf
    return datetime.fromisoformat(data).timestamp() if isinstance(data, str) else float(data)


_KNOWN: Mapping[Any, Reader] = {
    datetime: _instant,
    float: _number,
    JobSpec: lambda data: from_json(JobSpec, data),
}
