"""A change by a user, as a value, and its values as short JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from .._plan import instant_of
from .._values import job_of_scope
from ..stores import StoredChange

LONGEST_VALUE: Final = 1_000
"""Characters of one value as JSON."""

LONGEST: Final = 4_000
"""Characters of all values before, or after, the change."""

_encode: Final = json.JSONEncoder(default=str).encode


@frozen(kw_only=True)
class Change:
    """A change of a job, a pause, a set or the limits, and who made it.

    `at`: aware, in UTC. `act`: the verb, such as "update" or "pause". `scope`: "job:" and an id, "*" for all jobs,
    "tag:" and a tag, "set:" and an owner, or "limits". `actor`: the name given to `acting_as`; None: code.

    `before`, `after`: the values that differ, as JSON; None: there was nothing. A value longer than 1,000 characters is
    a text that says so.
    """

    at: datetime
    act: str
    scope: str
    actor: str | None
    reason: str | None
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None

    @property
    def job_id(self) -> str | None:
        """The changed job. None: it is no change of one job."""
        return job_of_scope(self.scope)


def change_of(row: StoredChange) -> Change:
    return Change(
        at=instant_of(row.at_us),
        act=row.act,
        scope=row.scope,
        actor=row.actor,
        reason=row.reason,
        before=_read(row.before),
        after=_read(row.after),
    )


def short_text(values: Mapping[str, Any] | None) -> str | None:
    """Return the values as JSON of bounded length."""
    if values is None:
        return None
    whole = _encode(values)
    if len(whole) <= LONGEST_VALUE:
        return whole
    found: dict[str, Any] = {}
    left = LONGEST
    for name, value in values.items():
        text = _encode(value)
        if len(text) > min(LONGEST_VALUE, left):
            value = f"... ({len(text)} characters)"  # noqa: PLW2901 - in its place
        left -= min(len(text), LONGEST_VALUE)
        found[name] = value
        if left <= 0:
            break
    return _encode(found)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values that differ, as they were and as they are."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: before.get(name) for name in names}, {name: after.get(name) for name in names}


def _read(text: str | None) -> Mapping[str, object] | None:
    """Rows may be written by hand: what is no JSON object is shown as it is."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"text": text}
