"""[network] of a configuration: what is asked, when a check has failed, whether this machine is online at all."""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

from schedule import Every

from ..checks import known_kinds
from ..text import parse_url
from ..toml import Section, Unfit, seconds
from .target import Target, url_of

EVERY: Final = 2.0
TIMEOUT: Final = 2.0
LONGEST: Final = 30.0
MOST: Final = 16
_EXPECTED: Final = 'a list of 1 to 16 URLs such as ["tcp://192.0.2.1:53", "https://example.org/"]'


@frozen
class Network:
    """The probes of which one must answer, or we are offline; none: nobody asks. `every`: seconds between rounds."""

    probes: tuple[Target, ...] = ()
    every: float = EVERY

    @property
    def longest(self) -> float:
        """Seconds that an answer may take, with the wait for the round."""
        return self.every + max((each.timeout for each in self.probes), default=0.0) if self.probes else 0.0


def read_network(section: Section) -> Network:
    """Read [network]."""
    urls = section.take("probe", _urls, ())
    every = section.take("every", _short, EVERY)
    timeout = section.take("timeout", _short, TIMEOUT)
    section.end()
    return Network(tuple(_probe(each, timeout) for each in urls), every)


def _urls(value: Any) -> tuple[str, ...]:
    urls = [value] if isinstance(value, str) else value
    if not isinstance(urls, list) or not 1 <= len(urls) <= MOST:
        raise Unfit(_EXPECTED, value)
    for each in urls:
        found = url_of(each)
        if not known_kinds().by_scheme[found.scheme].is_resolved:
            raise Unfit(f"{_EXPECTED}: each with a host to connect to", each)
    return tuple(urls)


def _short(value: Any) -> float:
    """Read a duration that a failed check can wait for."""
    found = seconds(value)
    if found > LONGEST:
        raise Unfit(f"a duration up to {LONGEST:g} s", value)
    return found


def _probe(url: str, timeout: float) -> Target:
    kinds = known_kinds()
    parsed = parse_url(url, kinds.ports)
    kind = kinds.by_scheme[parsed.scheme]
    check = kind.make(url=parsed)
    return Target(name=str(parsed), kind=kind.name, check=check, schedule=Every(EVERY), timeout=timeout)
