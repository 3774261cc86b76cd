"""[network], [hosts] and [push]."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from attrs import frozen

from schedule import Every

from ..checks import PushCheck, known_kinds
from ..text import address_family, is_address, parse_url
from ..toml import Section, Unfit, boolean, one_form, seconds
from .target import Target, url_of

INTERVAL_S: Final = 2.0
TIMEOUT: Final = 2.0
MAX_SECONDS: Final = 30.0
MAX_URLS: Final = 16
_EXPECTED: Final = 'a list of 1 to 16 URLs such as ["tcp://192.0.2.1:53", "https://example.org/"]'

_PLACE: Final = 'an address of this machine and a port, such as "127.0.0.1:8075" or "[::1]:8075"'
LOOPBACK: Final = ("127.", "::1")
_HIGHEST_PORT: Final = 65_535


@frozen
class Network:
    """One of these probes must answer, or we are offline. `every`: seconds between rounds."""

    probes: tuple[Target, ...] = ()
    every: float = INTERVAL_S

    @property
    def longest(self) -> float:
        """Seconds that a round and its answer may take."""
        return self.every + max((each.timeout for each in self.probes), default=0.0) if self.probes else 0.0


@frozen(kw_only=True)
class Push:
    """Where signals come in. `takes_get`: a GET is a signal too."""

    host: str
    port: int
    takes_get: bool = False


def read_hosts(section: Section) -> dict[str, tuple[str, ...]]:
    """Read [hosts]."""
    found = {
        host: section.take(name, _addresses, (), "its addresses") for host, name in one_form(section.table, section)
    }
    section.end()
    return found


def read_network(section: Section) -> Network:
    """Read [network]."""
    urls = section.take(
        "probe",
        _urls,
        (),
        "they are asked, all at once, only when a check has failed. The first that answers will do",
    )
    every = section.take(
        "every",
        _short,
        INTERVAL_S,
        "how long after one round the next may follow. A failed check waits for an answer that is younger than its "
        "failure",
    )
    timeout = section.take("timeout", _short, TIMEOUT, "for each probe")
    section.end()
    return Network(tuple(_probe(each, timeout) for each in urls), every)


def _urls(value: Any) -> tuple[str, ...]:
    urls = [value] if isinstance(value, str) else value
    if not isinstance(urls, list) or not 1 <= len(urls) <= MAX_URLS:
        raise Unfit(_EXPECTED, value)
    for each in urls:
        found = url_of(each)
        if not known_kinds().by_scheme[found.scheme].is_resolved:
            raise Unfit(f"{_EXPECTED}: each with a host to connect to", each)
    return tuple(urls)


def _addresses(value: Any) -> tuple[str, ...]:
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not items or not all(_is_address(each) for each in items):
        raise Unfit('IP addresses such as ["127.0.0.1", "::1"]', value)
    return tuple(items)


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and address_family(value) is not None


def _short(value: Any) -> float:
    with suppress(Unfit):
        if (found := seconds(value)) <= MAX_SECONDS:
            return found
    raise Unfit(f'a duration up to {MAX_SECONDS:g} s, such as "2s"', value)


def _probe(url: str, timeout: float) -> Target:
    kinds = known_kinds()
    parsed = parse_url(url, kinds.ports)
    kind = kinds.by_scheme[parsed.scheme]
    check = kind.make(url=parsed)
    return Target(name=str(parsed), kind=kind.name, check=check, schedule=Every(INTERVAL_S), timeout=timeout)


def read_push(section: Section, targets: Collection[Target]) -> tuple[Push | None, list[str]]:
    """Read where to listen, and warnings. Notes a problem if a target needs it."""
    place = section.take(
        "listen",
        place_of,
        None,
        "where signals of push checks come in, by HTTP. It has to be there if there is such a check",
    )
    takes_get = section.take(
        "get",
        boolean,
        False,  # noqa: FBT003 - the default of a key
        "whether a GET is a signal, as a POST is. Browsers, crawlers and previews of links send GET by themselves",
    )
    section.end()
    reporting = [each.name for each in targets if isinstance(each.check, PushCheck) and each.is_enabled]
    for name, other in _same_tokens(targets):
        section.complain(f"{name} and {other} have the same token: give each its own, or nobody knows who has reported")
    if reporting and place is None and not section.has("listen"):
        section.complain(f'add listen = "127.0.0.1:8075": {reporting[0]} reports to it')
    if place is None:
        return None, []
    push = Push(host=place[0], port=place[1], takes_get=takes_get)
    if push.host.startswith(LOOPBACK):
        return push, []
    warning = "[push] listens beyond this machine without TLS: put a proxy before it, or others can read the tokens"
    return push, [warning]


def _same_tokens(targets: Iterable[Target]) -> Iterator[tuple[str, str]]:
    first: dict[str, str] = {}
    for each in targets:
        if isinstance(each.check, PushCheck) and first.setdefault(each.check.token, each.name) != each.name:
            yield each.name, first[each.check.token]


def place_of(value: Any) -> tuple[str, int]:
    """Read an address and a port."""
    if isinstance(value, str):
        host, _, port = value.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if is_address(host) and port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= _HIGHEST_PORT:
            return host, int(port)
    raise Unfit(_PLACE, value)
