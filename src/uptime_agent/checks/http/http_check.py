"""HTTP and HTTPS: one request on a new connection."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cache, cached_property, partial
from ssl import TLSVersion
from typing import Any, Final

import h11
from attrs import evolve, field, frozen

from ...text import Url, basic_credentials, our_version, secrets_of, wording
from ...toml import Option, Secret, one_of, text, whole
from ..contract import Attempt, CheckFailed, Finding, Hop, Kind, Status
from ..net import Budget, Expiry, certificates, dialled, expiry_of, with_expiry
from .body import Body, request_body
from .decoding import decoder
from .exchange import Exchange, Head
from .expectations import Expectations, header_expectations, json_expectations
from .handing_on import DoesNotFit, Take, filled_body, filled_headers, filled_url, names_in
from .options import headers, method, status_codes
from .patterns import regex
from .redirects import OwnHost, RedirectTargets, may_dial, may_name, next_url, refusal

SCHEMES: Final[Mapping[str, int | None]] = {"http": 80, "https": 443}
MOST_REDIRECTS: Final = 5
MOST_READ: Final = 1024 * 1024
"""Bytes of a body, by default."""

OVERHEAD: Final = 256 * 1024
"""Bytes of header, handshake, chunks."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_WITH_LENGTH: Final = frozenset({"POST", "PUT", "PATCH"})

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@frozen(kw_only=True)
class HttpCheck:
    """Up if the response is as expected. `followed` redirects led here from `origin`."""

    url: Url
    method: str = "GET"
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    body: Body | None = None
    expected: Expectations = field(factory=Expectations)
    redirects: int = 0
    redirect_targets: RedirectTargets = RedirectTargets.PUBLIC
    verify: bool = True
    ca_file: str | None = None
    min_tls: TLSVersion = certificates.LEAST
    cert_expires_within: float | None = None
    max_body: int = MOST_READ
    followed: int = 0
    origin: OwnHost | None = None
    expiry: Expiry | None = None
    take: tuple[Take, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.url.scheme == "https" or self.redirects:
            _context(self)  # reading the certificates takes longer than a check: not while checks run

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        found = secrets_of(self.url, self.headers).union(_given_by_reference(self.headers))
        return found if self.body is None else found | self.body.secrets

    async def attempt(self, at: Attempt) -> Finding | Hop:
        """Judge the response, or return its redirect."""
        budget = Budget(OVERHEAD + 2 * self.max_body)
        tls = _context(self) if self.url.scheme == "https" else None
        async with dialled(at, self.url.port, budget, tls=tls, host=self.url.seen_by_servers.host) as stream:
            expiry = self.expiry if tls is None else _first(expiry_of(stream, self.url.host), self.expiry)
            exchange = Exchange(stream, at.watch, budget)
            await exchange.send(self._request, b"" if self.body is None else self.body.content)
            head = await exchange.head()
            location = _location(head) if self.redirects else None
            finding = await self._judged(head, exchange) if location is None else None
            exchange.end()
        if finding is None:
            return self._onward(location or b"", at.address, expiry)
        return with_expiry(finding, expiry, at.watch.clock.wall(), self.cert_expires_within)

    @cached_property
    def _request(self) -> h11.Request:
        fields = {"Host": self.url.seen_by_servers.authority, **_own_headers()}
        if self.body is not None or self.method in _WITH_LENGTH:
            fields["Content-Length"] = str(0 if self.body is None else len(self.body.content))
        if self.url.user is not None:
            fields["Authorization"] = f"Basic {basic_credentials(self.url)}"
        given = {name.lower() for name in self.headers}
        kept = {name: value for name, value in fields.items() if name.lower() not in given}
        return h11.Request(
            method=self.method, target=self.url.target or "/", headers=list({**kept, **self.headers}.items())
        )

    async def _judged(self, head: Head, exchange: Exchange) -> Finding:
        encoding = _header(head, b"content-encoding").decode("latin-1").strip().lower()
        body = decoder(encoding, self.max_body) if self.expected.are_about_body or self.take else None
        size = 0
        while part := await exchange.part(self.max_body):
            size += len(part)
            if body is not None:
                await body.take(part)
        detail = {"http_status": head.status_code, "bytes": size}
        status, error = await self.expected.verdict(head, body, encoding)
        finding = Finding(status=status, error=error, detail=detail)
        if not self.take or status is not Status.UP:
            return finding
        if body is None:
            raise CheckFailed(f"there is nothing to hand on in a body encoded as {encoding}")
        handed_on = {each.name: await each.out_of(head, body.content) for each in self.take}
        return evolve(finding, handed_on=handed_on)

    @property
    def needs_texts(self) -> set[str]:
        """Names of texts from earlier steps."""
        return names_in(self.url, self.headers)

    def filled(self, values: Mapping[str, str]) -> HttpCheck:
        """Fill texts in. Raises CheckFailed if one does not fit."""
        headers = self.headers
        try:
            return evolve(
                self,
                url=filled_url(self.url, values),
                headers=filled_headers(headers, values),
                body=None if self.body is None else filled_body(self.body, headers, values),
            )
        except DoesNotFit as exc:
            raise CheckFailed(str(exc)) from None

    def _onward(self, location: bytes, address: str, expiry: Expiry | None) -> Hop:
        """A POST or the like becomes a GET without a body. Another origin gets none of our headers."""
        if self.followed == self.redirects:
            raise CheckFailed(f"more than {wording.count(self.redirects, 'redirect')}")
        url, origin, targets = next_url(self.url, location, SCHEMES), self.origin, self.redirect_targets
        origin = OwnHost(self.url.host, address) if origin is None else origin
        if not may_name(targets, origin, url):
            raise CheckFailed(refusal(url, url.host, targets))
        following = evolve(
            self,
            url=url,
            method=self.method if self.method in _SAFE else "GET",
            body=None,
            headers={},
            followed=self.followed + 1,
            origin=origin,
            expiry=expiry,
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


def _given_by_reference(headers: Mapping[str, str]) -> set[str]:
    return {each for each in headers.values() if isinstance(each, Secret)}


@cache
def _own_headers() -> dict[str, str]:
    return {
        "User-Agent": f"timerqueue/{our_version()}",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }


def _context(check: HttpCheck) -> ssl.SSLContext:
    return certificates.context(check.ca_file, verify=check.verify, least=check.min_tls)


def _first(found: Expiry | None, before: Expiry | None) -> Expiry | None:
    return before if found is None else found.first(before)


def _make(url: Url, **options: Any) -> HttpCheck:
    expected = {ours: options.pop(key) for key, ours in _EXPECTED.items() if key in options}
    return HttpCheck(url=url, expected=Expectations(**expected), **options)


_EXPECTED: Final[Mapping[str, str]] = {
    "expect_status": "status",
    "expect_headers": "headers",
    "contains": "contains",
    "not_contains": "not_contains",
    "json": "json",
    "regex": "regex",
}

HTTP: Final = Kind(
    "http",
    SCHEMES,
    _make,
    {
        "method": Option(method, 'the method, in capitals: any but `"CONNECT"`', "GET"),
        "headers": Option(headers, "fields that are sent. Each value may be given by reference"),
        "body": Option(
            request_body,
            "what is sent, at most 1 MiB. A file is read once, at the start. Say in `headers` which `Content-Type` it "
            "has",
        ),
        "expect_status": Option(status_codes, "which status codes are right", "200-399"),
        "expect_headers": Option(
            header_expectations,
            'by name a text in which `*` stands for any text; `"*"`: the header has to be there; `false`: it must not '
            "be there",
        ),
        "contains": Option(text, "must be in the body, as far as the body is read"),
        "not_contains": Option(text, "must not be in the body, as far as the body is read"),
        "json": Option(
            json_expectations, "what must hold in the body, or a list of that. See [JSON](agent/checks.md#json)"
        ),
        "regex": Option(
            regex,
            "must be found in the first 64 KiB of the body: see [expressions](agent/checks.md#regular-expressions)",
        ),
        "redirects": Option(
            whole(0, MOST_REDIRECTS),
            "how many redirects to follow. Never from https to http. Headers are sent only to the origin of `url`. See "
            "[redirects](agent/hardening.md#redirects)",
            0,
        ),
        "redirect_targets": Option(
            one_of({each.value: each for each in RedirectTargets}), "where redirects may lead", "public"
        ),
        **certificates.OPTIONS,
        "min_tls": certificates.MIN_TLS,
        "max_body": Option(
            whole(0, 100 * MOST_READ, "bytes"),
            "how much of the body is read. If it is compressed (gzip, deflate), the same bound holds for what comes "
            "out of it",
            MOST_READ,
        ),
    },
    meaning="up if the answer to a request is as expected",
)
