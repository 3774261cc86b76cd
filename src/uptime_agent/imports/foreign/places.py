"""Hosts as other monitors write them."""

from __future__ import annotations

from ...text import address_family


def bracketed(place: str) -> str:
    """Put an IPv6 address in brackets."""
    bare = place.removeprefix("[").removesuffix("]")
    return f"[{bare}]" if address_family(bare) == 6 else place  # noqa: PLR2004 - IPv6


def host_of(url: str) -> str:
    """A URL's host, without brackets, or ""."""
    place = url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]
    if place.startswith("["):
        return place[1:].partition("]")[0]
    return place.partition(":")[0]


def domain_of(host: str) -> str:
    """A host's likely domain: its last two labels, or ""."""
    labels = host.rstrip(".").lower().split(".")
    return "" if address_family(host) is not None or len(labels) < 2 or not all(labels) else ".".join(labels[-2:])  # noqa: PLR2004
