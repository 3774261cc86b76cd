"""HTTP and HTTPS: one request on a fresh connection to the given address, with the name in Host header and SNI."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import cache
from typing import Any, Final

import anyio
import httpx2
from attrs import field, frozen

from .. import wording
from ..readers import Unfit, boolean, one_of, text, whole
from ..redact import basic_credentials, secrets_of
from ..result import Finding, Status
from ..trouble import CheckFailed
from ..url import Url, parse_url
from ..version import our_version
from .check import Attempt, Kind
from .http_options import Codes, describe, headers, status_codes

SCHEMES: Final[Mapping[str, int | None]] = {"http": 80, "https": 443}
MOST_REDIRECTS: Final = 5
MOST_READ: Final = 1024 * 1024
"""Bytes of a body that are read, unless the check says otherwise."""

_STARTS: Final = {
    "connection.connect_tcp.started": "connect",
    "connection.start_tls.started": "tls",
    "http11.send_request_headers.started": "send",
    "http11.receive_response_headers.started": "first_byte",
    "http11.receive_response_body.started": "receive",
}
_ENDS: Final = {
    "connection.connect_tcp.complete",
    "connection.start_tls.complete",
    "http11.send_request_body.complete",
    "http11.receive_response_headers.complete",
}
_NO_TIMEOUTS: Final = {"read": None, "write": None, "pool": None}


@frozen(kw_only=True)
class HttpCheck:
    """Up if the status is expected and the body, where asked to, contains a text."""

    url: Url
    method: str = "GET"
    headers: Mapping[str, str] = field(factory=dict)
    expect_status: Codes = ((200, 399),)
    contains: str | None = None
    redirects: int = 0
    verify: bool = True
    ca_file: str | None = None
    max_body: int = MOST_READ

    def __attrs_post_init__(self) -> None:
        _context(self, self.url.scheme)  # reading the certificates takes longer than a check: not while checks run

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be shown or logged."""
        return secrets_of(self.url, self.headers)

    async def attempt(self, at: Attempt) -> Finding:
        """Make the request and judge the response; follow redirects as far as allowed, each to its own address.

        A redirected POST becomes a GET. What is not of the same origin gets none of the check's own headers.
        """
        url, address, headers, method = self.url, at.address, self._headers(), self.method
        for _ in range(self.redirects + 1):
            exchange = Exchange(self, url, address, headers, at)
            finding, location = await exchange.run(method, follow=self.redirects > 0)
            if location is None:
                return finding
            following = _next_hop(url, location)
            if (following.scheme, following.authority) != (url.scheme, url.authority):
                headers = _own_headers()
                address = (await at.resolver.addresses(following.host))[0]
            url, method = following, "GET" if method == "POST" else method
        raise CheckFailed(f"more than {wording.count(self.redirects, 'redirect')}")

    def _headers(self) -> dict[str, str]:
        given = {name.lower(): value for name, value in self.headers.items()}
        if self.url.user is not None:
            given.setdefault("authorization", f"Basic {basic_credentials(self.url)}")
        return {**_own_headers(), **given}


class Exchange:
    """One request and its response, on one connection that ends with it."""

    def __init__(self, check: HttpCheck, url: Url, address: str, headers: Mapping[str, str], at: Attempt) -> None:
        self._check = check
        self._url = url
        self._address = address
        self._headers = {"host": url.seen_by_servers.authority, **headers}
        self._at = at
        self._opened = AsyncExitStack()
        self._stream: Any = None

    async def run(self, method: str, *, follow: bool) -> tuple[Finding, str | None]:
        """What was found, or where the response redirects to if that is to be followed."""
        try:
            async with self._opened:
                return await self._run(method, follow=follow)
        except httpx2.ConnectTimeout as exc:
            raise TimeoutError from exc
        except httpx2.TransportError as exc:
            raise CheckFailed(_described(exc)) from exc

    async def _run(self, method: str, *, follow: bool) -> tuple[Finding, str | None]:
        transport = httpx2.AsyncHTTPTransport(verify=_context(self._check, self._url.scheme), trust_env=False)
        await self._opened.enter_async_context(transport)
        response = await transport.handle_async_request(self._request(method))
        self._opened.push_async_callback(response.aclose)
        if follow and response.has_redirect_location:
            return Finding(), response.headers["location"]
        body = await self._body(response)
        return self._judged(response, body), None

    def _request(self, method: str) -> httpx2.Request:
        url = httpx2.URL(
            scheme=self._url.scheme, host=self._address, port=self._url.port, raw_path=self._url.target.encode("ascii")
        )
        timeout = {"connect": self._at.connect_within, **_NO_TIMEOUTS}
        extensions = {"timeout": timeout, "sni_hostname": self._url.seen_by_servers.host, "trace": self._trace}
        return httpx2.Request(method, url, headers=self._headers, extensions=extensions)

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        watch = self._at.watch
        if event in _STARTS:
            watch.begin(_STARTS[event])
        elif event in _ENDS:
            watch.end()
        if event == "connection.connect_tcp.complete":
            # Nobody closes the stream of a TLS handshake that is cancelled. Closing twice is harmless.
            self._stream = info["return_value"]
            self._opened.push_async_callback(_close, self._stream)

    async def _body(self, response: httpx2.Response) -> bytes:
        most = self._check.max_body
        body = bytearray()
        try:
            async for part in response.aiter_raw():
                body += part
                if len(body) >= most and self._stream is not None:
                    # Hung up on, the next read fails and so ends every generator in between, which `break` would not.
                    await self._stream.aclose()
        except httpx2.TransportError:
            if len(body) < most:
                raise
        if self._at.watch.phase == "receive":
            self._at.watch.end()
        return bytes(body[:most])

    def _judged(self, response: httpx2.Response, body: bytes) -> Finding:
        check, code = self._check, response.status_code
        detail = {"http_status": code, "bytes": len(body)}
        if not any(low <= code <= high for low, high in check.expect_status):
            return Finding(
                status=Status.DOWN, error=f"status {code}, expected {describe(check.expect_status)}", detail=detail
            )
        if check.contains is None or check.contains.encode() in body:
            return Finding(detail=detail)
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            text = f"cannot look for text in a body encoded as {encoding}, although identity was asked for"
            return Finding(status=Status.UNKNOWN, error=text, detail=detail)
        return Finding(
            status=Status.DOWN, error=f'"{check.contains}" is not in the body ({len(body):,} bytes)', detail=detail
        )


async def _close(stream: Any) -> None:
    with anyio.CancelScope(shield=True):
        await stream.aclose()


def _next_hop(url: Url, location: str) -> Url:
    """Where a redirect leads. Raises CheckFailed for where it must not."""
    joined = str(
        httpx2.URL(scheme=url.scheme, host=url.host, port=url.port, raw_path=url.target.encode()).join(location)
    )
    try:
        following = parse_url(joined.partition("#")[0], SCHEMES)
    except ValueError:
        raise CheckFailed("redirects to what is no http:// or https:// URL") from None
    if url.scheme == "https" and following.scheme == "http":
        raise CheckFailed("redirects from https to http")
    return following


def _described(error: httpx2.TransportError) -> str:
    text = str(error) or type(error).__name__
    return text[:1].lower() + text[1:].rstrip(".")


@cache
def _own_headers() -> dict[str, str]:
    return {
        "user-agent": f"timerqueue/{our_version()}",
        "accept": "*/*",
        "accept-encoding": "identity",
        "connection": "close",
    }


def _context(check: HttpCheck, scheme: str) -> ssl.SSLContext:
    if scheme == "http" or not check.verify:
        return _trusting_context()
    return _system_context() if check.ca_file is None else _context_of(check.ca_file)


@cache
def _system_context() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


@cache
def _trusting_context() -> ssl.SSLContext:
    return httpx2.create_ssl_context(verify=False)


@cache
def _context_of(ca_file: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


def _ca_file(value: Any) -> str:
    """A file of certificates in PEM, which exists and holds some."""
    try:
        _context_of(text(value))
    except OSError as exc:  # ssl.SSLError is one
        raise Unfit(f"a file of certificates in PEM ({exc.strerror or exc})", value) from None
    except ValueError:
        raise Unfit("a file of certificates in PEM (no name of a file holds NUL)", value) from None
    return text(value)


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
        "verify": boolean,
        "ca_file": _ca_file,
        "max_body": whole(0, 100 * MOST_READ),
    },
)
