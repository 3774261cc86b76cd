"""Checks, and kinds of them: the seam at which new ones come in."""

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
    """One address to be checked; "" for a kind that is not resolved.

    Measure with `watch`; complete its phase "connect" as soon as the address has answered. `connect_within`: seconds
    after which to give up connecting, for there may be another address to try; `is_last`: there is none, and these are
    all the seconds that there are. Nothing else needs a timeout: the caller cancels. `before`: the detail of the
    target's last result, also of an earlier process.
    """

    address: str
    watch: Stopwatch
    connect_within: float
    is_last: bool = False
    before: Detail = field(factory=dict)


class Check(Protocol):
    """A way to ask one address of a target whether it is well. A frozen value, used by many runs at a time."""

    @property
    def url(self) -> Url:
        """The place where the check looks."""

    @property
    def secrets(self) -> frozenset[str]:
        """Texts that must not be shown or logged."""

    async def attempt(self, at: Attempt) -> Finding | Hop:
        """Ask the address. Nothing stays open, whatever happens, also when cancelled.

        Raises OSError as it comes, CheckFailed for an answer that makes no sense. Anything else counts as a defect of
        the check.
        """


@frozen
class Hop:
    """Where an answer leads: another check, to be made in its place, with what is left of its time.

    Its name is looked up, the limits of its host are waited for, and only an address that it `permits` is dialled;
    `refusal` says so of one that it does not. `is_redirect`: whether the target itself has sent us there, so that what
    goes wrong there is its own trouble. If not, somebody is asked about it: who cannot be asked leaves it unknown.
    """

    check: Check
    permits: Callable[[str], bool]
    refusal: Callable[[str], str]
    is_redirect: bool = True


class Clash(Exception):
    """Options of a check that do not fit together, or not to its URL. The text says what to do about `key`."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}: {text}")
        self.key = key


@frozen
class Kind:
    """A type of check. `name` is also that of its limit.

    `schemes`: URL schemes with their default ports. None: a URL has to name one, and nothing follows it; NO_PORT: it
    must not. `options`: its own keys in the configuration.
    `make(url=..., **options)` makes a check of those options that were given. Raises Clash.
    `is_resolved`: whether the host of the URL is looked up, its limit waited for and its addresses asked one by one. A
    kind that is not gets one attempt, at the address "": it dials nothing itself, but may return a Hop.
    `least_interval`: seconds. No interval of a check may be shorter; it is also the default where that would be.
    `meaning`: when a check of the kind is up, in a sentence of docs/configuration.md.
    `redirects` of a check, if it has that, is more than 0 if an attempt may return a Hop.

    Raises ValueError for what could not be told apart or used in a configuration.
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
"""The default port of a scheme whose URLs have none."""

_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,40}")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]{0,40}")
_HIGHEST_PORT: Final = 65535
_TAKEN: Final = frozenset({"total", "host"})
"""Limits of other things than kinds."""


def _is_word(value: object) -> bool:
    return isinstance(value, str) and _WORD.fullmatch(value) is not None


def _is_scheme(value: object) -> bool:
    return isinstance(value, str) and _SCHEME.fullmatch(value) is not None


def _is_port(value: object) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value is None or (is_number and NO_PORT <= value <= _HIGHEST_PORT)  # type: ignore[operator] # it is one
