"""TLS: a valid handshake and a certificate that lasts."""

from __future__ import annotations

from ssl import TLSVersion
from typing import Any, Final

from anyio.streams.tls import TLSAttribute
from attrs import frozen

from ..text import Url, host_name
from ..toml import Option, Unfit, text
from .contract import Attempt, Finding, Kind
from .net import Budget, certificates, dialled, expiry_of, with_expiry

MOST_READ: Final = 256 * 1024
"""Bytes. Chains of certificates have some thousand."""


@frozen(kw_only=True)
class TlsCheck:
    """Up if the handshake holds, for `server_name` or the URL's host."""

    url: Url
    server_name: str | None = None
    min_tls: TLSVersion = certificates.LEAST
    cert_expires_within: float | None = None
    verify: bool = True
    ca_file: str | None = None

    def __attrs_post_init__(self) -> None:
        self._context()  # reading the certificates takes longer than a check: not while checks run

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        return self.url.secrets

    async def attempt(self, at: Attempt) -> Finding:
        """Shake hands."""
        name = self.server_name or self.url.seen_by_servers.host
        async with dialled(at, self.url.port, Budget(MOST_READ), tls=self._context(), host=name) as stream:
            expiry = expiry_of(stream, name)
            found = Finding(detail={"tls_version": stream.extra(TLSAttribute.tls_version)})  # noqa: S610 - of anyio, not of Django
        return with_expiry(found, expiry, at.watch.clock.wall(), self.cert_expires_within)

    def _context(self) -> Any:
        return certificates.context(self.ca_file, verify=self.verify, least=self.min_tls)


def _server_name(value: Any) -> str:
    try:
        return host_name(text(value))
    except ValueError as exc:
        raise Unfit(str(exc), value) from None


TLS: Final = Kind(
    "tls",
    {"tls": None},
    TlsCheck,
    {
        "server_name": Option(
            _server_name, "for which name the certificate has to be. By default that is the host of `url`"
        ),
        **certificates.OPTIONS,
        "min_tls": certificates.MIN_TLS,
    },
    meaning="up if a TLS handshake holds, with a certificate that lasts. Nothing is sent over it",
)
