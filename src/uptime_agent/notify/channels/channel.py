"""Channels, and kinds of them: the seam at which new ways of telling people come in."""

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
    """A notification was not taken. The text says why, in words that follow "channel NAME: ".

    `rest`: seconds for which the receiver wants to be left alone, if it has said so.
    """

    __module__ = "uptime_agent.notify"  # where it is imported from, and what history says

    def __init__(self, text: str, rest: float | None = None) -> None:
        super().__init__(text)
        self.rest = rest


@frozen
class Means:
    """The means that a channel may use: `resolver` looks names up, `clock` measures."""

    resolver: Resolver
    clock: Clock


class Channel(Protocol):
    """A way to tell people. A frozen value. Its `send` is called once at a time, and cancelled after its timeout."""

    kind: ClassVar[str]

    @property
    def place(self) -> str:
        """Where it leads to, in words for people, without secrets."""

    @property
    def secrets(self) -> frozenset[str]:
        """Texts that must not be shown, logged or stored."""

    async def send(self, notification: Notification, means: Means) -> str | None:
        """Deliver the notification: whoever is behind the channel has it when this returns, with a remark or None.

        Raises Undelivered, and whatever else comes. Nothing stays open or running, also when it is cancelled.
        """


@frozen
class Surroundings:
    """The surroundings in which options are read: files are relative to `folder`, variables are of `environment`."""

    folder: Path
    environment: Mapping[str, str]


@frozen
class ChannelKind:
    """A kind of channel: its name in the configuration, how one is made of its options, and how each option is read.

    `required`: options that must be there. `make` raises ValueError for options that do not fit together. `meaning`:
    how it tells people, in a sentence of docs/configuration.md.
    """

    name: str
    make: Callable[..., Channel]
    options: Callable[[Surroundings], Mapping[str, Reader[Any]]]
    required: tuple[str, ...]
    meaning: str = ""
