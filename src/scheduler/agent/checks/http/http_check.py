"""HTTP and HTTPS: one request on a fresh connection to the given address, with the name in Host header and SNI."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cache, cached_property, partial
from typing import Final

import h11
from attrs import evolve, field, frozen

from ...text import Url, basic_credentials, our_version, secrets_of, wording
from ...toml import boolean, one_of, text, whole
from ..contract import Attempt, CheckFailed, Finding, Hop, Kind, Status
from ..net import Budget, certificates, dialled
from .decoding import Inflated, Plain, decoder
from .exchange import Exchange, Head
from .options import Codes, describe, headers, status_codes
from .redirects import Origin, RedirectTargets, may_dial, may_name, next_url, refusal

SCHEMES: Final[Mapping[str, int | None]] = {"http": 80, "https": 443}
MOST_REDIRECTS: Final = 5
MOST_READ: Final = 1024 * 1024
"""Bytes of a body that are read, unless the check says otherwise."""

OVERHEAD: Final = 256 * 1024
"""Bytes that may come beside twice the body: header, handshake, chunks."""

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@frozen(kw_only=True)
class HttpCheck:
    """An HTTP check: up if the status is expected and the body, where asked to, contains a text.

    `followed` redirects have led here, from `origin`.
    """

    url: Url
    method: str = "GET"
    headers: Mapping[str, str] = field(factory=dict)
    expect_status: Codes = ((200, 399),)
    contains: str | None = None
    redirects: int = 0
    redirect_targets: RedirectTargets = RedirectTargets.PUBLIC
    verify: bool = True
    ca_file: str | None = None
    max_body: int = MOST_READ
    followed: int = 0
    origin: Origin | None = None

    def __attrs_post_init__(self) -> None:
        if self.url.scheme == "https" or self.redirects:
            _context(self)  # reading the certificates takes longer than a check: not while checks run

    @property
    def secrets(self) -> frozenset[str]:
        """Texts that must not be shown or logged."""
        return secrets_of(self.url, self.headers)

    async def attempt(self, at: Attempt) -> Finding | Hop:
        """Make the request and judge the response, or say where it redirects to, as far as that is to be followed."""
        budget = Budget(OVERHEAD + 2 * self.max_body)
        tls = _context(self) if self.url.scheme == "https" else None
        async with dialled(at, self.url.port, budget, tls=tls, host=self.url.seen_by_servers.host) as stream:
            exchange = Exchange(stream, at.watch, budget)
            await exchange.send(self._request)
            head = await exchange.head()
            location = _location(head) if self.redirects else None
            finding = await self._judged(head, exchange) if location is None else None
            exchange.end()
        return self._onward(location or b"", at.address) if finding is None else finding

    @cached_property
    def _request(self) -> h11.Request:
        fields = {"Host": self.url.seen_by_servers.authority, **_own_headers()}
        if self.method == "POST":
            fields["Content-Length"] = "0"
        if self.url.user is not None:
            fields["Authorization"] = f"Basic {basic_credentials(self.url)}"
        given = {name.lower() for name in self.headers}
        kept = {name: value for name, value in fields.items() if name.lower() not in given}
        return h11.Request(
            method=self.method, target=self.url.target or "/", headers=list({**kept, **self.headers}.items())
        )

    async def _judged(self, head: Head, exchange: Exchange) -> Finding:
        encoding = _header(head, b"content-encoding").decode("latin-1").strip().lower()
        body = None if self.contains is None else decoder(encoding, self.max_body)
        size = 0
        while part := await exchange.part(self.max_body):
            size += len(part)
            if body is not None:
                await body.take(part)
        detail = {"http_status": head.status_code, "bytes": size}
        status, error = self._verdict(head.status_code, body, encoding)
        return Finding(status=status, error=error, detail=detail)

    def _verdict(self, code: int, body: Plain | Inflated | None, encoding: str) -> tuple[Status, str | None]:
        if not any(low <= code <= high for low, high in self.expect_status):
            return Status.DOWN, f"status {code}, expected {describe(self.expect_status)}"
        if self.contains is None:
            return Status.UP, None
        if body is None:
            error = f"cannot look for text in a body encoded as {encoding}, although identity was asked for"
            return Status.UNKNOWN, error
        if self.contains.encode() in body.content:
            return Status.UP, None
        return Status.DOWN, f'"{self.contains}" is not in the body ({len(body.content):,} bytes)'

    def _onward(self, location: bytes, address: str) -> Hop:
        """Make the check of the place where a redirect leads to.

        A redirected POST becomes a GET. What is not of the same origin gets none of the check's own headers.
        """
        if self.followed == self.redirects:
            raise CheckFailed(f"more than {wording.count(self.redirects, 'redirect')}")
        url, origin, targets = next_url(self.url, location, SCHEMES), self.origin, self.redirect_targets
        origin = Origin(self.url.host, address) if origin is None else origin
        if not may_name(targets, origin, url):
            raise CheckFailed(refusal(url, url.host, targets))
        following = evolve(
            self,
            url=url,
            method="GET" if self.method == "POST" else self.method,
            headers={},
            followed=self.followed + 1,
            origin=origin,
        )
        if (url.scheme, url.authority) == (self.url.scheme, self.url.authority):
            kept = evolve(url, user=self.url.user, password=self.url.password)
            following = evolve(following, url=kept, headers=self.headers)
        permits = partial(may_dial, targets, origin, url.host)
        return Hop(following, permits, lambda refused: refusal(url, refused, targets))


def _location(head: Head) -> bytes | None:
    return _header(head, b"location") or None if head.status_code in _REDIRECTS else None


def _header(head: Head, name: bytes) -> bytes:
    return next((value for each, value in head.headers if each == name), b"")


@cache
def _own_headers() -> dict[str, str]:
    return {
        "User-Agent": f"timerqueue/{our_version()}",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }


def _context(check: HttpCheck) -> ssl.SSLContext:
    return certificates.context(check.ca_file, verify=check.verify)


HTTP: Final = Kind(
    "http",
    SCHEMES,
    HttpCheck,
    {
        "method": one_of({name: name for name in ("GET", "HEAD", "OPTIONS", "POST")}),
        "headers": headers,
        "expect_status": status_codes,
        "contains": text,
        "redirects": whole(0, MOST_REDIRECTS),
        "redirect_targets": one_of({each.value: each for each in RedirectTargets}),
        "verify": boolean,
        "ca_file": certificates.ca_file,
        "max_body": whole(0, 100 * MOST_READ),
    },
)
