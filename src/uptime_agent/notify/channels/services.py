"""The channel `apprise`: services of Apprise, from the extra `notify`.

Apprise waits in a thread, and only logs why it failed.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any, ClassVar, Final
from urllib.parse import unquote

from attrs import field, frozen

from ...text import secrets_in
from ...toml import Option, Reader, Unfit, secret
from .channel import ChannelDeps, ChannelKind, Surroundings, Undelivered
from .notification import Notification
from .threads import in_thread

SHORTEST_TOKEN: Final = 8
_SEPARATORS: Final = re.compile(r"[/?@:&=]")
_LOOKS_DRAWN: Final = re.compile(r"[A-Za-z].*[0-9]|[0-9].*[A-Za-z]")

MISSING: Final = "the channel kind apprise needs: pip install 'timerqueue[notify]'"


@frozen(kw_only=True)
class Apprise:
    """The whole URL is secret: most consist of tokens."""

    kind: ClassVar[str] = "apprise"

    url: str = field(repr=False)

    @property
    def place(self) -> str:
        """The URL's scheme."""
        return f"{self.url.partition('://')[0]}://"

    @property
    def secrets(self) -> frozenset[str]:
        """The URL, its passwords and tokens."""
        rest = self.url.partition("://")[2]
        return secrets_in(self.url) | {self.url, rest} | _tokens(rest, _shown_by_apprise(self.url))

    async def send(self, notification: Notification, means: ChannelDeps) -> str | None:  # noqa: ARG002 - it waits for nothing of ours
        """Have Apprise deliver it."""
        if not await in_thread((notification.channel, self), lambda: _notified(self.url, notification)):
            raise Undelivered(f"{self.place} did not take it; what Apprise says of that is in the log (-v)")
        return None


def _tokens(rest: str, shown: str) -> set[str]:
    """Secret parts of a URL: masked in `shown`, or random in looks.

    Hosts and plain words are left out, as they appear in other alarms.
    """
    known = set(_SEPARATORS.split(shown.partition("://")[2].casefold()))
    host = rest.partition("?")[0].rpartition("@")[2].partition("/")[0].partition(":")[0]
    parts = {part for part in _SEPARATORS.split(rest) if len(part) >= SHORTEST_TOKEN}
    masked = {part for part in parts if not {part.casefold(), unquote(part).casefold()} & known}
    return masked | {part for part in parts if part != host and _LOOKS_DRAWN.search(part)}


def _shown_by_apprise(url: str) -> str:
    import apprise  # noqa: PLC0415 - as below

    service = apprise.Apprise.instantiate(url)
    return "" if service is None else str(service.url(privacy=True))  # type: ignore[no-untyped-call] # it has no types


def _notified(url: str, notification: Notification) -> bool:
    import apprise  # noqa: PLC0415 - it is large, and only there with the extra

    service = apprise.Apprise()
    if not service.add(url):
        return False
    return bool(service.notify(body=notification.text, title=notification.subject))


def _url(read: Reader[str]) -> Reader[str]:
    def url(value: Any) -> str:
        found = read(value)
        if find_spec("apprise") is None:
            raise Unfit(f"another kind ({MISSING})", found, is_secret=True)
        import apprise  # noqa: PLC0415 - as above

        if not apprise.Apprise().add(found):
            raise Unfit("a URL that Apprise knows, such as slack://... or ntfy://...", found, is_secret=True)
        return found

    return url


def _options(around: Surroundings) -> dict[str, Reader[Any]]:
    read = secret(around.folder, around.environment)
    return {"url": Option(_url(read), "as in `ntfy://host/topic`. It is a secret as a whole")}


APPRISE: Final = ChannelKind(
    "apprise",
    Apprise,
    _options,
    ("url",),
    "hands messages to one of the services that [Apprise](https://pypi.org/project/apprise/) knows. Needs the extra "
    "`notify`",
)
