"""Channels and their kinds: the interface for new ways of telling people."""

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
    """A notification was refused. The text says why, in words that follow "channel NAME: ".

    `rest`: seconds of rest that the receiver asks for.
    """

    __module__ = "uptime_agent.notify"  # where it is imported from, and what history says

    def __init__(self, text: str, rest: float | None = None) -> None:
        super().__init__(text)
        self.rest = rest


@frozen
class Means:
    """The means of a channel: `resolver` looks names up, `clock` measures."""

    resolver: Resolver
    clock: Clock


class Channel(Protocol):
    """A way to tell people. A frozen value. One `send` at a time; it is cancelled after its timeout."""

    kind: ClassVar[str]

    @property
    def place(self) -> str:
        """The receiver, in words for people, without secrets."""

    @property
    def secrets(self) -> frozenset[str]:
        """Texts that must not be shown, logged or stored."""

    async def send(self, notification: Notification, means: Means) -> str | None:
        """Deliver the notification: the receiver has it on return. Returns a remark, or None.

        Raises Undelivered, or any other error. Nothing stays open or running, also when cancelled.
        """


@frozen
class Surroundings:
    """Where options are read: files are relative to `folder`, variables come from `environment`."""

    folder: Path
    environment: Mapping[str, str]


@frozen
class ChannelKind:
    """A kind of channel: its name, how its options are read, and how a channel is made.

    `required`: necessary options. `make` raises ValueError for options that conflict. `meaning`: a sentence of
    docs/configuration.md.
    """

    name: str
    make: Callable[..., Channel]
    options: Callable[[Surroundings], Mapping[str, Reader[Any]]]
    required: tuple[str, ...]
    meaning: str = ""
