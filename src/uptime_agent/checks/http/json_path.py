r"""Paths into JSON: a member, an element, and a comparison of the value there.

    $.status == "ok"        $.queue.length < 100        $.nodes[0]['display name'] != null        $.nodes[-1].id

Without a comparison a value must be there, null included. `==` and `!=` tell types apart, so 1 is not true; `<`, `<=`,
`>`, `>=` are for two numbers or two texts. A path takes one step for each part: there are no filters, wildcards or
functions.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

MAX_CHARACTERS: Final = 1_000
"""Characters."""

_PART: Final = re.compile(
    r"""
      \. (?P<member> [^\W\d] [\w-]*+ )
    | \[ [ ]*+ (?: (?P<element> -?[0-9]{1,9} ) | (?P<quoted> '(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+" ) ) [ ]*+ \]
    """,
    re.VERBOSE | re.DOTALL,
)
_COMPARISON: Final = re.compile(r"\s*+(==|!=|<=|>=|<|>)\s*+(.+?)\s*+", re.DOTALL)
_QUOTE: Final = re.compile(r"""\\.|\"""", re.DOTALL)
_AS_JSON: Final = {"\\'": "'", '"': '\\"'}
_LONGEST_SHOWN: Final = 60

Scalar = str | int | float | bool | None


def _is_equal(found: Any, wanted: Scalar) -> bool:
    return isinstance(found, bool) is isinstance(wanted, bool) and bool(found == wanted)


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": _is_equal,
    "!=": lambda found, wanted: not _is_equal(found, wanted),
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OF_ANY_TYPE: Final = ("==", "!=")


class NoJson(ValueError):
    """Says why a text is no JSON, after "its body is"."""


class NotThere(LookupError):
    """A path leads nowhere."""


@frozen
class JsonPath:
    """A path into a document."""

    text: str
    parts: tuple[str | int, ...]

    def __str__(self) -> str:
        return self.text

    def find(self, document: Any) -> Any:
        """Find the value. Raises NotThere."""
        found = document
        for part in self.parts:
            found = _step(found, part)
        return found


@frozen
class Comparison:
    """Compares the value at a path."""

    path: JsonPath
    operator: str
    value: Scalar

    def why_not(self, document: Any) -> str | None:
        """Say why it fails; None: it holds."""
        try:
            found = self.path.find(document)
        except NotThere:
            return f"there is no {self.path} in its JSON"
        if self.operator not in _OF_ANY_TYPE and not _are_comparable(found, self.value):
            return f"{self.path} is {shown(found)}, which is neither {self.operator} {shown(self.value)} nor not"
        if _OPERATORS[self.operator](found, self.value):
            return None
        return f"{self.path} is {shown(found)}, expected {self.operator} {shown(self.value)}"


@frozen
class PathExists:
    """A path must lead to a value."""

    path: JsonPath

    def why_not(self, document: Any) -> str | None:
        """Say why it fails; None: it holds."""
        try:
            self.path.find(document)
        except NotThere:
            return f"there is no {self.path} in its JSON"
        return None


Expectation = Comparison | PathExists


def parse_path(text: str) -> JsonPath:
    """Read a path without a comparison. Raises ValueError."""
    found = parse_expectation(text)
    if not isinstance(found, PathExists):
        raise ValueError(f"a path without a comparison, such as {found.path}")  # noqa: TRY004 - of a text
    return found.path


def parse_expectation(text: str) -> Expectation:
    """Read a path, maybe with a comparison. Raises ValueError."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"a path of at most {MAX_CHARACTERS:,} characters")
    if not text.startswith("$"):
        raise ValueError("a path that begins with $, such as $.status")
    parts, end = _parts(text)
    path = JsonPath(text[:end], parts)
    if end == len(text.rstrip()):
        return PathExists(path)
    found = _COMPARISON.fullmatch(text, end)
    if found is None:
        raise ValueError(
            f"after {path} another .member, ['member'] or [0], or a comparison such as == \"ok\" (==, !=, <, <=, >, >=)"
        )
    value = _literal(found[2])
    if found[1] not in _OF_ANY_TYPE and (isinstance(value, bool) or value is None):
        raise ValueError(f"a number or a text after {found[1]}")
    return Comparison(path, found[1], value)


def parse_json(content: bytes | bytearray) -> Any:
    """Read a document. Raises NoJson."""
    try:
        return json.loads(content.decode(), parse_constant=_refused)
    except UnicodeDecodeError:
        raise NoJson("no JSON: it is not UTF-8") from None
    except RecursionError:
        raise NoJson("no JSON that can be read: it is nested too deep") from None
    except json.JSONDecodeError as exc:
        raise NoJson(f"no JSON, from character {exc.pos + 1:,} on") from None
    except ValueError:  # a number of more digits than Python reads
        raise NoJson("no JSON that can be read: it has a number that makes no sense") from None


def shown(value: Any) -> str:
    """Write a value as JSON, if short."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case int() if abs(value) >= 10**_LONGEST_SHOWN:  # Python refuses to write some of these
            return f"a number of more than {_LONGEST_SHOWN} digits"
        case _:
            text = json.dumps(value, ensure_ascii=False)
            return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _refused(constant: str) -> None:
    raise ValueError(constant)


def _step(found: Any, part: str | int) -> Any:
    match found, part:
        case dict(), str() if part in found:
            return found[part]
        case list(), int() if -len(found) <= part < len(found):
            return found[part]
        case _:
            raise NotThere(part)


def _parts(text: str) -> tuple[tuple[str | int, ...], int]:
    parts: list[str | int] = []
    end = 1
    while found := _PART.match(text, end):
        if found["element"] is not None:
            parts.append(int(found["element"]))
        else:
            parts.append(_unquoted(found["quoted"]) if found["member"] is None else found["member"])
        end = found.end()
    return tuple(parts), end


def _literal(text: str) -> Scalar:
    if text[0] in "'\"":
        return _unquoted(text)
    try:
        value = json.loads(text, parse_constant=_refused)
    except ValueError:
        value = ()
    if not isinstance(value, (str, int, float, type(None))):
        expected = 'a number, true, false, null or a "text" to compare with'
        raise ValueError(f"{expected}, not {text[:_LONGEST_SHOWN]}")  # noqa: TRY004 - of a text
    return value


def _unquoted(text: str) -> str:
    inner = text[1:-1] if len(text) > 1 and text[-1] == text[0] else None
    if inner is not None and text[0] == "'":
        inner = _QUOTE.sub(lambda quote: _AS_JSON.get(quote[0], quote[0]), inner)
    try:
        found: Any = json.loads(f'"{inner}"') if inner is not None else None
    except ValueError:
        found = None
    if not isinstance(found, str):
        raise ValueError(f"a text that ends with its quote, not {text[:_LONGEST_SHOWN]}")  # noqa: TRY004 - of a text
    return found


def _are_comparable(found: Any, wanted: Scalar) -> bool:
    kinds: Sequence[type | tuple[type, ...]] = (str, (int, float))
    return not isinstance(found, bool) and any(isinstance(found, each) and isinstance(wanted, each) for each in kinds)
