"""Channels: ways of telling people, and what is told.

Offers `CHANNELS`, the kinds for a configuration, the protocol `Channel`, and values: `Message`, of one incident, and
`Notification`, one message or a digest. Knows no pace, retry or store. Lives on the event loop; calls that block have
threads.
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
