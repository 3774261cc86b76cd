"""Notifications: what people are told of incidents.

Lives on the event loop.
"""

from __future__ import annotations

from .channels import (
    CHANNELS,
    Channel,
    ChannelDeps,
    ChannelKind,
    Message,
    MessageKind,
    Notification,
    Surroundings,
    Undelivered,
)
from .delivery import ChannelRoute, MessageDelivery, sent_test
from .entries import PREFIX, TASK
from .outbox import Outbox
from .pace import Digest, MessageRate, Rules

__all__ = [
    "CHANNELS",
    "PREFIX",
    "TASK",
    "Channel",
    "ChannelDeps",
    "ChannelKind",
    "ChannelRoute",
    "Digest",
    "Message",
    "MessageDelivery",
    "MessageKind",
    "MessageRate",
    "Notification",
    "Outbox",
    "Rules",
    "Surroundings",
    "Undelivered",
    "sent_test",
]
