"""Channels: ways of telling people.

Lives on the event loop; blocking calls have threads.
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
