"""URLs that keep their secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from attrs import evolve, field, frozen

MASK: Final = "***"
_SECRET_KEY: Final = re.compile(r"pass|pwd|secret|token|key|sig|auth|cred|session", re.IGNORECASE)
_USERINFO: Final = re.compile(r"(^|//)[^/?#]*@")
_QUERY_VALUE: Final = re.compile(r"(?<=[?&])([^=?&#]*)=([^&#]*)")
"""A key excludes question marks, or matching would take quadratic time."""

_ENCODED_ZONE: Final = re.compile(r"%25(?=.)")
"""RFC 6874 writes fe80::1%eth0 as [fe80::1%25eth0]; both are accepted."""

_PLAIN: Final = re.compile(
    r"\A(?P<scheme>[a-z]++)://(?P<host>[a-z0-9.-]++)(?::(?P<port>[0-9]{1,5}))?(?P<path>/[A-Za-z0-9/._~-]*+)?"
)

_AUTHORITY: Final = re.compile(r"(?:[^/?#]*//)?[^/?#]*")
_OF_HTTP: Final = frozenset({"http", "https"})
_UNSPACED: Final = re.compile(r"[\x00-\x20\x7f]")
_HIGHEST_PORT: Final = 65535
_LONGEST: Final = 8_000
"""Characters, as RFC 9110 asks servers to accept."""

_LONGEST_AUTHORITY: Final = 500
"""Characters before the path, if the URL is not ASCII: normalizing takes long."""

_LONGEST_HOST: Final = 255
_LONGEST_SHOWN: Final = 255

_IN_BRACKETS: Final = "an IPv6 address in brackets, as in http://[::1]:8080/"


@frozen(repr=False)
class Url:
    """A parsed URL. `str` and `repr` hide credentials.

    `host`: ASCII without brackets. `port`: 0 if the scheme has none. `target`: path and query as sent.
    """

    scheme: str
    host: str
    port: int
    target: str = ""
    user: str | None = None
    password: str | None = None
    has_default_port: bool = field(default=False, kw_only=True)

    def __str__(self) -> str:
        target = _QUERY_VALUE.sub(_masked, self.target)
        return f"{self.scheme}://{self.authority}{'' if target == '/' else target}"

    __repr__ = __str__

    @property
    def authority(self) -> str:
        """Host and port as in a Host header."""
        return self.bracketed if self.has_default_port or not self.port else f"{self.bracketed}:{self.port}"

    @property
    def seen_by_servers(self) -> Url:
        """The URL without a link-local zone, which only this machine knows."""
        return evolve(self, host=self.host.partition("%")[0]) if "%" in self.host else self

    @property
    def bracketed(self) -> str:
        """The host as in URLs."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def secrets(self) -> frozenset[str]:
        """The URL's secrets in all spellings. Over HTTP, a user without a password is often a token, so it is one."""
        user = self.user if self.scheme in _OF_HTTP else None
        return _spellings([self.password or user, *_secret_values(self.target)])


def parse_url(text: str, ports: Mapping[str, int | None]) -> Url:
    """Read a URL. Raises ValueError with what was expected, without credentials.

    `ports`: default ports by allowed scheme. None: no default; 0: no ports.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a URL of at most {_LONGEST:,} characters, not {len(text):,}")
    return _read_plain(text, ports) or _read_any(text, ports)


def _read_plain(text: str, ports: Mapping[str, int | None]) -> Url | None:
    """Read a common URL, in a third of the time. None: `_read_any` must read it."""
    found = _PLAIN.fullmatch(text)
    default = None if found is None else ports.get(found["scheme"])
    if found is None or not default:
        return None
    port = int(found["port"] or default)
    if not 0 < port <= _HIGHEST_PORT:
        return None
    host = host_name(found["host"])
    return Url(found["scheme"], host, port, found["path"] or "/", has_default_port=port == default)


def _read_any(text: str, ports: Mapping[str, int | None]) -> Url:
    if _UNSPACED.search(text):
        raise ValueError("a URL without blanks and control characters")
    if not text.isascii() and len(_AUTHORITY.match(text)[0]) > _LONGEST_AUTHORITY:  # type: ignore[index] # it matches
        raise ValueError(f"at most {_LONGEST_AUTHORITY} characters before the path")
    split = _split(text)
    if split.scheme not in ports or not text.lower().startswith(f"{split.scheme}://"):
        raise ValueError(_advice(text, split.scheme, ports))
    host, port = _host_and_port(split)
    default = ports[split.scheme]
    if port is None and default is None:
        raise ValueError(f"{split.scheme}://host:port, with a port")
    if port is not None and default == 0:
        raise ValueError(f"{split.scheme}://host, without a port")
    if split.fragment:
        raise ValueError("a URL without a fragment (#...), which is never sent")
    if default is None and (split.path or split.query):
        raise ValueError(f"{split.scheme}://host:port and nothing after it")
    return Url(
        split.scheme,
        host,
        port or default or 0,
        "" if default is None else _target(split),
        unquote(split.username) if split.username else None,
        unquote(split.password) if split.password else None,
        has_default_port=(port or default) == default,
    )


def masked(text: str) -> str:
    """Mask credentials in text that may hold a URL."""
    return _QUERY_VALUE.sub(_masked, _without_userinfo(text))


def _without_userinfo(text: str) -> str:
    """Mask everything up to the last @: a password may hold a slash that should be written as %2F."""
    end = text.rfind("@")
    if end <= 0:  # there is none, or nothing before it, as in "@every 10s"
        return text
    slashes = text.find("//", 0, end)
    return f"{text[: slashes + 2] if slashes >= 0 else ''}{MASK}{text[end:]}"


def secrets_in(text: str) -> frozenset[str]:
    """Return secrets of any URL in all spellings, as `Url.secrets` does."""
    userinfo = _USERINFO.search(text)
    user, _, password = userinfo[0].rpartition("@")[0].removeprefix("//").partition(":") if userinfo else ("", "", "")
    is_of_http = userinfo is not None and text[: userinfo.start()].lower().removesuffix(":") in _OF_HTTP
    return _spellings([password or (user if is_of_http else None), *_secret_values(text)])


def is_address(host: str) -> bool:
    """Whether a host needs no lookup."""
    return address_family(host) is not None


def address_family(host: str) -> int | None:
    """Return 4 or 6; None for a name."""
    if len(host) > _LONGEST_HOST or not (":" in host or host[-1:].isdigit()):  # most names, and no address
        return None
    return _family_of(host)


@lru_cache(maxsize=10_000)
def _family_of(host: str) -> int | None:
    try:
        return 6 if isinstance(ip_address(host), IPv6Address) else 4
    except ValueError:
        return None


def _split(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:  # the error's text repeats credentials
        pass
    if set(text) & set("[]"):
        raise ValueError(f"{_IN_BRACKETS}, and no brackets elsewhere")
    raise ValueError("a host without characters that stand for one of / ? # @ :, such as \u2100")


@lru_cache(maxsize=10_000)
def host_name(text: str) -> str:
    """Return the canonical form of a host. Raises ValueError with what was expected."""
    return _ascii_name(text) if address_family(text) is None else str(ip_address(text))


def _ascii_name(text: str) -> str:
    if len(text) > _LONGEST_HOST:
        raise ValueError(f"a host name of at most {_LONGEST_HOST} characters")
    try:
        return text.lower().removesuffix(".").encode("idna").decode("ascii")
    except UnicodeError:
        raise ValueError("a host name that can be written in ASCII (IDNA)") from None


def _host_and_port(split: SplitResult) -> tuple[str, int | None]:
    place = split.netloc.rpartition("@")[2]
    if "[" not in place and place.count(":") > 1:
        raise ValueError(_IN_BRACKETS)
    try:
        port = split.port
    except ValueError:
        raise ValueError(f"a port from 1 to {_HIGHEST_PORT}") from None
    if port == 0:
        raise ValueError(f"a port from 1 to {_HIGHEST_PORT}")
    if not split.hostname:
        raise ValueError(f"a host after {split.scheme}://")
    host = _ENCODED_ZONE.sub("%", split.hostname, count=1) if ":" in split.hostname else split.hostname
    return host if is_address(host) else host_name(host), port


def _target(split: SplitResult) -> str:
    path = quote(split.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(split.query, safe="/%:@!$&'()*+,;=~-._?")
    return f"{path}?{query}" if query else path


def _advice(text: str, scheme: str, ports: Mapping[str, int | None]) -> str:
    known = ", ".join(f"{each}://" for each in ports)
    if len(text) > _LONGEST_SHOWN:
        return f"a URL that begins with one of {known}"
    if similar := get_close_matches(scheme, ports, n=1, cutoff=0.75):
        return f"a URL that begins with one of {known} (did you mean {similar[0]}://?)"
    if "://" not in text:
        return f"a URL that begins with one of {known} (did you mean http://{masked('//' + text)[2:]}?)"
    return f"a URL that begins with one of {known}"


def _secret_values(text: str) -> Iterator[str]:
    return (match[2] for match in _QUERY_VALUE.finditer(text) if sounds_secret(match[1]))


def _spellings(values: Iterable[str | None]) -> frozenset[str]:
    return frozenset(form for value in values if value for form in (value, quote(value, safe=""), unquote(value)))


def sounds_secret(key: str) -> bool:
    """Whether such a key's value must be hidden."""
    return _SECRET_KEY.search(key) is not None


def _masked(match: re.Match[str]) -> str:
    return f"{match[1]}={MASK}" if sounds_secret(match[1]) else match[0]
