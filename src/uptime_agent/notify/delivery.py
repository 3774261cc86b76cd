"""The task of the outbox's jobs: deliver one message.

    the outbox has not begun                      -> waits
    settled, too old, or its channel is gone      -> the result says so
    not its turn, for the channel's rate          -> another start
    alone or in a digest                          -> sent
    not taken                                     -> retried with backoff

Each channel has its own limit: none waits for another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from logging import getLogger
from typing import Any, Final

import anyio
from attrs import frozen

from ..text import printable
from .channels import Channel, ChannelDeps, Message, MessageKind, Notification, Undelivered, message_of
from .outbox import DELIVERED, NEEDLESS, NOT_YET, SILENCED, Outbox
from .pace import MessageRate, Turns, together

logger = getLogger(__name__)

LONGEST_REST: Final = 3_600.0


@frozen(kw_only=True)
class ChannelRoute:
    """A channel in use. `timeout`: seconds."""

    channel: Channel
    timeout: float = 10.0
    rate: MessageRate | None = None


class MessageDelivery:
    """Delivers messages. `clean` masks secrets in failures."""

    def __init__(
        self, outbox: Outbox, ways: Mapping[str, ChannelRoute], means: ChannelDeps, clean: Callable[[str], str] = str
    ) -> None:
        self._outbox = outbox
        self._ways = ways
        self._means = means
        self._clean = clean
        self._turns = {name: Turns(way.rate) for name, way in ways.items()}
        self._rest_until: dict[str, float] = {}

    def follow(self, ways: Mapping[str, ChannelRoute]) -> None:
        """Use these channels. Unchanged rates keep their turns."""
        self._turns = {
            name: self._turns[name] if name in self._ways and self._ways[name].rate == way.rate else Turns(way.rate)
            for name, way in ways.items()
        }
        self._ways = ways

    async def run(self, values: Any, _digest: str | None = None) -> dict[str, Any]:
        """Deliver a job's message. Raises Undelivered to be retried."""
        await self._outbox.has_begun()
        try:
            message = message_of(values)
        except ValueError as exc:
            return {"delivery": "unreadable", "error": str(exc)}
        about = {"channel": message.channel, "kind": message.kind.value, "target": message.target}
        found = self._outbox.find(message.key)
        if found is None and self._outbox.is_coming(message.key):
            return {"delivery": NOT_YET, **about}
        if found is None:
            return {**self._outbox.settled_with(message.key), **about}
        if message.channel not in self._ways:
            return {"delivery": "there is no such channel any more", **about}
        if (left := self._outbox.wait(found.key)) != 0:
            self._outbox.postpone(found.key, left)
            return {"delivery": NOT_YET, **about}
        why_not = self._why_not(found)
        if why_not is not None:
            return {"delivery": why_not, **about}
        if (wait := self._wait(found)) > 0:
            self._outbox.postpone(found.key, wait)
            return {"delivery": NOT_YET, **about}
        return {"delivery": DELIVERED, **about, **await self._send(found, self._ways[found.channel])}

    def _why_not(self, message: Message) -> str | None:
        rules = self._outbox.rules
        expiry = rules.expiry
        if message.is_silent:
            return SILENCED
        if message.kind is MessageKind.REMINDER:
            if self._outbox.is_needless(message):  # its target may have changed meanwhile
                return NEEDLESS
            expiry = min(expiry, rules.reminders or expiry)
        since = max(message.at, message.held_until or 0.0)
        return "expired" if self._means.clock.wall() - since > expiry else None

    async def _send(self, message: Message, way: ChannelRoute) -> dict[str, Any]:
        is_alone = message.kind is MessageKind.REMINDER and message.held_until is None
        ready = [] if is_alone else self._outbox.ready(message.channel)
        notification = Notification(together(message, ready, self._outbox.rules.digest))
        remark = await self._sent(notification, way)
        others = [each for each in notification.messages if each.key != message.key]
        self._outbox.sent_together(others, notification.key)
        told: dict[str, Any] = {"key": notification.key, "text": message.text}
        told |= {"together": len(notification.messages)} if others else {}
        return told | ({} if remark is None else {"remark": self._clean(remark)})

    def _wait(self, message: Message) -> float:
        """Seconds until the message's turn, or a rest's end."""
        now = self._means.clock.monotonic()
        turn = self._outbox.turn_of(message.key)
        turn = self._turns[message.channel].take(now) if turn is None else turn
        turn = max(turn, self._rest_until.get(message.channel, now))
        self._outbox.keep_turn(message.key, turn if turn > now else None)
        return turn - now

    async def _sent(self, notification: Notification, way: ChannelRoute) -> str | None:
        try:
            return await sent(notification, way, self._means, self._clean)
        except Undelivered as exc:
            if exc.rest is not None:
                self._rest_until[notification.channel] = self._means.clock.monotonic() + min(exc.rest, LONGEST_REST)
            raise


async def sent(
    notification: Notification, way: ChannelRoute, means: ChannelDeps, clean: Callable[[str], str]
) -> str | None:
    """Send within the timeout; return the remark. Any error becomes Undelivered, without secrets."""
    try:
        with anyio.fail_after(way.timeout):
            return await way.channel.send(notification, means)
    except TimeoutError:
        text, rest = f"no answer within {way.timeout:g} s", None
    except Undelivered as exc:
        text, rest = str(exc), exc.rest
    except Exception as exc:  # noqa: BLE001 - of the channel's code or a library's: another attempt may go well
        text, rest = f"{type(exc).__name__}: {exc}", None
    raise Undelivered(printable(clean(text)), rest)


async def sent_test(name: str, way: ChannelRoute, means: ChannelDeps, clean: Callable[[str], str]) -> str | None:
    """Send a test; return the remark. Raises Undelivered."""
    now = means.clock.wall()
    message = Message(
        kind=MessageKind.TEST,
        channel=name,
        incident=f"test-{int(now * 1000)}",
        target="test",
        status="test",
        began=now,
        at=now,
    )
    return await sent(Notification((message,)), way, means, clean)
