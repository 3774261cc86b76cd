"""Simple regular expressions in our words."""

from __future__ import annotations

import re
from typing import Final

_ESCAPED: Final = re.compile(r"\\([^A-Za-z0-9])")
_STARS: Final = re.compile(r"\*+")
_PLAIN: Final = re.compile(r"(?:[^\\()\[\]{}|+?*^$.]|\\[^A-Za-z0-9]|(?<=[0-9])\.(?=[0-9]))*+")


def plain_text(pattern: str) -> str | None:
    """The text of a plain expression. A dot between digits is plain."""
    return _ESCAPED.sub(r"\1", pattern) if pattern and _PLAIN.fullmatch(pattern) else None


def wildcard(pattern: str) -> str | None:
    """A whole text with `*` for anything, if possible."""
    begins, ends = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith(r"\$")
    inner = pattern[begins : len(pattern) - ends]
    parts = [plain_text(each) if each else "" for each in inner.split(".*")]
    if any(each is None or "*" in each for each in parts):
        return None
    found = ("" if begins else "*") + "*".join(each or "" for each in parts) + ("" if ends else "*")
    return _STARS.sub("*", found)
