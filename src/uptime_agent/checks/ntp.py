"""NTP: a server tells the time, vouches for it, and is near enough to our clock.

Half of the time on the way is uncertain: an offset counts as far as it exceeds that. Times (RFC 5905) are 32 bits of
seconds and 32 of their fraction, only subtracted: 2036's new era changes nothing.
"""

from __future__ import annotations

import struct
from typing import Final

from attrs import field, frozen

from ..text import Url, wording
from ..toml import Option, seconds, whole
from .contract import Attempt, Clash, Finding, Kind, Status
from .net import Budget, datagrams

MOST_BYTES: Final = 16 * 1024
_PACKET: Final = struct.Struct("!BBbbIII4Q")
_ASK: Final = 0x23

_SERVER: Final = 4
_UNSYNCHRONISED: Final = 3
_HIGHEST_STRATUM: Final = 15
_SINCE_1900: Final = 2_208_988_800
_WHOLE: Final = 2**64
_SHORT: Final = 2**16


@frozen(kw_only=True)
class NtpAnswer:
    """Seconds: `offset` of the server's clock from ours, `delay` of the way there and back."""

    leap: int
    stratum: int
    reference: bytes
    offset: float
    delay: float
    root_delay: float
    root_dispersion: float

    @property
    def least_offset(self) -> float:
        """Seconds by which the server's clock is certainly off."""
        return max(abs(self.offset) - self.delay / 2, 0.0)


def instant(wall: float) -> int:
    """UTC seconds since 1970 as NTP time."""
    return round((wall + _SINCE_1900) * 2**32) % _WHOLE


def _difference(later: int, earlier: int) -> float:
    """Seconds; the smallest of the possible values."""
    return ((later - earlier + _WHOLE // 2) % _WHOLE - _WHOLE // 2) / 2**32


def question(sent: int) -> bytes:
    """Write a question sent at an NTP time."""
    return _PACKET.pack(_ASK, 0, 0, 0, 0, 0, 0, 0, 0, 0, sent)


def read(data: bytes, sent: set[int], received: int) -> NtpAnswer | None:
    """Read an answer to one of our questions, or None."""
    if len(data) < _PACKET.size:
        return None
    head, stratum, _, _, delay, dispersion, reference, _, origin, came, left = _PACKET.unpack_from(data)
    if head & 0b111 != _SERVER or origin not in sent or not left:
        return None
    there, back = _difference(came, origin), _difference(received, left)
    return NtpAnswer(
        leap=head >> 6,
        stratum=stratum,
        reference=reference.to_bytes(4, "big"),
        offset=(there - back) / 2,
        delay=max(there + back, 0.0),
        root_delay=delay / _SHORT,
        root_dispersion=dispersion / _SHORT,
    )


@frozen(kw_only=True)
class NtpCheck:
    """Up if the server vouches for its time, within bounds in seconds."""

    url: Url
    max_offset: float | None = None
    degraded_offset: float | None = None
    max_stratum: int = _HIGHEST_STRATUM
    max_root_dispersion: float | None = None
    _bounds: tuple[tuple[Status, float], ...] = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.url.target not in {"", "/"}:
            raise Clash("url", f"expected nothing after ntp://{self.url.authority}")
        bounds = [bound for _, bound in self._bounds]
        if bounds != sorted(set(bounds), reverse=True):
            raise Clash("degraded_offset", "would never be told: it is not below max_offset")

    @_bounds.default
    def _in_order(self) -> tuple[tuple[Status, float], ...]:
        bounds = ((Status.DOWN, self.max_offset), (Status.DEGRADED, self.degraded_offset))
        return tuple((status, bound) for status, bound in bounds if bound is not None)

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        return self.url.secrets

    async def attempt(self, at: Attempt) -> Finding:
        """Ask for the time."""
        clock, sent = at.watch.clock, set[int]()

        def ask() -> bytes:
            now = instant(clock.wall())
            sent.add(now)
            return question(now)

        with datagrams(at, self.url.port, Budget(MOST_BYTES)) as server:
            return self._judged(await server.ask(ask, lambda data: read(data, sent, instant(clock.wall()))))

    def _judged(self, answer: NtpAnswer) -> Finding:
        status, error = self._verdict(answer)
        detail = {
            "ntp_offset": round(answer.offset, 6),
            "ntp_delay": round(answer.delay, 6),
            "stratum": answer.stratum,
            "leap": answer.leap,
            "root_delay": round(answer.root_delay, 6),
            "root_dispersion": round(answer.root_dispersion, 6),
        }
        return Finding(status=status, error=error, detail=detail)

    def _verdict(self, answer: NtpAnswer) -> tuple[Status, str | None]:
        if not answer.stratum:
            return _refusal(answer.reference.decode("latin-1").rstrip("\0"))
        if answer.leap == _UNSYNCHRONISED or answer.stratum > _HIGHEST_STRATUM:
            return Status.DOWN, "its clock is not synchronised"
        if answer.stratum > self.max_stratum:
            return Status.DOWN, f"its stratum is {answer.stratum}, more than {self.max_stratum}"
        if self.max_root_dispersion is not None and answer.root_dispersion > self.max_root_dispersion:
            dispersion = wording.latency(answer.root_dispersion)
            return Status.DOWN, f"its clock may be off by {dispersion} (root dispersion)"
        for status, bound in self._bounds:
            if answer.least_offset > bound:
                way = "ahead of" if answer.offset > 0 else "behind"
                return status, f"its clock is {wording.latency(abs(answer.offset))} {way} ours"
        return Status.UP, None


def _refusal(code: str) -> tuple[Status, str]:
    if code == "RATE":
        return Status.UNKNOWN, "it asks us to ask it less often (RATE)"
    return Status.DOWN, f'it refuses to tell the time: "{code}"'


NTP: Final = Kind(
    "ntp",
    {"ntp": 123},
    NtpCheck,
    {
        "max_offset": Option(seconds, "how far the server's clock may be from ours. Beyond it the target is down"),
        "degraded_offset": Option(seconds, "how far it may be off before the target is degraded"),
        "max_stratum": Option(
            whole(1, _HIGHEST_STRATUM), "how many servers may lie between it and a clock of its own", _HIGHEST_STRATUM
        ),
        "max_root_dispersion": Option(seconds, "how far its clock may be off by its own account"),
    },
    meaning="up if a server of time tells the time, and says that it knows it",
)
