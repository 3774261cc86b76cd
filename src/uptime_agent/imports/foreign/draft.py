"""Drafts of tables of our file."""

from __future__ import annotations

from typing import Any, Literal

from attrs import define, field

from .table import ForeignTable


@define(eq=False)
class Hidden:
    """A value that comes from an environment variable, as `words` say."""

    about: str
    words: str
    variable: str = ""


@define(eq=False)
class Draft:
    """A table of our file. `is_dropped`: not written, as a wrong check is worse than none."""

    name: str
    url: str | None = None
    source: ForeignTable | None = None
    kind: Literal["check", "group", "maintenance", "check.step"] = "check"
    options: dict[str, Any] = field(factory=dict)
    left: dict[str, None] = field(factory=dict)
    steps: list[Draft] = field(factory=list)
    is_dropped: bool = False
    lines: dict[str, int] = field(factory=dict)
    """Lines of our options in the other file."""

    def __attrs_post_init__(self) -> None:
        if self.source is not None:
            self.left = self.source.losses

    def leave(self, what: str, line: int | None = None) -> None:
        """Note what could not be carried over."""
        if self.source is not None:
            what = self.source.located(what, line)
        elif line is not None:
            what = f"{what} (line {line})"
        self.left[what] = None

    def put(self, key: str, value: Any, line: int) -> None:
        """Set an option with its line."""
        self.options[key] = value
        self.lines[key] = line

    def drop(self, why: str, line: int | None = None) -> None:
        """Leave the whole table out."""
        self.is_dropped = True
        self.leave(why, line)

    def header(self, name: str, value: str | Hidden) -> None:
        """Send a header, unless its name is taken."""
        headers = self.options.setdefault("headers", {})
        if name.lower() not in {each.lower() for each in headers}:
            headers[name] = value


def shown(text: str) -> str:
    """Quote a text as JSON paths do."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
