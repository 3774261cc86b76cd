"""All kinds of check: ours, and kinds of other distributions.

A distribution names a `Kind` in an entry point of the group `timerqueue.checks`. Unusable kinds are left out and named.
In conflicts ours win, then distributions by name: all machines decide alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from attrs import evolve, field, frozen

from ..text import printable
from ..toml import Reader, Unfit
from .contract import Check, Clash, Kind
from .dns import DNS
from .domain import DOMAIN
from .http import HTTP
from .icmp import ICMP
from .ntp import NTP
from .postgres import POSTGRES
from .push import PUSH
from .tcp import TCP
from .tls import TLS

KINDS: Final = (HTTP, TCP, TLS, DNS, DOMAIN, ICMP, NTP, POSTGRES, PUSH)

GROUP: Final = "timerqueue.checks"

COMMON: Final = frozenset(
    (
        "url name tags enabled schedule interval timeout mode need ip degraded_above max_attempts retry_interval"
        " failing_interval start depends_on notify where agents apart votes min_agents"
    ).split()
)
"""Keys of every check."""

_LONGEST: Final = 200


@frozen
class Kinds:
    """Kinds by scheme. `troubles`: why entry points were left out."""

    every: tuple[Kind, ...]
    troubles: Mapping[str, str] = field(factory=dict)
    by_scheme: Mapping[str, Kind] = field(init=False)
    ports: Mapping[str, int | None] = field(init=False)
    """Default ports, for `parse_url`."""

    @by_scheme.default
    def _by_scheme(self) -> dict[str, Kind]:
        return {scheme: kind for kind in self.every for scheme in kind.schemes}

    @ports.default
    def _ports(self) -> dict[str, int | None]:
        return {scheme: kind.schemes[scheme] for scheme, kind in self.by_scheme.items()}


OURS: Final = Kinds(KINDS)
BY_SCHEME: Final = OURS.by_scheme
PORTS: Final = OURS.ports


@cache
def known_kinds() -> Kinds:
    """All kinds, ours and installed, loaded once."""
    return gathered(entry_points(group=GROUP))


def gathered(entries: Iterable[EntryPoint]) -> Kinds:
    """Add kinds of entry points to ours."""
    kinds = OURS
    for entry in sorted(entries, key=lambda each: (_origin(each), each.name)):
        try:
            kinds = _with(kinds, entry.load())
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - any error may come out of it, and no other kind suffers
            why = printable(f"{type(exc).__name__}: {exc}"[:_LONGEST])
            text = f"the kind of check '{entry.name}' of {_origin(entry)} is left out: {entry.value}: {why}"
            kinds = evolve(kinds, troubles={**kinds.troubles, entry.name: text})
    return kinds


def _origin(entry: EntryPoint) -> str:
    return "an unknown distribution" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


def _with(kinds: Kinds, found: object) -> Kinds:
    if not isinstance(found, Kind):
        raise TypeError(f"expected a Kind, found a {type(found).__name__}")
    if found.name in {each.name for each in kinds.every}:
        raise ValueError(f"there is a kind {found.name!r} already")
    if taken := sorted(found.schemes.keys() & kinds.by_scheme.keys()):
        raise ValueError(f"the scheme {taken[0]}:// is that of {kinds.by_scheme[taken[0]].name} checks")
    if taken := sorted(found.options.keys() & COMMON):
        raise ValueError(f"the option {taken[0]!r} is a key that every check has")
    return evolve(kinds, every=(*kinds.every, _guarded(found)))


def _guarded(kind: Kind) -> Kind:

    def make(**options: Any) -> Check:
        try:
            return kind.make(**options)
        except Clash:
            raise
        except Exception as exc:
            raise Clash("url", f"the kind {kind.name} failed to make a check: {type(exc).__name__}: {exc}") from exc

    return evolve(kind, make=make, options={key: _safe(reader, kind.name) for key, reader in kind.options.items()})


def _safe(reader: Reader[Any], name: str) -> Reader[Any]:
    def read(value: Any) -> Any:
        try:
            return reader(value)
        except Unfit:
            raise
        except Exception as exc:
            raise Unfit(f"what the kind {name} can read ({type(exc).__name__}: {exc})", value) from exc

    return read
