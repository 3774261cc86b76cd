"""Which addresses checks may dial.

A name's owner chooses its addresses, so the dialled address decides, in any notation: 2130706433, 0x7f.1 and 127.1 are
addresses. An IPv6 address is judged as the IPv4 address in it.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

from attrs import frozen

from ...text import host_name
from ...toml import Unfit

_NAT64: Final = IPv6Network("64:ff9b::/96")
_LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")
_V4_COMPATIBLE: Final = IPv6Network("::/96")
_RELAYS_OF_6TO4: Final = IPv4Network("192.88.99.0/24")
"""The nearest relay, maybe in our network. Retired by RFC 7526."""

_ISATAP: Final = (0x00005EFE, 0x02005EFE)
_EXPECTED: Final = '"any", "public", or a list such as ["public", "10.0.0.0/8", "db.internal", "*.example.org"]'

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@frozen
class Reach:
    """Any address, or public ones, networks, and names. A name with a leading dot stands for all below it."""

    is_any: bool = True
    is_public: bool = False
    networks: tuple[Network, ...] = ()
    names: tuple[str, ...] = ()

    def permits(self, host: str, address: str) -> bool:
        """Whether a host's address may be dialled."""
        if self.is_any or any(_is_below(host, name) for name in self.names):
            return True
        found = effective(address)
        if found is None:
            return False
        return (self.is_public and is_public(address)) or any(
            found.version == each.version and found in each for each in self.networks
        )

    def refusal(self, host: str, address: str) -> str:
        """Why an address is not dialled, and what would allow it."""
        place = address if host == address else f"{host} ({address})"
        return f'{place} is not asked: "targets" in the configuration does not allow it'


ANYWHERE: Final = Reach()
PUBLIC: Final = Reach(is_any=False, is_public=True)


def is_public(address: str) -> bool:
    """Whether an address is on the internet, in no network of ours."""
    found = effective(address)
    if found is None:
        return False
    if isinstance(found, IPv4Address) and found in _RELAYS_OF_6TO4:
        return False
    if isinstance(found, IPv6Address) and (found.scope_id or found.is_site_local or found in _LOCAL_NAT64):
        return False
    return found.is_global and not found.is_multicast and not found.is_reserved and not found.is_unspecified


def effective(address: str) -> Address | None:
    """The address, or the IPv4 address in it. None: invalid."""
    try:
        found = ip_address(address)
    except ValueError:
        return None
    inner = _inside(found) if isinstance(found, IPv6Address) else None
    return found if inner is None else inner


def _inside(address: IPv6Address) -> IPv4Address | None:
    """Mapped, NAT64, 6to4, Teredo, ISATAP, or compatible."""
    last = IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _NAT64 or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return last
    if address in _V4_COMPATIBLE and int(address) > 1:  # :: and ::1 are themselves
        return last
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)


def reach(value: Any) -> Reach:
    """Read a reach. Raises Unfit."""
    if value == "any":
        return ANYWHERE
    if value == "public":
        return PUBLIC
    if not isinstance(value, list) or not value:
        raise Unfit(_EXPECTED, value)
    found = [_place(each) for each in value]
    return Reach(
        is_any=False,
        is_public="public" in value,
        networks=tuple(each for each in found if isinstance(each, (IPv4Network, IPv6Network))),
        names=tuple(each for each in found if isinstance(each, str)),
    )


def _place(value: Any) -> Network | str | None:
    if not isinstance(value, str) or not value or value == "any":
        raise Unfit(_EXPECTED, value)
    if value == "public":
        return None
    try:
        return ip_network(value)
    except ValueError as exc:
        if "/" in value or value.replace(".", "").isdigit() or ":" in value:
            raise Unfit(f'a network such as "10.0.0.0/8" ({exc})', value) from None
    wildcard, name = ("." if value.startswith("*.") else "", value.removeprefix("*."))
    if "*" in name:
        raise Unfit('a name, or all below one, as in "*.example.org"', value)
    try:
        return wildcard + host_name(name)
    except ValueError as exc:
        raise Unfit(str(exc), value) from None


def _is_below(host: str, name: str) -> bool:
    return host.endswith(name) if name.startswith(".") else host == name
