"""Messages: complete, so that another process can send them after their target is gone."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from attrs import asdict, frozen

from ...text import wording

VERSION: Final = 1
LONGEST_ID: Final = 300
"""Longer ids end in a hash."""

LARGEST: Final = 10**12
"""The largest sensible number."""

_FLAPPING: Final = "flapping"


class MessageKind(enum.Enum):
    """When a message is sent."""

    TRIGGER = "trigger"
    REMINDER = "reminder"
    RESOLVED = "resolved"
    TEST = "test"


@frozen(kw_only=True)
class Message:
    """One message to one channel. Instants in UTC seconds since 1970.

    `status`: "down" or "flapping". `cause`: the parent that is down. `members`: further targets. `ended`: None while
    open. `still`: trouble left after the end. `is_gone`: not checked any more. `number`: of a reminder, from 1. `at`:
    expiry counts from there. `held_until`: when its digest goes. `was_told`: False if the beginning was never
    delivered. `is_silent`: began and ended in a silence. `reminded`: reminders at ends of silences.
    `acknowledged_for`: the reason.
    """

    kind: MessageKind
    channel: str
    incident: str
    target: str
    status: str
    began: float
    at: float
    error: str | None = None
    cause: str | None = None
    members: int = 0
    ended: float | None = None
    still: str | None = None
    is_gone: bool = False
    number: int = 0
    held_until: float | None = None
    was_told: bool = True
    is_silent: bool = False
    reminded: int = 0
    acknowledged_by: str | None = None
    acknowledged_for: str | None = None

    @property
    def key(self) -> str:
        """The idempotency key, `incident:channel:kind`."""
        kind = self.kind.value if not self.number else f"{self.kind.value}-{self.number}"
        return f"{short_id(self.incident)}:{self.channel}:{kind}"

    @property
    def text(self) -> str:
        """One sentence."""
        match self.kind:
            case MessageKind.TEST:
                return "this is a test of the channel: nothing is wrong"
            case MessageKind.RESOLVED:
                return self._text_of_end()
            case MessageKind.REMINDER:
                return f"{self.target} {_still(self.status)} {self._for(self.at)}{self._why()}"
            case MessageKind.TRIGGER:
                return f"{self.target} {_is(self.status)}{self._why()}"

    def values(self) -> dict[str, Any]:
        """The message as JSON."""
        return {"version": VERSION, **asdict(self), "kind": self.kind.value}

    def _why(self) -> str:
        behind = f" ({wording.count(self.members, 'target')} behind it)" if self.members else ""
        cause = f", behind {self.cause}, which is down" if self.cause else ""
        return f"{behind}{cause}{f': {self.error}' if self.error else ''}"

    def _text_of_end(self) -> str:
        length = self._for(self.at if self.ended is None else self.ended)
        was = "changed between up and down" if self.status == _FLAPPING else f"was {self.status}"
        if self.is_gone:
            said = f"{self.target} is not checked any more, and {was} {length}"
        else:
            said = f"{self.target} is up again, and {was} {length}{f'; it was: {self.error}' if self.error else ''}"
        said = f"{said}; now: {self.still}" if self.still else said
        if self.acknowledged_by is not None:
            said = f"{said}; acknowledged by {self.acknowledged_by}: {self.acknowledged_for or ''}"
        return said if self.was_told else f"{said} (the alarm of {wording.stamp(self.began)} could not be delivered)"

    def _for(self, until: float) -> str:
        return f"for {wording.span(max(until - self.began, 0.0))}"


def _is(status: str) -> str:
    return "changes between up and down" if status == _FLAPPING else f"is {status}"


def _still(status: str) -> str:
    return "has changed between up and down" if status == _FLAPPING else f"is still {status},"


def short_id(incident: str) -> str:
    """An incident's id for keys."""
    if len(incident) <= LONGEST_ID:
        return incident
    return f"{incident[: LONGEST_ID - 17]}-{sha256(incident.encode()).hexdigest()[:16]}"


def message_of(values: object) -> Message:
    """Read a message from JSON. Raises ValueError."""
    if not isinstance(values, Mapping) or values.get("version") != VERSION:
        raise ValueError(f"expected a message of version {VERSION}")
    given = {name: values[name] for name in _FIELDS if name in values}
    for name, value in given.items():
        if not _FIELDS[name](value):
            raise ValueError(f"a message cannot have this value as its {name}")
    if missing := _REQUIRED - given.keys():
        raise ValueError(f"a message needs its {', '.join(sorted(missing))}")
    return Message(**{**given, "kind": MessageKind(given["kind"])})


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_some_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_instant(value: object) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 <= value <= LARGEST  # type: ignore[operator,arg-type] # it is one


def _is_some_instant(value: object) -> bool:
    return value is None or _is_instant(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_kind(value: object) -> bool:
    return isinstance(value, str) and value in {each.value for each in MessageKind}


_FIELDS: Final = {
    "kind": _is_kind,
    "channel": _is_text,
    "incident": _is_text,
    "target": _is_text,
    "status": _is_text,
    "began": _is_instant,
    "at": _is_instant,
    "error": _is_some_text,
    "cause": _is_some_text,
    "members": _is_count,
    "ended": _is_some_instant,
    "still": _is_some_text,
    "is_gone": _is_flag,
    "number": _is_count,
    "held_until": _is_some_instant,
    "was_told": _is_flag,
    "is_silent": _is_flag,
    "reminded": _is_count,
    "acknowledged_by": _is_some_text,
    "acknowledged_for": _is_some_text,
}
_REQUIRED: Final = frozenset({"kind", "channel", "incident", "target", "status", "began", "at"})
