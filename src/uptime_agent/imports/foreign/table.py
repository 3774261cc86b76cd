"""Tables of another monitor's file. Untaken keys are told with their lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import define, field

from .building import Items, Mapped, NotImported, written

_TRUE: Final = frozenset({"true", "yes", "on", "y", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "n", "0", ""})
_MOST_DIGITS: Final = 18


@define(eq=False)
class ForeignTable:
    """A table. A key without a value counts as absent.

    `losses`: what could not be carried over, shared with inner tables. `path` precedes their keys.
    """

    of: Mapped
    losses: dict[str, None] = field(factory=dict)
    path: str = ""
    place: str = ""
    """Follows a line, as in "line 3 of prometheus.yml"."""
    _taken: set[str] = field(factory=set)
    _within: dict[str, ForeignTable] = field(factory=dict)

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.of.line

    def __contains__(self, key: str) -> bool:
        return self.of.values.get(key) is not None

    def line_of(self, key: str) -> int:
        """A key's line, or the table's."""
        return self.of.lines.get(key, self.of.line)

    def lose(self, what: str, line: int | None = None) -> None:
        """Note what could not be carried over, with its line."""
        self.losses[self.located(what, line)] = None

    def located(self, what: str, line: int | None = None) -> str:
        """Add a line to words."""
        return f"{what} (line {self.line if line is None else line}{self.place})"

    def lose_key(self, key: str, why: str = "") -> None:
        """Note a present key as lost."""
        self._taken.add(key)
        if key in self:
            self.lose(f"the key {self.path}{key}{f': {why}' if why else ''}", self.line_of(key))

    def take(self, key: str) -> Any:
        """Take a plain value, Mapped or Items."""
        self._taken.add(key)
        return self.of.values.get(key)

    def text(self, key: str, default: str = "") -> str:
        """Take a text, or a number as written."""
        value = self.take(key)
        if value is None:
            return default
        if isinstance(value, (Mapped, Items, bytes)):
            self._misfit(key, "a text")
            return default
        return written(value)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Take a boolean, such as `off`."""
        value = self.take(key)
        if value is None:
            return default
        word = "" if isinstance(value, (Mapped, Items)) else written(value).lower()
        if isinstance(value, (Mapped, Items)) or word not in _TRUE | _FALSE:
            self._misfit(key, "true or false")
            return default
        return word in _TRUE

    def whole(self, key: str, default: int = 0) -> int:
        """Take a whole number from 0."""
        value = self.take(key)
        if value is None:
            return default
        digits = "" if isinstance(value, (bool, Mapped, Items)) else written(value).removesuffix(".0")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
            self._misfit(key, "a whole number")
            return default
        return int(digits)

    def texts(self, key: str) -> list[str]:
        """Take one or several texts."""
        return [text for text, _ in self.lined(key)]

    def lined(self, key: str) -> list[tuple[str, int]]:
        """Take texts with their lines."""
        value = self.take(key)
        if value is None:
            return []
        items = value if isinstance(value, Items) else Items([value], [self.line_of(key)], self.line_of(key))
        found: list[tuple[str, int]] = []
        for each, line in zip(items.values, items.lines, strict=True):
            if isinstance(each, (Mapped, Items, bytes)) or each is None:
                self.lose(f"the key {self.path}{key}: expected a list of texts", line)
            else:
                found.append((written(each), line))
        return found

    def table(self, key: str) -> ForeignTable:
        """Enter an inner table; absent: empty."""
        if key in self._within:
            return self._within[key]
        value = self.take(key)
        if value is not None and not isinstance(value, Mapped):
            self._misfit(key, "a table")
            value = None
        found = ForeignTable(value or Mapped({}, {}, self.line_of(key)), self.losses, f"{self.path}{key}.", self.place)
        self._within[key] = found
        return found

    def tables(self, key: str) -> Iterator[ForeignTable]:
        """Enter a list's tables. Each has its own losses."""
        value = self.take(key)
        if value is not None and not isinstance(value, Items):
            self._misfit(key, "a list of tables")
            return
        for each, line in zip(*((value.values, value.lines) if value else ((), ())), strict=True):
            if isinstance(each, Mapped):
                yield ForeignTable(each, place=self.place)
            else:
                self.lose(f"the key {self.path}{key}: expected a list of tables", line)

    def skip(self) -> None:
        """Take every key: another reader reads them."""
        self._taken.update(self.of.values)

    def __iter__(self) -> Iterator[str]:
        return (key for key, value in self.of.values.items() if value is not None)

    def rest(self, silent: Mapping[str, tuple[Any, ...]] | None = None, why: Mapping[str, str] | None = None) -> None:
        """Note untaken keys, here and within. By key, `silent`: defaults without effect; `why`: an alternative."""
        for key in self.of.values:
            if key not in self._taken and not _says_nothing(self.of.values[key], (silent or {}).get(key, ())):
                self.lose_key(key, (why or {}).get(key, ""))
        for each in self._within.values():
            each.rest()

    def _misfit(self, key: str, expected: str) -> None:
        self.lose(f"the key {self.path}{key}: expected {expected}", self.line_of(key))


def _says_nothing(value: Any, silent: tuple[Any, ...]) -> bool:
    """1 and true differ."""
    return value is None or any(type(value) is type(each) and value == each for each in silent)


def table_of(value: Any, where: str) -> ForeignTable:
    """A whole file's table. Raises NotImported."""
    if not isinstance(value, Mapped):
        found = "a list" if isinstance(value, Items) else "nothing" if value is None else type(value).__name__
        raise NotImported(f"{where}: expected a table, found {found}")
    return ForeignTable(value)
