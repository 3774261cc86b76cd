"""Queries and bodies as attrs classes. The same fields read a request and describe it in OpenAPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeVar

import attrs
from attrs import frozen

from schedule import shown

from ..._shape import check_text, count_of
from ..._values import InvalidJob
from .problem import invalid

T = TypeVar("T")

JSON = Any
"""A value of JSON: dict, list, str, int, float, bool or None."""

LONGEST_WORD: Final = 1_000
"""Characters of a value in a query."""


@frozen
class Reader:
    """`read`: takes the name and the value. `is_many`: a query may repeat the field. `longest`: characters."""

    read: Callable[[str, Any], Any]
    schema: Mapping[str, JSON]
    is_many: bool = False
    longest: int = LONGEST_WORD


@frozen
class Nothing:
    """A query or a body without any key."""


def given(reader: Reader, default: Any, about: str) -> Any:
    """Declare a field. `about`: its sentence in OpenAPI."""
    return attrs.field(default=default, metadata={"reader": reader, "about": about})


def read(kind: type[T], values: Mapping[str, Any]) -> T:
    """Make a value of what was given. Raises Problem, which names the key."""
    known = {each.name: each.metadata["reader"] for each in _fields_of(kind)}
    unknown = sorted(set(values) - set(known))
    if unknown:
        there = f"there are {', '.join(known)}" if known else "there are none here"
        raise invalid(f"there is no key {unknown[0][:LONGEST_WORD]!r}: {there}", unknown[0][:LONGEST_WORD])
    missing = [each.name for each in _fields_of(kind) if each.default is attrs.NOTHING and each.name not in values]
    if missing:
        raise invalid(f"{missing[0]}: there must be one", missing[0])
    return kind(**{name: known[name].read(name, value) for name, value in values.items()})


def body_reader(kind: type[T]) -> Callable[[JSON], T]:
    """Return what reads a body of these keys."""

    def read_body(body: JSON) -> T:
        if not isinstance(body, dict):
            raise invalid(f"the body must be an object, not {shown(body)}")
        return read(kind, body)

    return read_body


def query_of(kind: type[T], pairs: Sequence[tuple[str, str]]) -> T:
    """Read a query. Raises Problem, also for a key that comes twice."""
    readers: dict[str, Reader] = {each.name: each.metadata["reader"] for each in _fields_of(kind)}
    values: dict[str, Any] = {}
    for name, text in pairs:
        longest = readers[name].longest if name in readers else LONGEST_WORD
        if len(text) > longest:
            raise invalid(
                f"{name[:100]!r} is {len(text)} characters long: at most {longest} are read", name[:LONGEST_WORD]
            )
        if name in readers and readers[name].is_many:
            values.setdefault(name, []).append(text)
        elif name in values:
            raise invalid(f"{name[:100]!r} comes twice", name[:LONGEST_WORD])
        else:
            values[name] = text
    return read(kind, values)


def schema_of(kind: type[Any]) -> dict[str, JSON]:
    """Describe a body."""
    properties = {
        each.name: {**each.metadata["reader"].schema, "description": each.metadata["about"]}
        for each in _fields_of(kind)
    }
    required = [each.name for each in _fields_of(kind) if each.default is attrs.NOTHING]
    found: dict[str, JSON] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": required} if required else found


def parameters_of(kind: type[Any]) -> list[JSON]:
    """Describe a query."""
    return [
        {
            "name": each.name,
            "in": "query",
            "required": each.default is attrs.NOTHING,
            "description": each.metadata["about"],
            "schema": dict(each.metadata["reader"].schema),
        }
        for each in _fields_of(kind)
    ]


def _fields_of(kind: type[Any]) -> tuple[attrs.Attribute[Any], ...]:
    found: tuple[attrs.Attribute[Any], ...] = attrs.fields(kind)
    return found


# -- readers -----------------------------------------------------------------------------------------------------------


def whole(most: int) -> Reader:
    """A whole number from 1, as text or as a number."""

    def read_whole(name: str, value: Any) -> int:
        number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
        if count_of(name, number) > most:
            raise invalid(f"{name} must be at most {most}, not {shown(value)}", name)
        return int(number)

    return Reader(read_whole, {"type": "integer", "minimum": 1, "maximum": most})


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid(f"{name} must be a text, not {shown(value)}", name)
    try:
        check_text(value, name)
    except InvalidJob as exc:
        raise invalid(str(exc), name) from None
    return value


def _flag(name: str, value: Any) -> bool:
    flags = {"1": True, "true": True, "0": False, "false": False}
    if not isinstance(value, str) or value not in flags:
        raise invalid(f"{name} must be 1, true, 0 or false, not {shown(value)}", name)
    return flags[value]


def _instant(name: str, value: Any) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is None:
        such_as = "2026-01-31T09:00:00Z"
        raise invalid(f"{name} must be an instant with its offset, such as {such_as!r}, not {shown(value)}", name)
    return found


def _texts(name: str, value: Any) -> tuple[str, ...]:
    return tuple(_text(name, each) for each in value)


def _names(name: str, value: Any) -> tuple[str, ...]:
    return tuple(filter(None, _text(name, value).split(",")))


def choices(kind: type[Enum]) -> Reader:
    """Values of an enum; a query may repeat them."""
    words = [str(each.value) for each in kind]

    def read_choices(name: str, value: Any) -> tuple[Any, ...]:
        for each in value:
            if each not in words:
                raise invalid(f"{name} must be one of {', '.join(words)}, not {shown(each)}", name)
        return tuple(map(kind, value))

    return Reader(read_choices, {"type": "array", "items": {"type": "string", "enum": words}}, is_many=True)


def choice(words: Sequence[str]) -> Reader:
    """One of these words."""

    def read_choice(name: str, value: Any) -> str:
        if value not in words:
            raise invalid(f"{name} must be one of {', '.join(words)}, not {shown(value)}", name)
        return str(value)

    return Reader(read_choice, {"type": "string", "enum": [*words]})


def optional(reader: Reader) -> Reader:
    """Let null stand for nothing."""
    schema = {"anyOf": [dict(reader.schema), {"type": "null"}]}
    return Reader(
        lambda name, value: None if value is None else reader.read(name, value), schema, longest=reader.longest
    )


TEXT: Final = Reader(_text, {"type": "string"})
TEXTS: Final = Reader(_texts, {"type": "array", "items": {"type": "string"}}, is_many=True)
CURSOR: Final = Reader(_text, {"type": "string"}, longest=100_000)
NAMES: Final = Reader(_names, {"type": "string"})
FLAG: Final = Reader(_flag, {"type": "boolean"})
INSTANT: Final = Reader(_instant, {"type": "string", "format": "date-time"})
