"""Expectations of a response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from ...toml import Unfit, text
from ..contract import Status
from .decoding import Inflated, PlainBody
from .exchange import Head
from .json_path import Expectation, NoJson, parse_expectation, parse_json
from .options import Codes, describe, field_name
from .patterns import MOST_SEARCHED, Pattern

MOST_JSON: Final = 1024 * 1024
"""Bytes. Reading more would delay other checks."""

_SHOWN: Final = 100

Verdict = tuple[Status, str | None]
ReadBody = PlainBody | Inflated
_AS_EXPECTED: Final[Verdict] = (Status.UP, None)


@frozen
class Wildcards:
    """A value, in which `*` stands for any text."""

    text: str

    def fits(self, value: str) -> bool:
        """Compare in one pass."""
        first, *others = self.text.split("*")
        if not others:
            return value == first
        *middle, last = others
        end = len(value) - len(last)
        at = len(first)
        if not value.startswith(first) or not value.endswith(last) or at > end:
            return False
        for part in middle:
            found = value.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True


@frozen(kw_only=True)
class Expectations:
    """`headers`: by name in small letters; None: must be absent."""

    status: Codes = ((200, 399),)
    headers: Mapping[str, Wildcards | None] = field(factory=dict)
    contains: str | None = None
    not_contains: str | None = None
    json: tuple[Expectation, ...] = ()
    regex: Pattern | None = None

    @property
    def are_about_body(self) -> bool:
        """Whether judging needs the body."""
        return bool(self.contains or self.not_contains or self.json or self.regex)

    async def verdict(self, head: Head, body: ReadBody | None, encoding: str) -> Verdict:
        """Judge. `body` None: its encoding is unsupported."""
        error = self._of_head(head)
        if error is not None:
            return Status.DOWN, error
        if not self.are_about_body:
            return _AS_EXPECTED
        if body is None:
            error = f"cannot look for text in a body encoded as {encoding}, although identity was asked for"
            return Status.UNKNOWN, error
        error = await self._of_body(body.content)
        return _AS_EXPECTED if error is None else (Status.DOWN, error)

    def _of_head(self, head: Head) -> str | None:
        if not any(low <= head.status_code <= high for low, high in self.status):
            return f"status {head.status_code}, expected {describe(self.status)}"
        for name, wanted in self.headers.items():
            error = _of_field(name, wanted, head)
            if error is not None:
                return error
        return None

    async def _of_body(self, content: bytearray) -> str | None:
        size = f"({len(content):,} bytes)"
        if self.contains is not None and self.contains.encode() not in content:
            return f'"{self.contains}" is not in the body {size}'
        if self.not_contains is not None and self.not_contains.encode() in content:
            return f'"{self.not_contains}" is in the body {size}'
        if self.regex is not None and await self.regex.search(content) is None:
            searched = f"the first {MOST_SEARCHED:,} of {len(content):,} bytes of the body"
            place = f"the body {size}" if len(content) <= MOST_SEARCHED else searched
            return f'nothing in {place} is like "{self.regex}"'
        return self._of_json(content) if self.json else None

    def _of_json(self, content: bytearray) -> str | None:
        if len(content) > MOST_JSON:
            return f"its body is longer than the {MOST_JSON:,} bytes that are read as JSON"
        try:
            document = parse_json(content)
        except NoJson as exc:
            return f"its body is {exc} ({len(content):,} bytes)"
        return next((error for each in self.json if (error := each.why_not(document)) is not None), None)


def _of_field(name: str, wanted: Wildcards | None, head: Head) -> str | None:
    values = [value.decode("latin-1") for each, value in head.headers if each == name.encode()]
    if wanted is None:
        return f"it has the header {name}, expected none" if values else None
    if any(wanted.fits(value) for value in values):
        return None
    if not values:
        return f'it has no header {name}, expected "{wanted.text}"'
    return f'its header {name} is "{", ".join(values)[:_SHOWN]}", expected "{wanted.text}"'


def header_expectations(value: Any) -> dict[str, Wildcards | None]:
    """Read by name a text with `*`, or false."""
    if not isinstance(value, dict):
        raise Unfit('a table such as { Content-Type = "text/html*" }', value)
    return {field_name(name).lower(): _expected_field(name, each) for name, each in value.items()}


def _expected_field(name: str, value: Any) -> Wildcards | None:
    if value is False:
        return None
    if not isinstance(value, str) or not value.isprintable():
        expected = f"text on one line in which * stands for any text, or false for none, for the header {name}"
        raise Unfit(expected, value)
    return Wildcards(value)


def json_expectations(value: Any) -> tuple[Expectation, ...]:
    """Read paths with comparisons."""
    items = value if isinstance(value, list) and value else [value]
    return tuple(_json_expectation(item) for item in items)


def _json_expectation(item: Any) -> Expectation:
    try:
        return parse_expectation(text(item))
    except ValueError as exc:
        raise Unfit(str(exc), item) from None
