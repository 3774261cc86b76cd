"""Readers of TOML values."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from schedule import ScheduleError, duration

from ..text import harmless, masked

T = TypeVar("T")
Reader = Callable[[Any], T]
"""Turns a TOML value into another. Raises Unfit."""

_SIZE: Final = re.compile(r"([0-9]{1,9}) ?([MG]i?B)")
_UNITS: Final = {"MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30}
VARIABLE: Final = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
"""A variable in a shell's notation, never replaced here."""

_HIDDEN: Final = "a value that is not shown"
_LONGEST_SHOWN: Final = 60
_LONGEST_LABEL: Final = 512
"""The scheduler's bound."""


class Unfit(Exception):
    """A value cannot be used. The text says what was expected and found."""

    def __init__(self, expected: str, found: object, *, is_secret: bool = False) -> None:
        super().__init__(f"expected {expected}, found {_HIDDEN if is_secret else shown(found)}")
        self.expected = expected


class Unset(Unfit):
    """An environment variable is missing. `purpose`: as in " for the header Accept"."""

    def __init__(self, variable: str, environment: Iterable[str], purpose: str = "") -> None:
        similar = get_close_matches(variable, environment, n=1, cutoff=0.75)
        advice = f"did you mean {similar[0]}?" if similar else f"set it for the agent, as in {variable}=... timerqueue"
        text = f"expected the environment variable {variable}{purpose}, found none of that name: {advice}"
        Exception.__init__(self, text)
        self.expected = f"the environment variable {variable}"


def shown(value: object) -> str:
    """Name a value without credentials."""
    match value:
        case str():
            text = masked(value)
            return f'"{harmless(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "...")}"'
        case bool():
            return str(value).lower()
        case int() if abs(value) >= 10**_LONGEST_SHOWN:  # Python refuses to write some of these
            return f"a number of more than {_LONGEST_SHOWN} digits"
        case int() | float():
            return f"the number {value}"
        case dict():
            return "a table"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return f"a {type(value).__name__}"


def text(value: Any) -> str:
    """Read a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise Unfit("text", value)
    return value


def label(value: Any) -> str:
    """Read a name, all of whose characters are visible."""
    found = text(value)
    if not found.isprintable():
        hidden = next(each for each in found if not each.isprintable())
        raise Unfit(f"text that can be seen, without {hidden!a} ({unicodedata.name(hidden, 'control')})", value)
    if len(found) > _LONGEST_LABEL:
        raise Unfit(f"at most {_LONGEST_LABEL} characters, not {len(found):,}", value)
    return found


def boolean(value: Any) -> bool:
    """Read true or false, not 1 or "yes"."""
    if not isinstance(value, bool):
        raise Unfit("true or false", value)
    return value


def seconds(value: Any) -> float:
    """Read a duration above zero."""
    try:
        if isinstance(value, (str, int, float)) and (found := duration(value).total_seconds()):
            return found
    except (ScheduleError, ValueError):
        pass
    raise Unfit('a duration such as "30s", "1m30s" or "500ms"', value)


def megabytes(value: Any) -> int:
    """Read a size such as "256 MiB", in bytes."""
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None or not int(found[1]):
        raise Unfit('a size such as "64 MiB" or "1 GiB"', value)
    return int(found[1]) * _UNITS[found[2]]


def bounded(reader: Reader[T]) -> Reader[T | None]:
    """Make a reader that also takes inf, as None."""

    def read(value: Any) -> T | None:
        if isinstance(value, float) and value == math.inf:
            return None
        try:
            return reader(value)
        except Unfit as exc:
            raise Unfit(f"{exc.expected}, or inf for no bound", value) from None

    return read


def labels(value: Any) -> tuple[str, ...]:
    """Read a list of names."""
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise Unfit('a list of texts such as ["a", "b"]', value)
    return tuple(label(each) for each in value)


def whole(low: int, high: int, unit: str = "") -> Reader[int]:
    """Make a reader of whole numbers from `low` to `high`."""
    counted = f"a whole number of {unit}" if unit else "a whole number"

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Unfit(f"{counted} from {low:,} to {high:,}", value)
        return value

    return read


def one_of(choices: Mapping[Any, T]) -> Reader[T]:
    """Make a reader of choices; returns their meanings."""

    def read(value: Any) -> T:
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value in choices:
            return choices[value]
        raise Unfit(f"one of {alternatives(choices)}", value)

    return read


def alternatives(values: Iterable[object]) -> str:
    """Write '"a", "b" or "c"'."""
    *most, last = (f'"{each}"' if isinstance(each, str) else str(each) for each in values)
    return f"{', '.join(most)} or {last}" if most else last
