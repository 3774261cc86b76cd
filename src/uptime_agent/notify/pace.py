"""Pace: how many messages a channel gets per time, and which go together. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from attrs import define, field, frozen

from .channels import Message

LARGEST_DIGEST: Final = 100
"""Messages in one digest. More make several digests."""


@frozen
class Rate:
    """At most `count` notifications in `seconds`."""

    most: int
    seconds: float


@frozen
class Digest:
    """When more than `above` messages arise within `seconds`, the rest go together, that time later."""

    above: int
    seconds: float


@frozen(kw_only=True)
class Rules:
    """The rules of all channels, lengths in seconds. `reminders` None: none. `digest` None: each message alone.

    `expiry`: the age at which an undelivered message is given up.
    """

    reminders: float | None = None
    digest: Digest | None = Digest(10, 30.0)
    expiry: float = 86_400.0


@define(eq=False)
class Turns:
    """The turns of one channel under its rate, in seconds of a clock that is never set. `rate` None: unlimited."""

    rate: Rate | None
    _taken: deque[float] = field(factory=deque)

    def take(self, now: float) -> float:
        """Take the next turn, and return its instant, not before `now`."""
        if self.rate is None:
            return now
        turn = now
        if len(self._taken) >= self.rate.most:
            turn = max(now, self._taken.popleft() + self.rate.seconds)
        self._taken.append(turn)
        return turn


@define(eq=False)
class Window:
    """The recent messages to one channel. `digest` None: none is held back."""

    digest: Digest | None
    _arisen: deque[float] = field(factory=deque)
    _until: float = 0.0

    def hold_until(self, now: float) -> float | None:
        """Count a message that arises `now`; return until when a digest holds it. None: it goes at once.

        The first message too many opens a digest, which is sent after the length of the window.
        """
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
    """The messages that go with `first`, itself included, in order of arrival.

    `ready`: all messages to its channel that may be sent now. They go together if a digest held one of them, or if more
    came than a digest begins with. That happens after an outage of the channel.
    """
    if digest is None:
        return (first,)
    others = [message for message in ready if message.key != first.key]
    if len(others) < digest.above and not (first.held_until and any(each.held_until for each in others)):
        return (first,)
    chosen = others if len(others) >= digest.above else [each for each in others if each.held_until]
    oldest = sorted(chosen, key=lambda message: message.at)[: LARGEST_DIGEST - 1]
    return tuple(sorted((first, *oldest), key=lambda message: message.at))
