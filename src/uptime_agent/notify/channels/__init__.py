"""Channels: ways of telling people, and what is told over them.

Offers `CHANNELS`, the kinds that a configuration may name, the protocol `Channel`, and the values that go over it:
`Message`, of one incident, and `Notification`, one of these or a digest of many. Does not know when something is sent,
how often it is tried, or where it is remembered. Lives on the event loop; what blocks has a thread of its own.
"""

from __future__ import annotations

from .channel import Channel, ChannelKind, Means, Surroundings, Undelivered
from .kinds import CHANNELS
from .message import Message, MessageKind, message_of, short_id
from .notification import Notification

__all__ = [
    "CHANNELS",
    "Channel",
    "ChannelKind",
    "Means",
    "Message",
    "MessageKind",
    "Notification",
    "Surroundings",
    "Undelivered",
    "message_of",
    "short_id",
]
