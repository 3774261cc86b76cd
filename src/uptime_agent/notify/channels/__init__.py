"""Channels: ways of telling people.

Lives on the event loop; blocking calls have threads.
"""

from __future__ import annotations

from .channel import Channel, ChannelDeps, ChannelKind, Surroundings, Undelivered
from .kinds import CHANNELS
from .message import Message, MessageKind, message_of, short_id
from .notification import Notification

__all__ = [
    "CHANNELS",
    "Channel",
    "ChannelDeps",
    "ChannelKind",
    "Message",
    "MessageKind",
    "Notification",
    "Surroundings",
    "Undelivered",
    "message_of",
    "short_id",
]
