"""TCP: the target accepts connections and answers as expected."""

from __future__ import annotations

import ssl
from typing import Final, assert_never

from attrs import frozen

from ...text import Url
from ...toml import Option, boolean, text
from ..contract import Attempt, Clash, Finding, Kind
from ..net import Budget, certificates, dialled, expiry_of, with_expiry
from .dialogue import MOST_READ, Conversation, Expect, Search, Send, StartTls, Step, dialogue

_LAST_READ: Final = 65_536
"""Bytes besides the searched ones."""


@frozen(kw_only=True)
class TcpCheck:
    """Connects, and has the `dialogue`, or sends `send` and waits for `expect`."""

    url: Url
    send: str | None = None
    expect: str | None = None
    dialogue: tuple[Step, ...] = ()
    tls: bool = False
    verify: bool = True
    ca_file: str | None = None
    cert_expires_within: float | None = None

    def __attrs_post_init__(self) -> None:
        has_starttls = StartTls() in self.dialogue
        if self.dialogue and (self.send is not None or self.expect is not None):
            raise Clash("dialogue", "there is send or expect too: make them steps of it")
        if self.tls and has_starttls:
            raise Clash("dialogue", "starttls is for connections without tls = true")
        if self.dialogue.count(StartTls()) > 1:
            raise Clash("dialogue", "TLS begins once: there is more than one starttls")
        given = {
            "verify": not self.verify,
            "ca_file": self.ca_file is not None,
            "cert_expires_within": self.cert_expires_within is not None,
        }
        if any(given.values()) and not (self.tls or has_starttls):
            key = next(key for key in given if given[key])
            raise Clash(key, "is for TLS: add tls = true, or a step { starttls = true }")
        if self.tls or has_starttls:
            self._context()  # reading the certificates takes longer than a check: not while checks run

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        return self.url.secrets

    @property
    def steps(self) -> tuple[Step, ...]:
        """The dialogue, also of `send` and `expect`."""
        if self.dialogue:
            return self.dialogue
        said = () if self.send is None else (Send(self.send),)
        return said if self.expect is None else (*said, Expect(self.expect))

    async def attempt(self, at: Attempt) -> Finding:
        """Connect and converse."""
        tls, budget = self._context() if self.tls else None, Budget(MOST_READ + _LAST_READ)
        host, expiry = self.url.seen_by_servers.host, None
        async with dialled(at, self.url.port, budget, tls=tls, host=host) as stream:
            conversation = Conversation(stream, at.watch)
            expiry = None if tls is None else expiry_of(stream, host)
            for number, step in enumerate(self.steps, start=1):
                conversation.begin(f"step {number}, {step.word}: " if self.dialogue else "")
                match step:
                    case Send():
                        await conversation.send(step.text)
                    case Expect() | Search():
                        await conversation.expect(step)
                    case StartTls():
                        expiry = expiry_of(await conversation.start_tls(self._context(), host), host)
                    case _:
                        assert_never(step)
        return with_expiry(Finding(), expiry, at.watch.clock.wall(), self.cert_expires_within)

    def _context(self) -> ssl.SSLContext:
        return certificates.context(self.ca_file, verify=self.verify)


TCP: Final = Kind(
    "tcp",
    {"tcp": None},
    TcpCheck,
    {
        "send": Option(text, "is sent as soon as the connection stands"),
        "expect": Option(text, "must be among the first 64 KiB that come"),
        "dialogue": Option(
            dialogue,
            "what is said and expected, in place of `send` and `expect`. See [dialogues](agent/checks.md#dialogues)",
        ),
        "tls": Option(boolean, "whether the connection begins with TLS", False),  # noqa: FBT003 - the default
        **certificates.OPTIONS,
    },
    meaning="up if something accepts connections and, where asked to, says what it should",
)
