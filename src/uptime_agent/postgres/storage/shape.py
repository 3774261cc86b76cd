"""A probe's table, and how it follows a newer probe."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ..contract import Column, Probe
from .errors import Unstorable

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
RESERVED: Final = frozenset({"meta", "outcome", "outcomes", "probe_column", "sample", "series"})
"""Our own tables and views."""
OURS: Final = "sample_"
"""Prefix of our own columns."""


def table_of(probe: Probe) -> str:
    """Name the probe's table."""
    return f"probe_{probe.name}"


def check_names(probe: Probe) -> None:
    """Raise Unstorable unless names fit a table."""
    names = [column.name for column in probe.columns]
    if not _NAME.fullmatch(probe.name) or probe.name in RESERVED or probe.name.startswith("probe_"):
        msg = f"a probe cannot be called {probe.name!r}: 1 to 40 of a-z, 0-9 and _, and none of {sorted(RESERVED)}"
        raise Unstorable(msg)
    wrong = [name for name in names if not _NAME.fullmatch(name) or name.startswith(OURS)]
    if wrong or len(set(names)) < len(names) or not names:
        msg = (
            f"the columns of probe {probe.name} must be 1 to 40 of a-z, 0-9 and _, without {OURS} at their beginning, "
            f"each once: {', '.join(names)}"
        )
        raise Unstorable(msg)


def columns_to_add(probe: Probe, there: Mapping[str, str]) -> list[Column]:
    """Return missing columns. `there`: types by name.

    Raises Unstorable if a type changed: stored values would change their meaning.
    """
    check_names(probe)
    for column in probe.columns:
        if there.get(column.name, column.type.value) != column.type.value:
            msg = (
                f"column {column.name} of probe {probe.name} is {column.type.value}, and was {there[column.name]} "
                "when its table was made: give the column another name"
            )
            raise Unstorable(msg)
    return [column for column in probe.columns if column.name not in there]
