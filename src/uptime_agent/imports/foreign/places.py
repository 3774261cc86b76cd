"""Places as other monitors write them: hosts with and without ports, brackets and schemes."""

from __future__ import annotations

from ...text import address_family


def bracketed(place: str) -> str:
    """A host, or host and port, for a URL: an IPv6 address in brackets."""
    bare = place.removeprefix("[").removesuffix("]")
    return f"[{bare}]" if address_family(bare) == 6 else place  # noqa: PLR2004 - IPv6


def host_of(url: str) -> str:
    """The host of a URL, without brackets; "" if it has none."""
    place = url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]
    if place.startswith("["):
        return place[1:].partition("]")[0]
    return place.partition(":")[0]


def domain_of(host: str) -> str:
    """The likely domain of a host: its last two labels. "" for an address or a single label."""
    labels = host.rstrip(".").lower().split(".")
    return "" if address_family(host) is not None or len(labels) < 2 or not all(labels) else ".".join(labels[-2:])  # noqa: PLR2004
