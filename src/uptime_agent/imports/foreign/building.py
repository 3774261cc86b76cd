"""Tables and lists, from a reader's events: each key with its line.

Nothing recurses: no file overflows the stack. A YAML alias is its value, counted at each use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import Factory, define, frozen

DEEPEST: Final = 100
"""Tables inside each other."""

MOST_VALUES: Final = 4_000_000
"""Aliases are counted at each use."""

MERGED: Final = "<<"


class NotImported(Exception):
    """A file is not that monitor's."""


@frozen(eq=False)
class Mapped:
    """A table, with its keys' lines, from 1."""

    values: Mapping[str, Any]
    lines: Mapping[str, int]
    line: int
    size: int = 1


@frozen(eq=False)
class Items:
    """A list, with its items' lines."""

    values: list[Any]
    lines: list[int]
    line: int
    size: int = 1


@define(eq=False)
class _Open:
    is_table: bool
    line: int
    anchor: str | None
    key: str | None = None
    key_line: int = 0
    values: dict[str, Any] = Factory(dict)
    key_lines: dict[str, int] = Factory(dict)
    items: list[Any] = Factory(list)
    lines: list[int] = Factory(list)
    merged: list[Mapped] = Factory(list)
    size: int = 1


class Builder:
    """Builds one document, its `root`. `merges`: << adds tables' keys. Raises NotImported."""

    def __init__(self, *, merges: bool = False) -> None:
        self.root: Any = None
        self._merges = merges
        self._open: list[_Open] = []
        self._anchors: dict[str, Any] = {}

    def begin(self, line: int, *, is_table: bool, anchor: str | None = None) -> None:
        """Begin a table or list."""
        if len(self._open) >= DEEPEST:
            raise NotImported(f"line {line}: more than {DEEPEST} tables and lists inside each other")
        if self._open and self._open[-1].is_table and self._open[-1].key is None:
            raise NotImported(f"line {line}: a key is a text, not a table or a list")
        self._open.append(_Open(is_table, line, anchor))

    def end(self) -> None:
        """End the innermost table or list."""
        ended = self._open.pop()
        if ended.is_table:
            _merge(ended)
            found: Any = Mapped(ended.values, ended.key_lines, ended.line, ended.size)
        else:
            found = Items(ended.items, ended.lines, ended.line, ended.size)
        self._put(found, ended.line, ended.anchor, ended.size)

    def value(self, value: Any, line: int, anchor: str | None = None, *, is_plain: bool = False) -> None:
        """Add a value, or a key. `is_plain`: without quotes."""
        top = self._open[-1] if self._open else None
        if top is None or not top.is_table or top.key is not None:
            self._put(value, line, anchor, 1)
            return
        key = written(value)
        if key in top.key_lines and not (is_plain and key == MERGED):
            raise NotImported(
                f"line {line}: the key '{key[:100]}' stands there twice, first on line {top.key_lines[key]}"
            )
        top.key, top.key_line = key, line
        if anchor is not None:
            self._anchors[anchor] = value

    def alias(self, anchor: str, line: int) -> None:
        """Add an anchor's value again."""
        if anchor not in self._anchors:
            raise NotImported(f"line {line}: *{anchor[:100]} stands for itself, or for nothing")
        found = self._anchors[anchor]
        top = self._open[-1] if self._open else None
        if top is not None and top.is_table and top.key is None and not isinstance(found, (Mapped, Items)):
            self.value(found, line)
            return
        self._put(found, line, None, found.size if isinstance(found, (Mapped, Items)) else 1)

    def _put(self, value: Any, line: int, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = value
        if not self._open:
            self.root = value
            return
        top = self._open[-1]
        top.size += size
        if top.size > MOST_VALUES:
            raise NotImported(f"line {line}: more than {MOST_VALUES:,} values, those counted that aliases repeat")
        if not top.is_table:
            top.items.append(value)
            top.lines.append(line)
        elif top.key is None:
            raise NotImported(f"line {line}: a key is a text, not a table or a list")
        else:
            self._put_in_table(top, value, line)

    def _put_in_table(self, top: _Open, value: Any, line: int) -> None:
        assert top.key is not None
        if self._merges and top.key == MERGED:
            tables = value.values if isinstance(value, Items) else [value]
            if not all(isinstance(each, Mapped) for each in tables):
                raise NotImported(f"line {line}: << stands for a table, or for a list of these")
            top.merged += tables
        else:
            top.values[top.key] = value
            top.key_lines[top.key] = top.key_line
        top.key = None


def _merge(table: _Open) -> None:
    for each in table.merged:
        for key, value in each.values.items():
            if key not in table.values:
                table.values[key] = value
                table.key_lines[key] = each.lines[key]


def written(value: Any) -> str:
    """A plain value as written."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case bytes():
            return value.decode(errors="replace")
        case _:
            return str(value)
