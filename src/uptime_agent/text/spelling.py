r"""One spelling of a text, however it was quoted or escaped.

Texts come back in JSON, as Python writes them (\" and \u00e4), as in URLs (%2F) or HTML (&quot;), or in small letters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from typing import Final
from urllib.parse import unquote

from attrs import frozen

_ROUNDS: Final = 3
_ESCAPE: Final = re.compile(
    r"""
      %[0-7][0-9a-f] | %[cd][0-9a-f]%[89ab][0-9a-f] | %e[0-9a-f](?:%[89ab][0-9a-f]){2} | %f[0-7](?:%[89ab][0-9a-f]){3}
    | \\u[0-9a-f]{4} | \\x[0-9a-f]{2} | \\.
    | &(?:amp|lt|gt|quot|apos|\#[0-9]{1,6}|\#x[0-9a-f]{1,5});
    | \+
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)

_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t"}
_LEFT_OUT: Final = frozenset("\"'`\\")
_MARKS: Final = _LEFT_OUT | frozenset("%&+")
"""A text without these letters has no escape."""


@frozen
class Spelling:
    """A spelling. `starts` and `ends`: each letter's original places."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def spelling(given: str) -> Spelling:
    """Spell a text."""
    small = given.lower()
    if not (_MARKS & set(given)) and len(small) == len(given):  # nearly all texts
        return Spelling(small, range(len(given)), range(1, len(given) + 1))
    text, places = given, list(range(len(given) + 1))
    for _ in range(_ROUNDS):
        text, places, has_changed = _read(text, places)
        if not has_changed:
            break
    kept = [at for at, letter in enumerate(text) if letter not in _LEFT_OUT]
    return Spelling(
        "".join(_small(text[at]) for at in kept), [places[at] for at in kept], [places[at + 1] for at in kept]
    )


def _read(text: str, places: list[int]) -> tuple[str, list[int], bool]:
    letters: list[str] = []
    at: list[int] = []
    end = 0
    for escape in _ESCAPE.finditer(text):
        letters += (text[end : escape.start()], _letter(escape[0]))
        at += places[end : escape.start() + 1]
        end = escape.end()
    found = "".join((*letters, text[end:]))
    return found, at + places[end:], found != text


def _letter(escape: str) -> str:
    match escape[0]:
        case "%":
            return unquote(escape, errors="replace")[:1]
        case "&":
            return unescape(escape)[:1] or "&"
        case "+":
            return " "
        case _:
            digits = escape[2:]
            return chr(int(digits, 16)) if digits else _LETTERS.get(escape[1], escape[1])


def _small(letter: str) -> str:
    small = letter.lower()
    return small if len(small) == 1 else letter
