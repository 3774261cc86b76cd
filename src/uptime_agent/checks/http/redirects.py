"""Where a redirect may lead.

It may be what only we can reach, such as a cloud's metadata service. A name's owner chooses its addresses, so the
dialled address decides.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urljoin

from attrs import evolve, frozen

from ...text import Url, parse_url
from ..contract import CheckFailed
from ..net import is_public

MAX_CHARACTERS: Final = 8_000
"""Characters of a Location."""

_SHOWN: Final = 100


class RedirectTargets(enum.Enum):
    """Where redirects may lead."""

    SAME_HOST = "same-host"
    PUBLIC = "public"
    """Any host at a public address, and the check's own host."""
    ANY = "any"


@frozen
class OwnHost:
    """The check's own host, and the address dialled."""

    host: str
    address: str


def next_url(url: Url, location: bytes, ports: Mapping[str, int | None]) -> Url:
    """Where `location` leads from `url`, without credentials. Raises CheckFailed."""
    if len(location) > MAX_CHARACTERS:
        raise CheckFailed(f"redirects to a URL of {len(location):,} characters, more than {MAX_CHARACTERS:,}")
    base = f"{url.scheme}://{url.bracketed}:{url.port}{url.target}"
    try:
        joined = urljoin(base, _text(location)).partition("#")[0]
        following = parse_url(joined, ports)
    except ValueError:
        raise CheckFailed("redirects to something that is not an http:// or https:// URL") from None
    if url.scheme == "https" and following.scheme == "http":
        raise CheckFailed("redirects from https to http")
    return evolve(following, user=None, password=None)


def may_name(targets: RedirectTargets, origin: OwnHost, url: Url) -> bool:
    """Whether a redirect may name that host."""
    return targets is not RedirectTargets.SAME_HOST or url.host == origin.host


def may_dial(targets: RedirectTargets, origin: OwnHost, host: str, address: str) -> bool:
    """Whether a redirect may dial the address. The check's own host may stay private."""
    if targets is RedirectTargets.ANY or is_public(address):
        return True
    return host == origin.host and not is_public(origin.address)


def refusal(url: Url, address: str, targets: RedirectTargets) -> str:
    """Why a redirect is not followed, and what would allow it."""
    return f"redirects to {forbidden(url, address, targets)}"


def forbidden(url: Url, address: str, targets: RedirectTargets) -> str:
    """The place that is not asked, and what would allow it."""
    place = f"{url.authority} ({address})" if url.host != address else url.authority
    return f'{place[-_SHOWN:]}, which redirect_targets = "{targets.value}" does not allow'


def _text(location: bytes) -> str:
    """Read as browsers do: UTF-8 if valid, blanks encoded."""
    try:
        text = location.decode()
    except UnicodeDecodeError:
        text = location.decode("latin-1")
    return text.strip().replace(" ", quote(" "))
