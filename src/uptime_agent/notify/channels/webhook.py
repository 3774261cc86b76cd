"""The channel `webhook`: a POST of JSON, without redirects."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import h11
from attrs import field, frozen

from ...checks import Attempt, Budget, Exchange, Stopwatch, Unresolved, certificates, dialled, judge
from ...text import Url, basic_credentials, our_version, parse_url, printable, secrets_of
from ...toml import Option, Reader, Secret, Unfit, boolean, secret
from .channel import ChannelDeps, ChannelKind, Surroundings, Undelivered
from .notification import Notification
from .template import Template, template

SCHEMES: Final[Mapping[str, int | None]] = {"http": 80, "https": 443}
MOST_READ: Final = 4_096
"""Bytes of an answer."""

SHOWN: Final = 200
"""Characters in an error."""

ROOM: Final = 256 * 1024
"""Bytes in all."""

MOST_ADDRESSES: Final = 4
CONNECT_WITHIN: Final = 5.0
"""Seconds for each address."""

LONGEST_REST: Final = 3_600.0
"""Seconds."""

_DELIVERED: Final = range(200, 300)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
_OURS: Final = frozenset({"content-length", "transfer-encoding", "idempotency-key", "connection"})


@frozen
class WebhookUrl:
    """A URL. `is_secret`: given by reference, so even its path is hidden."""

    url: Url
    is_secret: bool = False


@frozen(kw_only=True)
class Webhook:
    """A channel that posts JSON."""

    kind: ClassVar[str] = "webhook"

    at: WebhookUrl = field(repr=False, alias="url")
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    template: Template | None = None
    verify: bool = True

    @property
    def place(self) -> str:
        """The scheme and host."""
        return f"{self.at.url.scheme}://{self.at.url.authority}"

    @property
    def secrets(self) -> frozenset[str]:
        """Credentials, query and header values, a secret URL's path."""
        given = {value for value in self.headers.values() if isinstance(value, Secret)}
        path = {self.at.url.target} - {"", "/"} if self.at.is_secret else set()
        return secrets_of(self.at.url, self.headers) | given | path

    async def send(self, notification: Notification, means: ChannelDeps) -> str | None:
        """Post the notification. Statuses 200 to 299 mean delivered."""
        try:
            addresses = (await means.resolver.addresses(self.at.url.host))[:MOST_ADDRESSES]
        except Unresolved as exc:
            raise Undelivered(str(exc)) from None
        for address in addresses:
            watch = Stopwatch(means.clock)
            try:
                await self._post(Attempt(address, watch, CONNECT_WITHIN), notification)
            except Exception as exc:
                trouble = judge(exc, self.at.url.authority)
                if trouble is None:
                    raise
                if "connect" in watch.completed or address == addresses[-1]:
                    raise Undelivered(trouble.text) from None
            else:
                break
        return None

    async def _post(self, at: Attempt, notification: Notification) -> None:
        url, budget = self.at.url, Budget(ROOM)
        body = self._body(notification)
        tls = None if url.scheme == "http" else (certificates.of_system() if self.verify else certificates.of_nobody())
        async with dialled(at, url.port, budget, tls=tls, host=url.seen_by_servers.host) as stream:
            exchange = Exchange(stream, at.watch, budget)
            await exchange.send(self._request(notification.key, len(body)), body)
            head = await exchange.head()
            if head.status_code in _DELIVERED:
                return
            answer = b""
            while part := await exchange.part(MOST_READ):
                answer += part
        said = printable(answer.decode("utf-8", "replace").strip()[:SHOWN])
        text = f"{url.authority} answered with status {head.status_code}"
        raise Undelivered(f"{text}: {said}" if said else text, _rest(head.headers))

    def _body(self, notification: Notification) -> bytes:
        if self.template is None:
            return json.dumps(notification.body(), ensure_ascii=False).encode("utf-8", "backslashreplace")
        return self.template.render(notification).encode()

    def _request(self, key: str, size: int) -> h11.Request:
        url = self.at.url
        fields = {"User-Agent": f"timerqueue/{our_version()}", "Accept": "*/*", "Content-Type": "application/json"}
        if url.user is not None:
            fields["Authorization"] = f"Basic {basic_credentials(url)}"
        given = {name.lower() for name in self.headers}
        kept = {name: value for name, value in fields.items() if name.lower() not in given}
        ours = {
            "Host": url.seen_by_servers.authority,
            "Connection": "close",
            "Idempotency-Key": key,
            "Content-Length": str(size),
        }
        headers = {**(ours if "host" not in given else _without_host(ours)), **kept, **self.headers}
        return h11.Request(method="POST", target=url.target or "/", headers=list(headers.items()))


def _without_host(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if name != "Host"}


def _rest(headers: Any) -> float | None:
    """Seconds of a Retry-After."""
    given = next((value for name, value in headers if name == b"retry-after"), b"")
    return min(float(given), LONGEST_REST) if given.isdigit() else None


def _url(read: Reader[str]) -> Reader[WebhookUrl]:
    def url(value: Any) -> WebhookUrl:
        found = read(value)
        is_secret = isinstance(found, Secret)
        try:
            return WebhookUrl(parse_url(found, SCHEMES), is_secret)
        except ValueError as exc:
            raise Unfit(str(exc), found, is_secret=is_secret) from None

    return url


def _headers(read: Reader[str]) -> Reader[dict[str, str]]:
    def headers(value: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            raise Unfit('a table such as { Authorization = { env = "TOKEN" } }', value)
        return {_name(name): _checked(name, read(each)) for name, each in value.items()}

    return headers


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise Unfit("names of header fields such as Authorization", name)
    if name.lower() in _OURS:
        raise Unfit("names of header fields other than those that belong to the request itself", name)
    return name


def _checked(name: str, value: str) -> str:
    if not _VALUE.fullmatch(value):
        raise Unfit(f"text on one line for the header {name}", value, is_secret=True)
    stripped = value.strip()
    return Secret(stripped) if isinstance(value, Secret) else stripped


def _options(around: Surroundings) -> dict[str, Reader[Any]]:
    read = secret(around.folder, around.environment)
    return {
        "url": Option(
            _url(read), "an `http://` or `https://` URL. If it is given by reference, only its host is ever shown"
        ),
        "headers": Option(_headers(read), "fields that are sent. Each value may be given by reference"),
        "template": Option(
            template,
            "JSON to post instead of our own, in which names stand in braces. See [templates](get-told.md#webhook)",
        ),
        "verify": Option(boolean, "whether to check the certificate", True),  # noqa: FBT003 - the default
    }


WEBHOOK: Final = ChannelKind("webhook", Webhook, _options, ("url",), "posts JSON to a URL")
