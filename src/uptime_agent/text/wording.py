"""Words for people."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

MAX_CHARACTERS: Final = 300
"""Characters of text from outside."""

_SHOWN_AS_IS: Final = 10.0
_HARMLESS_SPACE: Final = " "
_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
"""Categories that move a cursor, turn text or show nothing."""


def latency(seconds: float) -> str:
    """Write "0.4 ms", "38 ms", "1.25 s"."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    milliseconds = seconds * 1e3
    return f"{milliseconds:.0f} ms" if milliseconds >= _SHOWN_AS_IS else f"{milliseconds:.1f} ms"


def phases(measured: Mapping[str, float]) -> str:
    """Write milliseconds: "dns 0.4, connect 1.2"."""
    return ", ".join(f"{name.replace('_', ' ')} {seconds * 1e3:.1f}" for name, seconds in measured.items())


def span(seconds: float) -> str:
    """Write at most two units: "9s", "2m05s", "3h12m", "4d07h"."""
    whole = max(int(seconds), 0)
    if whole < 60:  # noqa: PLR2004 - a minute
        return f"{whole}s"
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d{hour:02}h"
    return f"{hours}h{minute:02}m" if hours else f"{minute}m{second:02}s"


def stamp(epoch: float) -> str:
    """Write UTC seconds as ISO 8601 with milliseconds."""
    text = datetime.fromtimestamp(epoch, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def printable(text: str) -> str:
    """Cut a text, and make it `harmless`."""
    return harmless(text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 3] + "...")


def harmless(text: str) -> str:
    """Escape characters that move a cursor, break or turn a line."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter if letter == _HARMLESS_SPACE or unicodedata.category(letter) not in _HIDDEN else ascii(letter)[1:-1]
        for letter in text
    )


def least(number: int, *, is_exact: bool) -> str:
    """Write a number, with "at least" unless exact."""
    return f"{number:,}" if is_exact else f"at least {number:,}"


def some(names: Sequence[str], most: int = 3) -> str:
    """Write the first names: "a, b, c, ..."."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def count(number: int, noun: str) -> str:
    """Write "1 check", "2 checks"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
