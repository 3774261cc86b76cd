"""Sizes of limits as short JSON: as they are, and as they will be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from timerqueue import TaskPool

from .._fleet import Fleet, Rate
from .._shape import to_json

ALL: Final = "limit"
"""The limit of all tasks."""


def said_of_sizes(
    pool: TaskPool, limit: float | None, limits: Mapping[str, float | Fleet | Rate]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the present and the new sizes of the limits that are given. null: no limit."""
    present = pool.statistics().limits
    before = {name: to_json(present[name].size) for name in limits if name in present}
    after = {name: _said(size) for name, size in limits.items()}
    if limit is not None:
        before, after = {ALL: to_json(pool.capacity), **before}, {ALL: to_json(limit), **after}
    return before, after


def _said(size: float | Fleet | Rate) -> Any:
    match size:
        case Fleet():
            inner = Rate(size.units, size.seconds) if size.seconds else size.units
            return {**(_said(inner) if isinstance(inner, Rate) else {"units": inner}), "fleet": True}
        case Rate():
            return {"units": size.units, "window": size.seconds}
        case _:
            return to_json(size)
