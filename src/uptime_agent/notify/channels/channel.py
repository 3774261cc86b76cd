"""The interface for new ways of telling people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

from attrs import frozen

from timerqueue import Clock

from ...checks import Resolver
from ...toml import Reader
from .notification import Notification


class Undelivered(Exception):
    """A notification that was not delivered. The text is shown after "channel NAME: ". `rest`: seconds for which the
    receiver wants no more.
    """

    __module__ = "uptime_agent.notify"  # where it is imported from, and what history says

    def __init__(self, text: str, rest: float | None = None) -> None:
        super().__init__(text)
        self.rest = rest


@frozen
class ChannelDeps:
    """Things that a channel needs and the agent provides."""

    resolver: Resolver
    clock: Clock


class Channel(Protocol):
    """A way to tell people: a frozen value. One `send` at a time, cancelled after its timeout."""

    kind: ClassVar[str]

    @property
    def place(self) -> str:
        """The receiver, without secrets."""

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never shown, logged or stored."""

    async def send(self, notification: Notification, means: ChannelDeps) -> str | None:
        """Deliver the notification, then return a remark or None. Raises Undelivered, or any error.

        Leaves nothing running, also when cancelled.
        """


@frozen
class Surroundings:
    """Where the options of channels are read. Paths in them are relative to `folder`."""

    folder: Path
    environment: Mapping[str, str]


@frozen
class ChannelKind:
    """A kind of channel. `make` raises ValueError if options conflict. `meaning`: for docs/configuration.md."""

    name: str
    make: Callable[..., Channel]
    options: Callable[[Surroundings], Mapping[str, Reader[Any]]]
    required: tuple[str, ...]
    meaning: str = ""
