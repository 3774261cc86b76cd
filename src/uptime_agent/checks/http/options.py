"""Readers of the options of HTTP checks that take more than a line."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from ...toml import VARIABLE, Secret, Unfit, Unset, text_of_file

Codes = tuple[tuple[int, int], ...]
"""Ranges of status codes, both ends included."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_METHOD: Final = re.compile(r"[A-Z][A-Z0-9_-]{0,29}")
_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
_RANGE: Final = re.compile(r"([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?")
_TOO_LARGE: Final = 1000
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})
_EXPECTED: Final = 'a status such as 200, "200-299" or a list of these'


def status_codes(value: Any) -> Codes:
    """Read a status, a range, or a list."""
    items = value if isinstance(value, list) and value else [value]
    return tuple(_range(item, value) for item in items)


def describe(codes: Codes) -> str:
    """Write ranges as in "200-299, 404"."""
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in codes)


def method(value: Any) -> str:
    """Read any method but CONNECT, which makes a tunnel."""
    if not isinstance(value, str) or not _METHOD.fullmatch(value) or value == "CONNECT":
        small = isinstance(value, str) and _METHOD.fullmatch(value.upper())
        advice = f" (in capitals: {value.upper()})" if small and value != value.upper() else ""
        raise Unfit(f'a method such as "GET", "POST" or "PROPFIND"{advice}', value)
    return value


def headers(value: Any) -> dict[str, str]:
    """Read headers. A value may refer to a variable of the environment, or to a file."""
    if not isinstance(value, dict):
        raise Unfit('a table such as { Accept = "text/html" }', value)
    return {field_name(name): _header_value(name, each) for name, each in value.items()}


def _range(item: Any, whole: Any) -> tuple[int, int]:
    is_number = isinstance(item, int) and not isinstance(item, bool) and 0 <= item < _TOO_LARGE
    found = _RANGE.fullmatch(str(item)) if is_number or isinstance(item, str) else None
    if found is None:
        raise Unfit(_EXPECTED, item if not isinstance(whole, list) or whole else whole)
    low, high = int(found[1]), int(found[2] or found[1])
    if low > high:
        raise Unfit(_EXPECTED, item)
    return low, high


def field_name(name: str) -> str:
    """Return the name of a header field. Raises Unfit if it is invalid, or decides a message's length."""
    if not _TOKEN.fullmatch(name):
        raise Unfit("names of header fields such as Accept", name)
    if name.lower() in _FRAMING:
        raise Unfit("names of header fields other than those that say how long a request is", name)
    return name


def _header_value(name: str, value: Any) -> str:
    match value:
        case {"env": str(variable), **others} if not others:
            found = os.environ.get(variable)
            if found is None:
                raise Unset(variable, os.environ, f" for the header {name}")
            value = Secret(found.strip())
        case {"file": str(path), **others} if not others:
            value = Secret(text_of_file(Path(path)).strip())
        case str() if written := VARIABLE.search(value):
            if "${" in value or (written[0] == value and value.isupper()):
                expected = f'{{ env = "{written[1]}" }}, with the whole value in the variable, for the header {name}'
                raise Unfit(f"{expected}: no variable is replaced within a text", value, is_secret=True)
        case _:
            pass
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        expected = f'text on one line, {{ env = "NAME" }} or {{ file = "PATH" }}, for the header {name}'
        raise Unfit(expected, value, is_secret=True)
    return value if isinstance(value, Secret) else value.strip()
