"""Acts of people: values, and what they say. Pure."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, assert_never

from attrs import frozen

from ..text import wording

VERSION: Final = 1
PREFIX: Final = "act:"
"""No target has such a name."""

LONGEST_REASON: Final = 500
LONGEST_ACTOR: Final = 200
LONGEST_NAME: Final = 300
LARGEST: Final = 10**11
"""UTC seconds."""


class ActKind(enum.Enum):
    """A kind of act."""

    ACKNOWLEDGE = "acknowledge"
    SILENCE = "silence"
    PAUSE = "pause"
    MAINTENANCE = "maintenance"
    CHECK = "check"


class ScopeKind(enum.Enum):
    """A kind of scope."""

    TARGET = "target"
    GROUP = "group"
    TAG = "tag"


@frozen
class Scope:
    """A target, a group with its members, or all targets with a tag."""

    kind: ScopeKind
    name: str

    def __str__(self) -> str:
        name = wording.printable(self.name)
        return name if self.kind is ScopeKind.TARGET else f"the {self.kind.value} {name}"


@frozen(kw_only=True)
class Act:
    """One act. Instants in UTC seconds. `until` None: until a person or a recovery ends it.

    `incident`: the acknowledged incident's id. None: the node that has the target finds it.
    """

    kind: ActKind
    scope: Scope
    actor: str
    reason: str
    since: float
    until: float | None = None
    incident: str | None = None

    @property
    def id(self) -> str:
        """The id of its job. Another act of the same kind and scope replaces it."""
        return act_id(self.kind, self.scope)

    @property
    def text(self) -> str:
        """State, end, actor and reason: "silenced until ... by ann: deployment"."""
        until = "" if self.until is None else f" until {wording.stamp(self.until)}"
        return f"{_state(self.kind)}{until} by {wording.printable(self.actor)}: {wording.printable(self.reason)}"

    @property
    def sentence(self) -> str:
        """Scope, state, end, actor and reason."""
        return f"{self.scope} is {self.text}"

    def holds(self, now: float) -> bool:
        """Whether it has not ended by its time."""
        return self.until is None or now < self.until

    def values(self) -> dict[str, Any]:
        """The act as JSON."""
        return {
            "version": VERSION,
            "act": self.kind.value,
            "of": self.scope.kind.value,
            "name": self.scope.name,
            "actor": self.actor,
            "reason": self.reason,
            "since": self.since,
            "until": self.until,
            "incident": self.incident,
        }

    def shown(self) -> dict[str, Any]:
        """The act as JSON for people's programs: instants in ISO 8601."""
        return {
            "act": self.kind.value,
            self.scope.kind.value: self.scope.name,
            "actor": self.actor,
            "reason": self.reason,
            "since": wording.stamp(self.since),
            "until": None if self.until is None else wording.stamp(self.until),
        }


def act_id(kind: ActKind, scope: Scope) -> str:
    """The id of the job that keeps an act. Long names end in a hash."""
    name = scope.name
    if len(name) > LONGEST_NAME:
        name = f"{name[:LONGEST_NAME]}-{sha256(name.encode()).hexdigest()[:16]}"
    return f"{PREFIX}{kind.value}:{scope.kind.value}:{name}"


def act_of(values: object) -> Act:
    """Read an act from JSON. Raises ValueError: another program may have written anything."""
    if not isinstance(values, Mapping) or values.get("version") != VERSION:
        msg = f"expected an act of version {VERSION}"
        raise ValueError(msg)
    until, incident = values.get("until"), values.get("incident")
    return Act(
        kind=ActKind(values.get("act")),
        scope=Scope(ScopeKind(values.get("of")), _text(values, "name")),
        actor=_text(values, "actor")[:LONGEST_ACTOR],
        reason=_text(values, "reason")[:LONGEST_REASON],
        since=_instant(values.get("since"), "since"),
        until=None if until is None else _instant(until, "until"),
        incident=None if incident is None else _text(values, "incident"),
    )


def _text(values: Mapping[str, Any], name: str) -> str:
    found = values.get(name)
    if not isinstance(found, str) or not found:
        msg = f"{name}: expected a text, found {found!r:.100}"
        raise ValueError(msg)
    return found


def _instant(value: object, name: str) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 <= value <= LARGEST:  # type: ignore[arg-type,operator] # it is one
        msg = f"{name}: expected seconds since 1970, found {value!r:.100}"
        raise ValueError(msg)
    return float(value)  # type: ignore[arg-type] # as above


def _state(kind: ActKind) -> str:
    match kind:
        case ActKind.ACKNOWLEDGE:
            return "acknowledged"
        case ActKind.SILENCE:
            return "silenced"
        case ActKind.PAUSE:
            return "paused"
        case ActKind.MAINTENANCE:
            return "in maintenance"
        case ActKind.CHECK:
            return "checked"
        case _:
            assert_never(kind)
