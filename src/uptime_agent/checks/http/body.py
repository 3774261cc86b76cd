"""The body of a request."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from ...text import secrets_in, sounds_secret
from ...toml import VARIABLE, Unfit, Unset, content_of

MOST_SENT: Final = 1024 * 1024
"""Bytes."""

_LONGEST_SECRET: Final = 8_000
_EXPECTED: Final = 'text, { file = "PATH" } or { env = "NAME" }'


@frozen
class Body:
    """A body to send, and `secrets` in it."""

    content: bytes = field(repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


def request_body(value: Any) -> Body:
    """Read a body. A whole file or variable is secret."""
    match value:
        case str():
            written = VARIABLE.search(value)
            if written is not None and written[0] == value:
                expected = f'{{ env = "{written[1]}" }}: no variable is replaced within a text'
                raise Unfit(expected, value, is_secret=True)
            return Body(_bounded(value.encode()), _secrets_of(value))
        case {"env": str(name), **others} if not others:
            if name not in os.environ:
                raise Unset(name, os.environ, " for the body")
            return _secret(_bounded(os.environ[name].encode(errors="surrogateescape")))
        case {"file": str(name), **others} if not others:
            return _secret(_of_file(name))
        case _:
            raise Unfit(_EXPECTED, value)


def _of_file(name: str) -> bytes:
    try:
        return _bounded(content_of(Path(name), MOST_SENT))
    except OSError as exc:
        raise Unfit(f"a file that can be read ({(exc.strerror or str(exc)).lower()})", name) from None
    except ValueError:
        raise Unfit("a file that can be read (no name of a file holds NUL)", name) from None


def _bounded(content: bytes) -> bytes:
    if len(content) > MOST_SENT:
        raise Unfit(f"a body of at most {MOST_SENT // 1024:,} KiB", content, is_secret=True)
    return content


def _secret(content: bytes) -> Body:
    text = content.decode(errors="replace").strip()
    whole = {text} if len(text) <= _LONGEST_SECRET else set()
    return Body(content, frozenset(whole | _secrets_of(text)))


def _secrets_of(text: str) -> frozenset[str]:
    try:
        found = set(_secret_values(json.loads(text), is_secret=False))
    except (ValueError, RecursionError):
        found = set(secrets_in(f"?{text}"))
    return frozenset(found)


def _secret_values(value: Any, *, is_secret: bool) -> Iterator[str]:
    match value:
        case dict():
            for key, each in value.items():
                yield from _secret_values(each, is_secret=is_secret or sounds_secret(key))
        case list():
            for each in value:
                yield from _secret_values(each, is_secret=is_secret)
        case str() if is_secret:
            yield value
        case _:
            pass
