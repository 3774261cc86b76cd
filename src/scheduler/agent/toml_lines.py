"""On which line of a TOML text each key stands, which tomllib does not tell.

A scanner, not a parser: it is given texts that tomllib has read without complaint, so it need only tell keys, headers
and values apart. A path is what leads to a value through the parsed tables: ("check", 0, "headers", "Accept").
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

Path = tuple[str | int, ...]

_SKIPPED: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BREAK: Final = re.compile(r"\n")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_KEY: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY: Final = re.compile(rf"{_PLAIN_KEY}(?:[ \t]*\.[ \t]*{_PLAIN_KEY})*")
_STRING: Final = re.compile(
    r"""
      \"\"\" (?: [^"\\] | \\. | "(?!"") )* "{3,5}
    | \'\'\' (?: [^'] | '(?!'') )* '{3,5}
    | " (?: [^"\\\n] | \\. )* "
    | ' [^'\n]* '
    """,
    re.DOTALL | re.VERBOSE,
)
_BARE: Final = re.compile(r"""[^\s,\[\]{}"'#=]+(?:[ ][0-9][^\s,\[\]{}"'#=]*)?""")


def key_lines(text: str) -> Mapping[Path, int]:
    """The line, counted from 1, of every key and table header of a valid TOML text."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._starts = [0, *(found.end() for found in _BREAK.finditer(text))]
        self._counts: dict[Path, int] = {}
        self.lines: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        self._skip()
        while self._at < len(self._text):
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
            self._skip()

    def _header(self) -> Path:
        is_element = self._text.startswith("[[", self._at)
        line = self._line()
        self._at += 2 if is_element else 1
        self._skip()
        keys = self._keys()
        self._at = self._text.index("]", self._at) + (2 if is_element else 1)
        path = self._resolved(keys[:-1], line)
        if is_element:
            index = self._counts.get((*path, keys[-1]), 0)
            self._counts[(*path, keys[-1])] = index + 1
            self.lines.setdefault((*path, keys[-1]), line)
            path = (*path, keys[-1], index)
        else:
            path = self._resolved(keys, line)
        self.lines.setdefault(path, line)
        return path

    def _pair(self, table: Path) -> None:
        line = self._line()
        path = table
        for key in self._keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._at = self._text.index("=", self._at) + 1
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip()
        match self._text[self._at]:
            case "{":
                self._inline_table(path)
            case "[":
                self._array(path)
            case '"' | "'":
                self._take(_STRING)
            case _:
                self._take(_BARE)

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while self._next_item("}"):
            self._pair(path)

    def _array(self, path: Path) -> None:
        self._at += 1
        index = 0
        while self._next_item("]"):
            self.lines[(*path, index)] = self._line()
            self._value((*path, index))
            index += 1

    def _next_item(self, end: str) -> bool:
        """Go to the next item of a list. False: it ended, and so does its bracket."""
        self._skip()
        if self._text[self._at] == ",":
            self._at += 1
            self._skip()
        if self._text[self._at] != end:
            return True
        self._at += 1
        return False

    def _keys(self) -> tuple[str, ...]:
        """A key; if it is not a plain one read by tomllib itself, which knows about dots, quotes and escapes."""
        text = self._take(_KEY)
        if _BARE_KEY.fullmatch(text):
            return (text,)
        nested = tomllib.loads(f"{text} = 0")
        keys: list[str] = []
        while isinstance(nested, dict):
            ((key, nested),) = nested.items()
            keys.append(key)
        return tuple(keys)

    def _resolved(self, keys: tuple[str, ...], line: int) -> Path:
        """The path of a table whose name leads through arrays of tables: through the last element of each."""
        path: Path = ()
        for key in keys:
            path = (*path, key)
            self.lines.setdefault(path, line)
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        return path

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        assert found is not None, f"not TOML at {self._text[self._at : self._at + 20]!r}"
        self._at = found.end()
        return found[0]

    def _skip(self) -> None:
        self._take(_SKIPPED)

    def _line(self) -> int:
        return bisect_right(self._starts, self._at)
