"""ICMP: a host answers echo requests."""

from __future__ import annotations

import itertools
import os
import struct
from typing import Final

import anyio
from attrs import define, field, frozen

from ..text import Url
from ..toml import Option, whole
from .contract import NO_PORT, Attempt, Clash, Finding, Kind, NotInTime, Status
from .net import Budget, Echo, EchoUnsupported, echo

MOST_PACKETS: Final = 20
MOST_BYTES: Final = 256 * 1024
LONGEST_WAIT: Final = 2.0
"""Seconds after which a packet counts as lost."""

_SHARE: Final = 0.9
"""Of the time, for waiting: the rest is for the result."""

_MARK: Final = struct.Struct("!QQd")
_MARKS: Final = itertools.count(1)


@frozen(kw_only=True)
class IcmpCheck:
    """Degraded if packets are lost, down if more than `max_lost`."""

    url: Url
    packets: int = 1
    max_lost: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.url.target not in {"", "/"}:
            raise Clash("url", f"expected nothing after icmp://{self.url.authority}")
        if self.max_lost is not None and self.max_lost >= self.packets:
            raise Clash("max_lost", f"of {self.packets} packets fewer can be lost: it would never be down")

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        return self.url.secrets

    async def attempt(self, at: Attempt) -> Finding:
        """Send packets. Unknown if this process may not."""
        mark = _MARK.pack(next(_MARKS), os.getpid(), at.watch.clock.monotonic())
        try:
            with echo(at, Budget(MOST_BYTES), mark) as socket:
                round_ = _Round(socket, at)
                await round_.run(self.packets, min(_SHARE * at.connect_within / self.packets, LONGEST_WAIT))
        except EchoUnsupported as exc:
            return Finding(status=Status.UNKNOWN, error=str(exc))
        return self._judged(list(round_.times.values()))

    def _judged(self, times: list[float]) -> Finding:
        lost = self.packets - len(times)
        error = None if not lost else f"{lost} of {self.packets} packets lost"
        most = self.packets - 1 if self.max_lost is None else self.max_lost
        if not times:
            raise NotInTime(f"no answer to {self.packets} packets" if self.packets > 1 else "no answer to its packet")
        detail = {
            "packets": self.packets,
            "lost": lost,
            "rtt_min": round(min(times), 6),
            "rtt_avg": round(sum(times) / len(times), 6),
            "rtt_max": round(max(times), 6),
        }
        status = Status.DOWN if lost > most else Status.DEGRADED if lost else Status.UP
        return Finding(status=status, error=error, detail=detail)


@define(eq=False)
class _Round:
    """`times`: seconds, by packet number."""

    socket: Echo
    at: Attempt
    sent: dict[int, float] = field(factory=dict)
    times: dict[int, float] = field(factory=dict)

    async def run(self, packets: int, wait: float) -> None:
        """Wait `wait` seconds for each. Later answers count too."""
        self.at.watch.begin("connect")
        for number in range(1, packets + 1):
            self.sent[number] = self.at.watch.clock.monotonic()
            await self.socket.send(number)
            with anyio.move_on_after(wait):
                while number not in self.times:
                    self._note(await self.socket.receive())
            while (found := self.socket.received()) is not None:  # we may have been late ourselves
                self._note(found)

    def _note(self, number: int) -> None:
        if number in self.sent and number not in self.times:
            self.times[number] = self.at.watch.clock.monotonic() - self.sent[number]
            if len(self.times) == 1:
                self.at.watch.end()


ICMP: Final = Kind(
    "icmp",
    {"icmp": NO_PORT},
    IcmpCheck,
    {
        "packets": Option(
            whole(1, MOST_PACKETS),
            "echo requests, sent one after another. Each is waited for, up to 2 s, but no longer than they all fit "
            "into the timeout",
            1,
        ),
        "max_lost": Option(
            whole(0, MOST_PACKETS),
            "if more packets are lost, the target is down; if fewer are, it is degraded. By default all but one may be",
        ),
    },
    meaning="up if the host answers echo requests (pings)",
)
