"""Texts that one request hands on to the next, in place of `{name}`.

They come from a server, so they are escaped for their place, or refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, quote_plus

from attrs import evolve, frozen

from ...text import Url
from ..contract import CheckFailed
from .body import Body
from .exchange import Head
from .json_path import JsonPath, NoJson, NotThere, parse_json, shown
from .patterns import Pattern

MAX_CHARACTERS: Final = 8_000
"""Characters."""

PLACE: Final = re.compile(r"\{([a-z_][a-z0-9_]{0,40})\}")
_IN_URL: Final = re.compile(r"%7B([a-z_][a-z0-9_]{0,40})%7D", re.IGNORECASE)
_IN_HEADER: Final = re.compile(r"[\x20-\x7e]*")


class DoesNotFit(Exception):
    """A text does not fit its place."""


@frozen
class Take:
    """A text at a path in JSON, in a header, or a pattern's first group."""

    name: str
    json: JsonPath | None = None
    header: str | None = None
    regex: Pattern | None = None

    async def out_of(self, head: Head, content: bytes | bytearray) -> str:
        """Take it. Raises CheckFailed if it is absent."""
        if self.json is not None:
            return self._of_json(content)
        source = content if self.header is None else self._of_header(head)
        if self.regex is None:
            return _bounded(self.name, source.decode("latin-1"))
        found = await self.regex.search(source)
        if found is None:
            raise CheckFailed(f'there is no {{{self.name}}} to hand on: nothing is like "{self.regex}"')
        return _bounded(self.name, found[1] if len(found) > 1 else found[0])

    def _of_json(self, content: bytes | bytearray) -> str:
        assert self.json is not None
        try:
            found = self.json.find(parse_json(content))
        except NoJson as exc:
            raise CheckFailed(f"there is no {{{self.name}}} to hand on: its body is {exc}") from None
        except NotThere:
            raise CheckFailed(f"there is no {{{self.name}}} to hand on: there is no {self.json} in its JSON") from None
        if isinstance(found, (dict, list)) or found is None:
            raise CheckFailed(f"there is no {{{self.name}}} to hand on: {self.json} is {shown(found)}")
        return _bounded(self.name, found if isinstance(found, str) else json.dumps(found))

    def _of_header(self, head: Head) -> bytes:
        assert self.header is not None
        name = self.header.lower().encode()
        found = next((bytes(value) for each, value in head.headers if each == name), None)
        if found is None:
            raise CheckFailed(f"there is no {{{self.name}}} to hand on: it has no header {self.header}")
        return found


def _bounded(name: str, found: str) -> str:
    if len(found) > MAX_CHARACTERS:
        raise CheckFailed(f"{{{name}}} is too long to hand on: {len(found):,} characters, more than {MAX_CHARACTERS:,}")
    return found


def names_in(url: Url, headers: Mapping[str, str]) -> set[str]:
    """The names of texts that URL and headers need."""
    texts = " ".join(headers.values())
    return {each.lower() for each in _IN_URL.findall(url.target)} | set(PLACE.findall(texts))


def filled_url(url: Url, values: Mapping[str, str]) -> Url:
    """Fill path and query. Raises Unfit."""
    return evolve(url, target=_IN_URL.sub(lambda found: _segment(found[1].lower(), values), url.target))


def _segment(name: str, values: Mapping[str, str]) -> str:
    if values.get(name) in (".", ".."):
        raise DoesNotFit(f"{{{name}}} is {values[name]}, which would lead elsewhere in a URL")
    return quote(values[name], safe="")


def filled_headers(headers: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Fill header values. Raises Unfit."""
    return {name: PLACE.sub(lambda found: _in_header(found[1], values), value) for name, value in headers.items()}


def _in_header(name: str, values: Mapping[str, str]) -> str:
    if not _IN_HEADER.fullmatch(values[name]):
        raise DoesNotFit(f"{{{name}}} cannot stand in a header: it has more than printable ASCII")
    return values[name]


def filled_body(body: Body, headers: Mapping[str, str], values: Mapping[str, str]) -> Body:
    """Fill texts in, escaped as JSON or form."""
    if not values or b"{" not in body.content:
        return body
    try:
        text = body.content.decode()
    except UnicodeDecodeError:
        return body
    escaped = {name: _escaped(value, _kind(text, headers)) for name, value in values.items()}
    return evolve(body, content=PLACE.sub(lambda found: escaped.get(found[1], found[0]), text).encode())


def _kind(text: str, headers: Mapping[str, str]) -> str:
    said = next((value.lower() for name, value in headers.items() if name.lower() == "content-type"), "")
    if "json" in said or "form-urlencoded" in said:
        return "json" if "json" in said else "form"
    try:
        return "json" if isinstance(json.loads(PLACE.sub("0", text)), (dict, list)) else ""
    except (ValueError, RecursionError):
        return ""


def _escaped(value: str, kind: str) -> str:
    match kind:
        case "json":
            return json.dumps(value)[1:-1]
        case "form":
            return quote_plus(value)
        case _:
            return value
