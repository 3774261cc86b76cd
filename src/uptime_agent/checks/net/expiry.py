"""When certificates expire: the server's, and the first of its chain.

A verified chain ends at a trusted authority: other certificates do no harm. Unverified, the whole chain counts. No
length in a certificate is trusted.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from math import floor
from typing import Any, Final

from anyio.abc import ByteStream
from anyio.streams.tls import TLSAttribute
from attrs import evolve, frozen

from ...text import wording
from ..contract import Finding, Status

MOST_CERTIFICATES: Final = 20

_DER: Final = 2
"""Python's number for DER before 3.13."""

_VERSION: Final = 0xA0
_LONG: Final = 0x80
_MOST_LENGTH_BYTES: Final = 4


@frozen
class Expiry:
    """When a server's certificate, and its chain's first, expire, in UTC seconds."""

    leaf: float
    chain: float
    host: str

    def first(self, other: Expiry | None) -> Expiry:
        """The earlier of both: a redirected check relies on both."""
        if other is None:
            return self
        recheck = min(self, other, key=lambda each: each.chain)
        return evolve(recheck, leaf=min(self.leaf, other.leaf))


def expiry_of(stream: ByteStream, host: str) -> Expiry | None:
    """The expiry of a TLS stream's certificates, if they tell."""
    chain = [not_after(each) for each in _chain(stream.extra(TLSAttribute.ssl_object))]  # noqa: S610 - of anyio, not of Django
    known = [each for each in chain if each is not None]
    if not chain or chain[0] is None:
        return None
    return Expiry(chain[0], min(known), host)


def with_expiry(finding: Finding, expiry: Expiry | None, now: float, within: float | None) -> Finding:
    """Add the expiry. An up target is degraded if a certificate expires `within` seconds."""
    if expiry is None:
        return finding
    leaf, chain = floor(expiry.leaf - now), floor(expiry.chain - now)
    finding = evolve(finding, detail={**finding.detail, "cert_expires_in": leaf, "chain_expires_in": chain})
    if within is None or min(leaf, chain) > within or finding.status is not Status.UP:
        return finding
    which = f"the certificate of {expiry.host}" if leaf <= chain else f"a certificate in the chain of {expiry.host}"
    left = min(leaf, chain)
    when = f"expires in {wording.span(left)}" if left > 0 else f"expired {wording.span(-left)} ago"
    return evolve(finding, status=Status.DEGRADED, error=f"{which} {when}, expected more than {wording.span(within)}")


def _chain(connection: Any) -> Iterable[bytes]:
    is_verified = connection.context.verify_mode != ssl.CERT_NONE
    name = "get_verified_chain" if is_verified else "get_unverified_chain"
    call = getattr(connection, name, None) or getattr(getattr(connection, "_sslobj", None), name, None)
    if call is None:  # neither Python 3.13 nor the form in which those before it have it
        leaf = connection.getpeercert(binary_form=True)
        return [leaf] if leaf else []
    return [each if isinstance(each, bytes) else each.public_bytes(_DER) for each in (call() or [])[:MOST_CERTIFICATES]]


@lru_cache(maxsize=1_000)
def not_after(certificate: bytes) -> float | None:
    """When a DER certificate ends, in UTC seconds. None: unreadable."""
    try:
        _, at, _ = _element(certificate, 0)
        _, at, _ = _element(certificate, at)
        tag, _, end = _element(certificate, at)
        at = end if tag == _VERSION else at
        for _ in ("serial number", "signature", "issuer"):
            _, _, at = _element(certificate, at)
        _, validity, _ = _element(certificate, at)
        _, _, at = _element(certificate, validity)
        tag, start, end = _element(certificate, at)
        return _instant(tag, certificate[start:end].decode("ascii"))
    except (ValueError, OverflowError):
        return None


def _element(data: bytes, at: int) -> tuple[int, int, int]:
    """Raises ValueError."""
    if at + 2 > len(data):
        raise ValueError("it ends too early")
    tag, length, start = data[at], data[at + 1], at + 2
    if length & _LONG:
        count = length & ~_LONG
        if not 0 < count <= _MOST_LENGTH_BYTES:
            raise ValueError("a length that makes no sense")
        length, start = int.from_bytes(data[start : start + count], "big"), start + count
    if start + length > len(data):
        raise ValueError("it ends too early")
    return tag, start, start + length


def _instant(tag: int, text: str) -> float:
    match tag:
        case 0x17:  # UTCTime, of the years 1950 to 2049
            century = "20" if text < "5" else "19"
            found = datetime.strptime(century + text, "%Y%m%d%H%M%S%z")
        case 0x18:  # GeneralizedTime
            found = datetime.strptime(text, "%Y%m%d%H%M%S%z")
        case _:
            raise ValueError("no time")
    return found.timestamp()
