"""Sizes of limits as users give them: at a time or in a window, for this node or the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from attrs import field, frozen

from schedule import shown

from ..._shape import count_of, limits_of, seconds_of
from ..._values import InvalidJob
from ...stores import MOST_UNITS

LONGEST_NAME: Final = 512
"""Characters."""

SHORTEST_WINDOW: Final = 0.001
LONGEST_WINDOW: Final = 7 * 86_400.0
"""Seconds."""


@frozen
class Rate:
    """A limit on the pace: at most `units` begin in any window of `seconds`. Made by `rate`."""

    units: int
    seconds: float

    def __repr__(self) -> str:
        return f'rate({self.units}, "{self.seconds:g}s")'


@frozen
class Fleet:
    """A limit that all nodes of a store share. Made by `fleet`.

    `seconds`: the window of a rate. 0: units at a time.
    """

    units: int
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"fleet({Rate(self.units, self.seconds) if self.seconds else self.units})"


@frozen(kw_only=True)
class Sizes:
    """`windows`: of rates, in seconds."""

    units: Mapping[str, float] | None
    of_fleet: Mapping[str, int] = field(factory=dict)
    windows: Mapping[str, float] = field(factory=dict)


def rate(units: int, window: timedelta | float | str) -> Rate:
    """Limit the pace, for `limits`: at most `units` begin in any such window.

    Work uses its unit from its beginning until a window later, even if it ends sooner. Raises InvalidJob unless `units`
    is 1 to 10,000, and `window` a millisecond to a week.
    """
    seconds = seconds_of("the window of rate()", window)
    if count_of("the units of rate()", units) > MOST_UNITS:
        msg = f"rate({units}, ...) is more than can be counted one by one: give {MOST_UNITS:,} at most"
        raise InvalidJob(msg)
    if not SHORTEST_WINDOW <= seconds <= LONGEST_WINDOW:
        msg = f"the window of rate() must be between a millisecond and a week, not {shown(window)}"
        raise InvalidJob(msg)
    return Rate(units, seconds)


def fleet(units: int | Rate) -> Fleet:
    """Share a limit among all nodes of a store, for `limits`: a number, or a rate.

    A family, "host:*", has that size for each of its names. Raises InvalidJob unless `units` is 1 to 10,000.
    """
    if isinstance(units, Rate):
        return Fleet(units.units, units.seconds)
    if count_of("the units of fleet()", units) > MOST_UNITS:
        msg = f"fleet({units}) is too much to be lent unit by unit: give {MOST_UNITS:,} at most, or each node its part"
        raise InvalidJob(msg)
    return Fleet(units)


def sizes_of(limits: Mapping[str, float | Fleet | Rate] | None) -> Sizes:
    """Raises InvalidJob for a wrong size, or a name that a store could confuse."""
    if not isinstance(limits, Mapping):
        return Sizes(units=limits_of(limits))
    made = {name: size for name, size in limits.items() if isinstance(size, (Fleet, Rate))}
    plain = {name: made[name].units if name in made else size for name, size in limits.items()}
    units = limits_of(plain)  # type: ignore[arg-type] # each Fleet and Rate is a number here
    of_fleet = {name: size.units for name, size in made.items() if isinstance(size, Fleet)}
    for name in of_fleet:
        _check_name(name)
    return Sizes(
        units=units,
        of_fleet=of_fleet,
        windows={name: size.seconds for name, size in made.items() if size.seconds},
    )


def _check_name(name: str) -> None:
    if not name.isprintable() or not 1 <= len(name) <= LONGEST_NAME:
        msg = f"a limit of the fleet has a name of 1 to {LONGEST_NAME} printable characters, not {shown(name)}"
        raise InvalidJob(msg)
    if name.endswith(":*") and ":" in name[:-2]:
        msg = (
            f"limit {name!r}: a family is what stands before the first colon, such as {name.partition(':')[0] + ':*'!r}"
        )
        raise InvalidJob(msg)
