"""How many messages a channel gets, and which go together. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from attrs import define, field, frozen

from .channels import Message

LARGEST_DIGEST: Final = 100
"""Messages."""


@frozen
class MessageRate:
    """At most `most` notifications in `seconds`."""

    most: int
    seconds: float


@frozen
class Digest:
    """After `above` messages within `seconds`, more go together, that time later."""

    above: int
    seconds: float


@frozen(kw_only=True)
class Rules:
    """The rules of all channels, in seconds. `reminders` None: none. `digest` None: messages go alone.

    `expiry`: the age at which a message is given up.
    """

    reminders: float | None = None
    digest: Digest | None = Digest(10, 30.0)
    expiry: float = 86_400.0


@define(eq=False)
class Turns:
    """A channel's turns, in monotonic seconds. `rate` None: unlimited."""

    rate: MessageRate | None
    _taken: deque[float] = field(factory=deque)

    def take(self, now: float) -> float:
        """Return the next turn's instant."""
        if self.rate is None:
            return now
        turn = now
        if len(self._taken) >= self.rate.most:
            turn = max(now, self._taken.popleft() + self.rate.seconds)
        self._taken.append(turn)
        return turn


@define(eq=False)
class PaceWindow:
    """A channel's recent messages. `digest` None: none is held."""

    digest: Digest | None
    _arisen: deque[float] = field(factory=deque)
    _until: float = 0.0

    def hold_until(self, now: float) -> float | None:
        """Count a message; return until when a digest holds it."""
        if self.digest is None:
            return None
        while self._arisen and not now - self.digest.seconds < self._arisen[0] <= now:
            self._arisen.popleft()
        self._arisen.append(now)
        if len(self._arisen) <= self.digest.above:
            return None
        if not now < self._until <= now + self.digest.seconds:
            self._until = now + self.digest.seconds
        return self._until


def together(first: Message, ready: Sequence[Message], digest: Digest | None) -> tuple[Message, ...]:
    """Return the messages that go with `first`, itself included, in order of arrival.

    `ready`: sendable ones. A digest held them, or they fill one, as after an outage.
    """
    if digest is None:
        return (first,)
    others = [message for message in ready if message.key != first.key]
    if len(others) < digest.above and not (first.held_until and any(each.held_until for each in others)):
        return (first,)
    chosen = others if len(others) >= digest.above else [each for each in others if each.held_until]
    oldest = sorted(chosen, key=lambda message: message.at)[: LARGEST_DIGEST - 1]
    return tuple(sorted((first, *oldest), key=lambda message: message.at))
