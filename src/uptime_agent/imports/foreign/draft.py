"""Drafts: tables of our file, while they are read from another monitor's."""

from __future__ import annotations

from typing import Any, Literal

from attrs import define, field

from .table import Table


@define(eq=False)
class Hidden:
    """A value from an environment variable, not copied. `words` say which value; `about` names the variable by default."""

    about: str
    words: str
    variable: str = ""


@define(eq=False)
class Draft:
    """A table of our file, and in words what could not be carried over.

    `is_dropped`: not written, as a wrong check is worse than none.
    """

    name: str
    url: str | None = None
    source: Table | None = None
    kind: Literal["check", "group", "maintenance", "check.step"] = "check"
    options: dict[str, Any] = field(factory=dict)
    left: dict[str, None] = field(factory=dict)
    steps: list[Draft] = field(factory=list)
    is_dropped: bool = False
    lines: dict[str, int] = field(factory=dict)
    """Where our options and the URL stand in the other file, if known."""

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
        """Set an option, and its line in the other file."""
        self.options[key] = value
        self.lines[key] = line

    def drop(self, why: str, line: int | None = None) -> None:
        """Leave the whole table out."""
        self.is_dropped = True
        self.leave(why, line)

    def header(self, name: str, value: str | Hidden) -> None:
        """Send a header, unless its name is set."""
        headers = self.options.setdefault("headers", {})
        if name.lower() not in {each.lower() for each in headers}:
            headers[name] = value


def shown(text: str) -> str:
    """Quote a text for comparisons of JSON paths."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
