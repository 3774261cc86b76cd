"""The interface for new kinds of check."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from attrs import field, frozen

from ...text import Url
from ...toml import Reader
from .result import Detail, Finding
from .stopwatch import Stopwatch


@frozen
class Attempt:
    """One address to check; "" if it was not looked up.

    Complete the phase "connect" of `watch` once the address has answered. `connect_within`: seconds for connecting,
    because another address may follow. If `is_last`, they are for the whole attempt. The caller cancels a slow attempt:
    no other timeout is needed. `before`: the detail of the target's last result, also from an earlier process.
    """

    address: str
    watch: Stopwatch
    connect_within: float
    is_last: bool = False
    before: Detail = field(factory=dict)


class Check(Protocol):
    """Asks one address whether a target is well. Frozen: many runs use it at a time."""

    @property
    def url(self) -> Url:
        """Where the check looks."""

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never shown or logged."""

    async def attempt(self, at: Attempt) -> Finding | Hop:
        """Ask the address. Leave nothing open, even when cancelled.

        Raises OSError, and CheckFailed if the answer makes no sense. Other errors count as defects of the check.
        """


@frozen
class Hop:
    """Another check to make instead, in the time that is left.

    Its host is looked up, and it waits for room in that host's limits. Only addresses that it `permits` are dialled;
    `refusal` is the error for others. `is_redirect`: the target sent us, so trouble at the hop is the target's.
    Otherwise trouble leaves the target unknown.
    """

    check: Check
    permits: Callable[[str], bool]
    refusal: Callable[[str], str]
    is_redirect: bool = True


class Clash(Exception):
    """Options conflict with each other or the URL. The text advises on `key`."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}: {text}")
        self.key = key


@frozen
class Kind:
    """A type of check, and its limit of the same name.

    - `schemes`: URL schemes with default ports. None: a URL must name a port and no path. NO_PORT: it must name no
      port.
    - `make(url=..., **options)`: makes a check. Raises Clash.
    - `options`: its own keys in the configuration, with their readers.
    - `is_resolved`: its host is looked up, it waits for room in its limit, and its addresses are asked one by one.
      Otherwise the check gets one attempt, at the address "". It dials nothing itself, but may return a Hop.
    - `least_interval`: seconds. No interval is shorter than this, not even the default interval.
    - `meaning`: a sentence of docs/configuration.md that says when such a check is up.

    A check whose `redirects` is above 0 may return a Hop. Raises ValueError if a value is ambiguous or unusable.
    """

    name: str
    schemes: Mapping[str, int | None]
    make: Callable[..., Check]
    options: Mapping[str, Reader[Any]] = field(factory=dict)
    is_resolved: bool = field(default=True, kw_only=True)
    least_interval: float = field(default=0.0, kw_only=True)
    meaning: str = field(default="", kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not _is_word(self.name) or self.name in _TAKEN:
            raise ValueError(f"the name of a kind is a word such as 'smtp', and none of a limit: {self.name!r}")
        if not self.schemes or not all(_is_scheme(each) and _is_port(port) for each, port in self.schemes.items()):
            raise ValueError(f"a kind has URL schemes with default ports, such as {{'smtp': 25}}: {self.schemes!r}")
        if not callable(self.make) or not all(_is_word(key) and callable(self.options[key]) for key in self.options):
            raise ValueError(f"the kind {self.name!r} needs a callable `make`, and a reader for each option")
        if not 0 <= self.least_interval < math.inf:
            raise ValueError(f"a least interval is a number of seconds from 0: {self.least_interval!r}")


NO_PORT: Final = 0
"""For schemes whose URLs have no port."""

_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,40}")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]{0,40}")
_HIGHEST_PORT: Final = 65535
_TAKEN: Final = frozenset({"total", "host"})


def _is_word(value: object) -> bool:
    return isinstance(value, str) and _WORD.fullmatch(value) is not None


def _is_scheme(value: object) -> bool:
    return isinstance(value, str) and _SCHEME.fullmatch(value) is not None


def _is_port(value: object) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value is None or (is_number and NO_PORT <= value <= _HIGHEST_PORT)  # type: ignore[operator] # it is one
