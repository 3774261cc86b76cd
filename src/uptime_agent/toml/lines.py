"""The line of each TOML key, which tomllib does not tell.

A path leads through tables: ("check", 0, "headers", "Accept").
"""

from __future__ import annotations

import re
import sys
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

from ..text import sounds_secret

Path = tuple[str | int, ...]

_SKIPPED: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BREAK: Final = re.compile(r"\n")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_KEY: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY: Final = re.compile(rf"{_PLAIN_KEY}(?:[ \t]*\.[ \t]*{_PLAIN_KEY})*")
_STRING: Final = re.compile(
    r"""
      \"\"\" (?: [^"\\] | \\. | "(?!"") )*+ "{3,5}
    | \'\'\' (?: [^'] | '(?!'') )*+ '{3,5}
    | " (?: [^"\\\n] | \\. )*+ "
    | ' [^'\n]* '
    """,
    re.DOTALL | re.VERBOSE,
)
_BARE: Final = re.compile(r"""[^\s,\[\]{}"'#=]+(?:[ ][0-9][^\s,\[\]{}"'#=]*)?""")

_ERROR_PLACE: Final = re.compile(r" \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)$")
_HEADER: Final = re.compile(r"\s*\[\[?[^\[\],]+\]\]?\s*(#.*)?")
_MAY_BE_SECRET: Final = re.compile(r"@|\\|cookie|bearer|basic|send|body|expect|contains|store|postgres", re.IGNORECASE)
_OF_HEADERS: Final = re.compile(r"header|\\", re.IGNORECASE)
_HEADERS: Final = re.compile("header", re.IGNORECASE)
_ENDS_A_TABLE: Final = re.compile(r"\}\s*(?:#|$)")
_UNQUOTED_KEY: Final = re.compile(r"""[^\s"'=#]*[:*/@]""")
_WORD: Final = re.compile(r"""[^\s"'=#]+""")
_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")
_UNQUOTED: Final = re.compile(r"""[^"'\[{][^"']*""")
_GIVEN_KEY: Final = re.compile(rf"\s*({_KEY.pattern})\s*=")
_TRUTHS: Final = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
_NUMBER: Final = re.compile(r"[0-9](?:_?[0-9])*+")
_LONGEST_QUOTED: Final = 80
_LONGEST_ADVISED: Final = 500


def what_is_wrong(error: tomllib.TOMLDecodeError, text: str) -> tuple[int, str]:
    """The line and mistake of an invalid text, without possible secrets."""
    message = str(error)
    place = _ERROR_PLACE.search(message)
    number = int(place[1]) if place and place[1] else text.count("\n") + 1
    column = f" at column {place[2]}" if place and place[2] else " at the end" if place else ""
    said = _ERROR_PLACE.sub("", message)
    told = f"not TOML: {said[:1].lower()}{said[1:]}{column}"
    before = text.split("\n")[:number]
    return number, told if _may_hold_a_secret(before) else told + _quoted(before[-1]) + _advice(said, before[-1])


def long_number(text: str) -> tuple[int, str]:
    """The line of a number too long for Python."""
    most = sys.get_int_max_str_digits()
    found = next((each for each in _NUMBER.finditer(text) if len(each[0].replace("_", "")) > most), None)
    line = text.count("\n", 0, found.start()) + 1 if found else 0
    return line, f"a number has more than {most:,} digits"


def _may_hold_a_secret(lines: list[str]) -> bool:
    """In doubt, it may."""
    last = lines[-1]
    table = next((at for at in range(len(lines) - 1, -1, -1) if _HEADER.fullmatch(lines[at])), 0)
    is_among_secrets = any(map(_OF_HEADERS.search, lines[table:])) or any(map(_goes_on, lines))
    return bool(is_among_secrets or _MAY_BE_SECRET.search(last) or sounds_secret(last) or len(last) > _LONGEST_ADVISED)


def _goes_on(line: str) -> bool:
    if '"""' in line or "'''" in line:
        return True
    *_, header = None, *_HEADERS.finditer(line, 0, max(line.rfind("="), 0))
    return header is not None and not _ENDS_A_TABLE.search(line, line.index("=", header.end()))


def _quoted(line: str) -> str:
    found = line.strip()
    return found and f": {found if len(found) <= _LONGEST_QUOTED else found[: _LONGEST_QUOTED - 3] + '...'}"


def _advice(said: str, line: str) -> str:
    if said.startswith("Cannot overwrite") and (given := _GIVEN_KEY.match(line)):
        return f" (the key {given[1]} stands there twice)"
    if said.startswith("Cannot declare") and line.strip().startswith("[check]"):
        return " (each check begins with [[check]], in double brackets)"
    key, is_pair, value = (part.strip() for part in line.partition("="))
    if is_pair and _WORD.fullmatch(key) and _UNQUOTED_KEY.match(key):
        return f" (a key with ':' or '*' needs quotes: \"{key}\" = {value})"
    value = value.partition("#")[0].rstrip()
    if not said.startswith(("Invalid value", "Expected newline")) or not _PLAIN_WORD.fullmatch(key):
        return ""
    if truth := _TRUTHS.get(value.lower()):
        return f" (did you mean {key} = {truth}?)"
    return f' (text needs quotes: {key} = "{value}")' if _UNQUOTED.fullmatch(value) else ""


class KeyLines(Mapping[Path, int]):
    """The line, from 1, of every key and header, scanned at first use."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getitem__(self, path: Path) -> int:
        return self._lines[path]

    def __iter__(self) -> Iterator[Path]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    @cached_property
    def _lines(self) -> dict[Path, int]:
        scanner = _Scanner(self._text)
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
        self._skip()
        if self._text[self._at] == ",":
            self._at += 1
            self._skip()
        if self._text[self._at] != end:
            return True
        self._at += 1
        return False

    def _keys(self) -> tuple[str, ...]:
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
        """A path leads through the last element of an array of tables."""
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
