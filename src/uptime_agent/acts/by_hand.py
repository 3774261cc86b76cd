"""Acts as rows of a store, for who writes them from another process. Pure.

A running agent follows its rows within a second: see `keeping`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from schedule import At

from ..instants import microseconds
from .act import Act, ActKind, Scope, ScopeKind, act_id
from .jobs import NEVER, PRIORITY, TASK


@frozen(kw_only=True)
class Change:
    """One transaction. `put`: the act's row. `gone`: the id of a row. `paused`: another job's pause."""

    put: tuple[str, str, str, str, str, str] | None = None
    gone: str | None = None
    paused: tuple[str, str | None, int | None] | None = None


COLUMNS: Final = ("id", "task", "schedule", "args", "options", "tags")
"""Of `Change.put`."""


def begun(act: Act) -> Change:
    """The rows of an act."""
    since = datetime.fromtimestamp(act.since, UTC)
    end = since + NEVER if act.until is None else datetime.fromtimestamp(act.until, UTC)
    options = {"priority": PRIORITY, "missed": "latest", "delivery": "at_least_once"}
    if act.scope.kind is not ScopeKind.TAG:
        options["place"] = act.scope.name
    row = (act.id, TASK, str(At(end)), json.dumps([act.values()]), json.dumps(options), json.dumps([TASK]))
    if act.kind is not ActKind.PAUSE:
        return Change(put=row)
    until_us = None if act.until is None else microseconds(act.until)
    return Change(put=row, paused=(act.scope.name, act.reason, until_us))


def ended(kind: ActKind, scope: Scope) -> Change:
    """The rows without an act."""
    paused = (scope.name, None, None) if kind is ActKind.PAUSE else None
    return Change(gone=act_id(kind, scope), paused=paused)
