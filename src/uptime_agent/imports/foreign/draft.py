"""Drafts: what is known of a table of our file while it is read out of another monitor's."""

from __future__ import annotations

from typing import Any, Literal

from attrs import define, field

from .table import Table


@define(eq=False)
class Hidden:
    """A value that is not copied: it comes from an environment variable. `words` say what it has to be there.

    `variable`: which; by default one that is named after the check and `about`.
    """

    about: str
    words: str
    variable: str = ""


@define(eq=False)
class Draft:
    """A table of our file, key by key, and in words what of the other one's could not be carried over.

    `kind`: which of our tables it is. `url` None: it has none. `steps`: those of a check of several.
    `is_dropped`: it is not written, for a check that says the wrong thing is worse than none.
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
    """Where the other file says what became an option of ours, or the URL, if it is known."""

    def __attrs_post_init__(self) -> None:
        """Share with its table what that loses."""
        if self.source is not None:
            self.left = self.source.losses

    def leave(self, what: str, line: int | None = None) -> None:
        """Note what could not be carried over, with its line if that is known."""
        if self.source is not None:
            what = self.source.located(what, line)
        elif line is not None:
            what = f"{what} (line {line})"
        self.left[what] = None

    def put(self, key: str, value: Any, line: int) -> None:
        """Set an option, and remember where the other file says so."""
        self.options[key] = value
        self.lines[key] = line

    def drop(self, why: str, line: int | None = None) -> None:
        """Leave all of it out, and say why."""
        self.is_dropped = True
        self.leave(why, line)

    def header(self, name: str, value: str | Hidden) -> None:
        """Send a header field, unless one of that name is sent already."""
        headers = self.options.setdefault("headers", {})
        if name.lower() not in {each.lower() for each in headers}:
            headers[name] = value


def shown(text: str) -> str:
    """A text in quotes, as paths into JSON are compared with it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
