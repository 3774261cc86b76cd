"""Notifications, in words and as JSON."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

from attrs import evolve, frozen

from ...text import our_version, wording
from .message import Message, MessageKind

LISTED: Final = 20
"""Messages in a digest's text."""

MIXED: Final = "mixed"


@frozen
class Notification:
    """One delivery: a message, or a digest."""

    messages: tuple[Message, ...]

    @property
    def is_digest(self) -> bool:
        """Several messages."""
        return len(self.messages) > 1

    @property
    def channel(self) -> str:
        """The channel's name."""
        return self.messages[0].channel

    @property
    def key(self) -> str:
        """The idempotency key; a digest's follows from its messages."""
        if not self.is_digest:
            return self.messages[0].key
        return f"{self._together}:{self.channel}:digest"

    @property
    def kind(self) -> str:
        """The message's kind, or "digest"."""
        return "digest" if self.is_digest else self.messages[0].kind.value

    @property
    def status(self) -> str:
        """Its messages' status, or "mixed"."""
        told = {_status(message) for message in self.messages}
        return told.pop() if len(told) == 1 else MIXED

    @property
    def subject(self) -> str:
        """A few words on one line."""
        if self.is_digest:
            return f"{len(self.messages)} messages of {wording.count(self._targets, 'target')}"
        message = self.messages[0]
        match message.kind:
            case MessageKind.TEST:
                words = "test"
            case MessageKind.RESOLVED:
                words = f"{'removed' if message.is_gone else 'resolved'}: {message.target}"
            case MessageKind.TRIGGER | MessageKind.REMINDER:
                words = f"{message.status}: {message.target}"
        return wording.printable(words)

    @property
    def text(self) -> str:
        """Sentences, one per line."""
        lines = [message.text for message in self.messages[:LISTED]]
        more = len(self.messages) - len(lines)
        head = [f"{self.subject}:"] if self.is_digest else []
        return "\n".join([*head, *lines, *([f"and {more} more"] if more else [])])

    @property
    def _together(self) -> str:
        return sha256("\n".join(message.key for message in self.messages).encode()).hexdigest()[:16]

    @property
    def _targets(self) -> int:
        return len({message.target for message in self.messages})

    def body(self) -> dict[str, Any]:
        """The notification as JSON."""
        common = {"key": self.key, "kind": self.kind, "channel": self.channel, "text": self.text}
        common |= {"status": self.status} if self.is_digest else {}
        sender = {"sender": f"timerqueue/{our_version()}"}
        if not self.is_digest:
            return {**common, **_about(self.messages[0]), **sender}
        each = [{"key": m.key, "kind": m.kind.value, "text": m.text, **_about(m)} for m in self.messages]
        return {**common, "count": len(each), "messages": each, **sender}

    def names(self) -> dict[str, str]:
        """Values for a template; a digest's are common to its messages."""
        first, *others = (_about(message) for message in self.messages)
        common = {name for name in first if all(other[name] == first[name] for other in others)}
        texts = {name: str(value) if name in common and value is not None else "" for name, value in first.items()}
        own = {"key": self.key, "kind": self.kind, "channel": self.channel, "text": self.text, "subject": self.subject}
        if self.is_digest:
            own |= {"status": self.status, "members": str(sum(message.members for message in self.messages))}
            own |= {} if "target" in common else {"target": wording.count(self._targets, "target")}
            own |= {} if "incident" in common else {"incident": f"digest-{self._together}"}
        return {**texts, **own, "count": str(len(self.messages))}


def _about(message: Message) -> dict[str, Any]:
    ended = message.ended
    return {
        "incident": message.incident,
        "target": message.target,
        "status": _status(message),
        "was": message.status,
        "error": message.error,
        "cause": message.cause,
        "members": message.members,
        "began": wording.stamp(message.began),
        "ended": None if ended is None else wording.stamp(ended),
        "still": message.still,
        "seconds": None if ended is None else round(max(ended - message.began, 0.0), 3),
        "reminder": message.number,
        "trigger_delivered": message.was_told,
        "acknowledged_by": message.acknowledged_by,
        "acknowledged_for": message.acknowledged_for,
    }


def _status(message: Message) -> str:
    if message.kind is not MessageKind.RESOLVED:
        return message.status
    return "removed" if message.is_gone else "up"


def example(*, is_resolved: bool = True) -> Notification:
    """A notification to try a template."""
    trigger = Message(
        kind=MessageKind.TRIGGER, channel="ops", incident="shop-0-1", target="shop", status="down", began=0.0, at=300.0
    )
    if not is_resolved:
        return Notification((trigger,))
    return Notification((evolve(trigger, kind=MessageKind.RESOLVED, ended=300.0, error='status 503, "busy"'),))
