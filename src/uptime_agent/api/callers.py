"""Who asks, and from which page. Pure: what a request says, and what the agent knows of its connection.

Nothing is open by default. A page of another site learns nothing, whatever its browser sends along.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

from attrs import field, frozen

from ..config import ANYBODY, Proxies, is_in
from ..web import Ends
from .tokens import Token

READS: Final = frozenset({"GET", "HEAD"})
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
LONGEST_USER: Final = 200

Reason = Literal["no-access", "wrong-token", "basic", "user-header", "unclear"]


@frozen
class Head:
    """The head of a request. Names are in small letters."""

    method: str
    fields: tuple[tuple[str, str], ...]

    def all(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for each, value in self.fields if each == name]

    def one(self, name: str) -> str | None:
        """Return a field. None: it is missing, or comes more than once."""
        values = self.all(name)
        return values[0] if len(values) == 1 else None


@frozen
class Caller:
    """A caller whom we know, and what it may. `token`: by which we know it."""

    name: str
    scope: str
    token: Token | None = None


@frozen
class Stranger:
    """A caller without access."""

    reason: Reason
    detail: str


@frozen(kw_only=True)
class Known:
    """Whom the agent believes. `ours`: the user that runs it. `find`: returns the token with a secret."""

    find: Callable[[str], Token | None]
    ours: int | None = None
    proxies: Proxies = field(factory=Proxies)


def caller_of(head: Head, ends: Ends, known: Known) -> Caller | Stranger:
    """Say who asks."""
    named = _named_user(head, ends, known.proxies)
    if named is not None:
        return named
    given = head.all("authorization")
    if len(given) > 1:
        return Stranger("unclear", "a request has one Authorization")
    if given:
        return _with_secret(given[0], head.method, known)
    if ends.uid is not None and ends.uid in {0, known.ours}:
        return Caller(f"uid {ends.uid}", "admin")
    return Stranger("no-access", "this needs a token: Authorization: Bearer TOKEN")


def _named_user(head: Head, ends: Ends, proxies: Proxies) -> Caller | Stranger | None:
    """Return whom a proxy names. None: the header is missing."""
    if proxies.header is None or not head.all(proxies.header):
        return None
    if ends.address is None or not is_in(proxies.networks, ends.address[0]):
        return Stranger("user-header", f"only a trusted proxy may send {proxies.header}")
    user = (head.one(proxies.header) or "").strip()
    scope = proxies.users.get(user, proxies.users.get(ANYBODY))
    if not user or user == ANYBODY or len(user) > LONGEST_USER or not user.isprintable() or scope is None:
        return Stranger("user-header", "the user that the proxy names may nothing here")
    return Caller(user, scope)


def _with_secret(authorization: str, method: str, known: Known) -> Caller | Stranger:
    kind, _, rest = authorization.partition(" ")
    match kind.lower():
        case "bearer":
            secret = rest.strip()
        case "basic" if method in READS:
            secret = _password(rest.strip())
        case "basic":
            return Stranger("basic", "with Basic one may read: to act, send Authorization: Bearer TOKEN")
        case _:
            return Stranger("unclear", "Authorization must be Bearer TOKEN")
    token = known.find(secret)
    if token is None:
        return Stranger("wrong-token", "there is no such token, or it was revoked")
    return Caller(token.name, token.scope, token)


def _password(credentials: str) -> str:
    try:
        return b64decode(credentials, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


# -- pages of other sites ----------------------------------------------------------------------------------------------


def why_misdirected(head: Head, ends: Ends, names: Iterable[str]) -> str | None:
    """Say why `Host` is not ours. A page whose name leads here by rebinding has another one. None: it is ours.

    Over a Unix socket no browser comes. `names`: from the configuration.
    """
    if ends.local is None:
        return None
    host = head.one("host")
    name = None if host is None else _name_in(host)
    if name is not None and name in {*LOCAL, *names, ends.local[0].partition("%")[0]}:
        return None
    return f"Host is {host!r:.100}, and not this agent: add the name to hosts in [api] if it should be"


def why_foreign(head: Head, names: Iterable[str]) -> str | None:
    """Say why the request comes from a page of another site. None: it does not.

    A person may follow a link from another site to read: `Sec-Fetch-Mode: navigate`.
    """
    origins, sites = head.all("origin"), head.all("sec-fetch-site")
    host = head.one("host")
    if origins and (len(origins) > 1 or not _is_ours(origins[0], host, names)):
        return f"Origin is {origins[0]!r:.100}: a page of another site may do nothing here"
    may_come = head.method in READS and head.one("sec-fetch-mode") == "navigate"
    if any(each not in {"same-origin", "none"} for each in sites) and not may_come:
        return f"Sec-Fetch-Site is {sites[0]!r:.40}: a page of another site may do nothing here"
    return None


def _is_ours(origin: str, host: str | None, names: Iterable[str]) -> bool:
    scheme, mark, place = origin.partition("://")
    if not mark or scheme.lower() not in {"http", "https"}:
        return False
    return place.lower() == (host or "").lower() or (_name_in(place) in set(names) and scheme.lower() == "https")


def _name_in(host: str) -> str | None:
    """Return the name without its port, in small letters. None: it is no host."""
    try:
        split = urlsplit(f"//{host}")
        is_plain = split.netloc == host and split.port != 0 and not split.username and "@" not in host
    except ValueError:
        return None
    return split.hostname if is_plain and not split.path else None


def head_of(scope: Mapping[str, object]) -> Head:
    """Return what an ASGI scope says in its head."""
    fields = scope["headers"]
    assert isinstance(fields, list)
    return Head(
        str(scope["method"]), tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in fields)
    )
