"""The outbox's entries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, assert_never

from attrs import define, evolve

from scheduler import Job

from ..acts import ActsOf, no_acts
from .channels import Message, MessageKind

TASK: Final = "notify"

PREFIX: Final = "notify:"
"""No target has such a name."""

NEVER: Final = timedelta(days=36_500)
"""The outbox starts the job instead."""

FAR: Final = timedelta(days=3_650)
"""A job due later waits for the outbox."""


@define(eq=False)
class OutboxEntry:
    """An unsettled message and its job."""

    message: Message
    job: Job
    goes_at: float | None = None
    """When its channel's rate lets it go, in monotonic seconds."""

    @property
    def kind(self) -> MessageKind:
        """The message's kind."""
        return self.message.kind


class Entries:
    """Unsettled messages, in order of arrival. `acts_of`: silences hold messages back."""

    def __init__(self, acts_of: ActsOf = no_acts) -> None:
        self._acts_of = acts_of
        self._by_key: dict[str, OutboxEntry] = {}
        self._by_job: dict[str, OutboxEntry] = {}
        self._by_target: dict[str, dict[str, OutboxEntry]] = {}
        self._by_channel: dict[str, dict[str, OutboxEntry]] = {}

    def put(self, entry: OutboxEntry) -> None:
        """Add an entry."""
        message = entry.message
        self._by_key[message.key] = self._by_job[entry.job.id] = entry
        self._by_target.setdefault(message.target, {})[message.key] = entry
        self._by_channel.setdefault(message.channel, {})[message.key] = entry

    def discard(self, entry: OutboxEntry) -> None:
        """Remove an entry."""
        message = entry.message
        self._by_key.pop(message.key, None)
        self._by_job.pop(entry.job.id, None)
        for index, name in ((self._by_target, message.target), (self._by_channel, message.channel)):
            entries = index.get(name, {})
            entries.pop(message.key, None)
            if not entries:
                index.pop(name, None)

    def find(self, key: str) -> OutboxEntry | None:
        """The entry by its message's key."""
        return self._by_key.get(key)

    def of_job(self, id: str) -> OutboxEntry | None:
        """The entry by its job's id."""
        return self._by_job.get(id)

    def all(self) -> list[OutboxEntry]:
        """All entries."""
        return list(self._by_key.values())

    def of_target(self, target: str) -> list[OutboxEntry]:
        """A target's entries."""
        return list(self._by_target.get(target, {}).values())

    def of_channel(self, channel: str) -> list[OutboxEntry]:
        """A channel's entries."""
        return list(self._by_channel.get(channel, {}).values())

    def open_of(self, target: str) -> list[OutboxEntry]:
        """RESOLVED messages of open incidents, one per channel."""
        entries = self.of_target(target)
        return [each for each in entries if each.kind is MessageKind.RESOLVED and each.message.ended is None]

    def trigger_of(self, message: Message) -> OutboxEntry | None:
        """The incident's TRIGGER on the same channel. None: settled."""
        return self.find(evolve(message, kind=MessageKind.TRIGGER, number=0).key)

    def is_ready(self, entry: OutboxEntry, now: float) -> bool:
        """Whether a message may be sent now."""
        return self.wait(entry, now) == 0

    def silent_until(self, target: str, now: float) -> float | None:
        """Until when a target is silenced (UTC seconds), or None."""
        silence = self._acts_of(target).silenced
        return None if silence is None or silence.until is None or silence.until <= now else silence.until

    def wait(self, entry: OutboxEntry, now: float) -> float | None:
        """Seconds until a message may be settled. None: another event decides.

        RESOLVED waits for TRIGGER, and all wait for the end of a silence. A clock that was set back ends a hold.
        """
        left = self._wait(entry, now)
        if left is None or entry.message.is_silent:
            return left
        until = self.silent_until(entry.message.target, now)
        return left if until is None else max(left, until - now)

    def _wait(self, entry: OutboxEntry, now: float) -> float | None:
        message = entry.message
        match entry.kind:
            case MessageKind.RESOLVED:
                if message.ended is None or self.trigger_of(message) is not None:
                    return None
            case MessageKind.REMINDER:
                return max(message.at - now, 0.0)
            case MessageKind.TRIGGER | MessageKind.TEST:
                pass
            case _:
                assert_never(entry.kind)
        if message.held_until is None or now < message.at or message.is_silent:
            return 0.0
        return max(message.held_until - now, 0.0)


def job_id(key: str) -> str:
    """The id of a message's job."""
    return PREFIX + key


def is_same(one: Message, other: Message) -> bool:
    """Whether both concern one incident and channel."""
    return (one.incident, one.channel) == (other.incident, other.channel)


def waits_to_be_told(job: Job, now: float) -> bool:
    """Whether the outbox starts it. `now`: UTC seconds."""
    return job.next_start is None or job.next_start > instant_of(now) + FAR


def instant_of(seconds: float) -> datetime:
    """The instant of UTC seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC)
