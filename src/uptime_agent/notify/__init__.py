"""Notifications: what people are told of incidents.

Lives on the event loop.
"""

from __future__ import annotations

from .channels import (
    CHANNELS,
    Channel,
    ChannelKind,
    Means,
    Message,
    MessageKind,
    Notification,
    Surroundings,
    Undelivered,
)
from .delivery import Delivery, Way, sent_test
from .entries import PREFIX, TASK
from .outbox import Outbox
from .pace import Digest, Rate, Rules

__all__ = [
    "CHANNELS",
    "PREFIX",
    "TASK",
    "Channel",
    "ChannelKind",
    "Delivery",
    "Digest",
    "Means",
    "Message",
    "MessageKind",
    "Notification",
    "Outbox",
    "Rate",
    "Rules",
    "Surroundings",
    "Undelivered",
    "Way",
    "sent_test",
]
