"""Checks, and kinds of them: the seam at which new ones come in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from attrs import field, frozen

from ...text import Url
from ...toml import Reader
from .result import Finding
from .stopwatch import Stopwatch


@frozen
class Attempt:
    """One address to be checked.

    Measure with `watch`; complete its phase "connect" as soon as the address has answered. `connect_within`: seconds
    after which to give up connecting, for there may be another address to try. Nothing else needs a timeout: the
    caller cancels.
    """

    address: str
    watch: Stopwatch
    connect_within: float


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

    Only an address that it `permits` may be dialled; `refusal` says so of one that it does not.
    """

    check: Check
    permits: Callable[[str], bool]
    refusal: Callable[[str], str]


@frozen
class Kind:
    """A type of check. `name` is also that of its limit.

    `schemes`: URL schemes with their default ports. `options`: its own keys in the configuration.
    `make(url=..., **options)` makes a check of those options that were given.
    """

    name: str
    schemes: Mapping[str, int | None]
    make: Callable[..., Check]
    options: Mapping[str, Reader[Any]] = field(factory=dict)
