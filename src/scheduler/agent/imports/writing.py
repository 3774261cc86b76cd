"""Our file, written: a table for each check, and beside it in comments what could not be carried over.

Each check is read by our own reader before it is written. What that does not know or take is left out, with its words;
so the file is one that `timerqueue check` accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from attrs import frozen

from ..text import printable
from .draft import Draft

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}

Problems = Callable[[str], Sequence[str]]
"""Reads the text of a file and says what is wrong with it; nothing: it would run."""


@frozen
class Imported:
    """A file of ours. `checks`: how many it has; `left`: in words what could not be carried over, check by check."""

    text: str
    checks: int
    left: tuple[str, ...]


def imported(source: str, drafts: Iterable[Draft], left: Iterable[str], problems: Problems) -> Imported:
    """Write our file of drafts out of `source`."""
    tables: list[str] = []
    notes, names = list(left), set[str]()
    for draft in drafts:
        _name_apart(draft, names)
        table = _fitting(draft, problems)
        notes += [f"{printable(draft.name)}: {printable(each)}" for each in draft.left]
        notes += [f"{printable(draft.name)}: set {name}: {printable(words)}" for name, words in draft.variables.items()]
        comments = [f"# Not carried over: {printable(each)}" for each in draft.left]
        if table is not None:
            tables.append("\n".join([*comments, *table]))
    head = [f"# Imported from {printable(source)}.", *(f"# Not carried over: {printable(each)}" for each in left)]
    return Imported("\n".join(head) + "\n\n" + "\n\n".join(tables) + "\n", len(tables), tuple(notes))


def _name_apart(draft: Draft, names: set[str]) -> None:
    """Give it a name that no other check has."""
    first, number = draft.name, 2
    while draft.name in names:
        draft.name, number = f"{first} ({number})", number + 1
    names.add(draft.name)


def _fitting(draft: Draft, problems: Problems) -> list[str] | None:
    """The lines of a check that our reader takes. What it does not take is left out. None: not even its place is."""
    kept: dict[str, Any] = {}
    if found := problems(_text(_table(draft, kept))):
        draft.leave(f"the whole check ({found[0]})")
        return None
    for key, value in draft.options.items():
        if found := problems(_text(_table(draft, {**kept, key: value}))):
            draft.leave(f"{key} = {_value(value)} ({found[0]})")
        else:
            kept[key] = value
    return list(_table(draft, kept))


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _table(draft: Draft, options: dict[str, Any]) -> Iterator[str]:
    yield "[[check]]"
    yield f"name = {_value(draft.name)}"
    yield f"url = {_value(draft.url)}"
    for key, value in options.items():
        yield f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case list():
            return "[" + ", ".join(_value(each) for each in value) + "]"
        case dict():
            return "{ " + ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items()) + " }"
        case _:
            return '"' + "".join(_letter(each) for each in str(value)) + '"'


def _letter(letter: str) -> str:
    if letter in _ESCAPED:
        return _ESCAPED[letter]
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)
