"""[api]: where people and programs reach the running agent, and whom it believes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from ..text import host_name
from ..toml import Section, Unfit, labels, text
from .network import LOOPBACK, place_of

SCOPES: Final = ("read", "operate", "admin")
ANYBODY: Final = "*"
"""The user in `users` who stands for all others."""

_FOLDER: Final = ".api"
_PROXIES: Final = 'a list of addresses or networks such as ["10.0.0.5", "10.1.0.0/24"]'
_MARKS: Final = frozenset("-")

AnyNetwork = IPv4Network | IPv6Network


@frozen(kw_only=True)
class Proxies:
    """Peers that say in a header who asks, and what these users may."""

    networks: tuple[AnyNetwork, ...] = ()
    header: str | None = None
    users: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class Api:
    """`socket`, `listen`: where it is reached. `tokens`: the file of tokens. `hosts`: names that `Host` may have."""

    socket: Path
    listen: tuple[str, int] | None = None
    tokens: Path
    hosts: tuple[str, ...] = ()
    proxies: Proxies = field(factory=Proxies)

    @property
    def is_beyond(self) -> bool:
        """Whether other machines reach it."""
        return self.listen is not None and not self.listen[0].startswith(LOOPBACK)


def read_api(section: Section, file: Path, *, is_given: bool) -> tuple[Api | None, list[str]]:
    """Read where the control API listens, and warnings. None: there is no [api]."""
    folder = file.with_suffix(_FOLDER)
    path = section.take(
        "socket",
        _path_from(file.parent),
        folder / "socket",
        "a Unix socket that only the user of the agent can reach, in a folder that only this user may write to. By "
        "default `socket` in a folder beside the configuration, named after it and ending in `.api`",
    )
    listen = section.take(
        "listen",
        place_of,
        None,
        "an address and a port, such as `127.0.0.1:8080`, in addition. Callers there need a token",
    )
    tokens = section.take(
        "tokens",
        _path_from(file.parent),
        folder / "tokens",
        "the file that `timerqueue token` writes. By default `tokens` in the same folder as the socket's default",
    )
    hosts = section.take(
        "hosts",
        _hosts,
        (),
        "names, as in `Host`, under which browsers and programs may reach `listen`. The names of this machine's "
        "loopback and its addresses always may",
    )
    networks = section.take(
        "trusted_proxies",
        _networks,
        (),
        "peers whose word about the user is taken. They need `user_header` and `users`",
    )
    header = section.take(
        "user_header", _header, None, "the header in which a trusted proxy names the user. All others may not send it"
    )
    users = section.take(
        "users",
        _users,
        {},
        "what the users of trusted proxies may: `read`, `operate` or `admin`. `*` stands for all others. By default "
        "nothing",
    )
    _check(section, networks, header, users)
    section.end()
    if not is_given:
        return None, []
    if find_spec("starlette") is None:
        section.complain("needs starlette, which is not installed: pip install 'timerqueue[agent,web]'")
    proxies = Proxies(networks=networks, header=header, users=users)
    api = Api(socket=path, listen=listen, tokens=tokens, hosts=hosts, proxies=proxies)
    warning = "[api] listens beyond this machine without TLS: put a proxy before it, or others can read the tokens"
    return api, [warning] if api.is_beyond else []


def _check(section: Section, networks: tuple[AnyNetwork, ...], header: str | None, users: Mapping[str, str]) -> None:
    given = {"trusted_proxies": bool(networks), "user_header": header is not None, "users": bool(users)}
    if any(given.values()) and not all(given.values()) and not any(map(section.is_misfit, given)):
        missing = next(name for name, is_given in given.items() if not is_given)
        section.complain(
            f"{missing} is missing: a proxy that names the user needs trusted_proxies, user_header and users"
        )


def _path_from(folder: Path) -> Callable[[Any], Path]:
    def read(value: Any) -> Path:
        if not isinstance(value, str) or not value or "\0" in value:
            raise Unfit("a path, relative to this file", value)
        return folder / value

    return read


def _hosts(value: Any) -> tuple[str, ...]:
    try:
        return tuple(host_name(each) for each in labels(value))
    except ValueError:
        raise Unfit('a list of names such as ["status.example.org"], without ports', value) from None


def _networks(value: Any) -> tuple[AnyNetwork, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Unfit(_PROXIES, value)
    try:
        return tuple(map(ip_network, value))
    except ValueError:
        raise Unfit(_PROXIES, value) from None


def _header(value: Any) -> str:
    found = text(value)
    if not found.isascii() or not all(each.isalnum() or each in _MARKS for each in found):
        raise Unfit("the name of a header, such as X-Forwarded-User", value)
    if found.lower() in {"authorization", "host", "origin", "cookie"}:
        raise Unfit("a header of the proxy's own, such as X-Forwarded-User", value)
    return found.lower()


def _users(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(each in SCOPES for each in value.values()):
        raise Unfit('a table such as { "ann@example.org" = "admin", "*" = "read" }', value)
    return dict(value)


def is_in(networks: tuple[AnyNetwork, ...], address: str) -> bool:
    """Whether an address is in one of the networks. IPv4 within IPv6 counts as IPv4."""
    found = ip_address(address.partition("%")[0])
    plain = getattr(found, "ipv4_mapped", None) or found
    return any(plain.version == each.version and plain in each for each in networks)
