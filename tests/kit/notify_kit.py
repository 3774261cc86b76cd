"""What the tests of channels share: a message, and a channel made as the configuration makes it."""

from pathlib import Path

from uptime_agent.notify import CHANNELS, Message, MessageKind, Surroundings

MESSAGE = Message(
    kind=MessageKind.TRIGGER,
    channel="ops",
    incident="shop-1",
    target="shop",
    status="down",
    began=1e9,
    at=1e9,
    error="connection refused",
)


def channel(kind, folder=Path(), environment=None, **options):
    """Make a channel as the configuration does. `options` are its keys, as a file has them."""
    readers = CHANNELS[kind].options(Surroundings(folder, environment or {}))
    return CHANNELS[kind].make(**{key: readers[key](value) for key, value in options.items()})
