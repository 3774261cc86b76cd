"""Drafts: what is known of a check while it is read out of another monitor's file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from ..text import sounds_secret

_VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9]+")


class NotImported(Exception):
    """A file is none of that monitor's. The text says what was expected, and what was found."""


@define(eq=False)
class Draft:
    """A check of our file, key by key, and in words what of the other one's could not be carried over.

    `variables`: environment variables that it needs, each with what its value has to be.
    """

    name: str
    url: str
    options: dict[str, Any] = field(factory=dict)
    left: list[str] = field(factory=list)
    variables: dict[str, str] = field(factory=dict)

    def leave(self, what: str) -> None:
        """Note what could not be carried over."""
        if what not in self.left:
            self.left.append(what)

    def take_headers(self, headers: Mapping[str, Any]) -> None:
        """Take header fields over. A value that sounds secret goes into the environment, not into the file."""
        if headers:
            self.options["headers"] = {name: self._value(name, str(value)) for name, value in headers.items()}

    def hide(self, about: str, words: str) -> dict[str, str]:
        """Let a value come from the environment. `words` say what it has to be there."""
        variable = _NOT_IN_A_NAME.sub("_", f"{self.name}_{about}").strip("_").upper()
        variable = f"_{variable}" if variable[:1].isdigit() else variable
        self.variables[variable] = words
        return {"env": variable}

    def _value(self, name: str, value: str) -> str | dict[str, str]:
        found = _VARIABLE.fullmatch(value)
        if found is not None:
            variable = found[1] or found[2]
            self.variables[variable] = f"the header {name}, as before"
            return {"env": variable}
        if sounds_secret(name) or _VARIABLE.search(value):
            return self.hide(name, f"the header {name}, as it stands in the other file")
        return value


def table_of(value: Any, where: str) -> Mapping[str, Any]:
    """Return a table of a file; nothing is an empty one. Raises NotImported."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise NotImported(f"{where}: expected a table, found {type(value).__name__}")
    return {str(name): each for name, each in value.items()}


def list_of(value: Any, where: str) -> list[Any]:
    """Return a list of a file; nothing is an empty one. Raises NotImported."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotImported(f"{where}: expected a list, found {type(value).__name__}")
    return value


def whole_of(draft: Draft, table: Mapping[str, Any], key: str, default: int = 0) -> int:
    """Return a whole number of a table. One that makes no sense is left out, and told."""
    value = table.get(key)
    if value is None:
        return default
    if isinstance(value, int) and value >= 0:
        return int(value)
    draft.leave(f"{key} = {value!r}")
    return default
