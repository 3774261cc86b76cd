"""New sizes of limits, while agents live that share them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .._loop import Core
from .._values import InvalidJob
from .units import Units


class HasUnits(Protocol):
    """A memory, as far as it borrows units."""

    units: Units | None


def resize(
    core: Core,
    memory: HasUnits | None,
    limit: float | None,
    sizes: Mapping[str, float] | None,
    of_fleet: Mapping[str, int],
) -> None:
    """Change sizes of limits here, and tell the other agents of those that are the fleet's. Any thread.

    Raises InvalidJob if a limit would become the fleet's by these sizes, or would be it no more.
    """
    units = None if memory is None else memory.units
    _check_same_kind(sizes or {}, of_fleet, {} if units is None else units.sizes)

    def act() -> None:
        core.pool.resize(limit, sizes)
        if of_fleet and units is not None:
            units.resize(of_fleet)

    core.loop.call(act)


def _check_same_kind(sizes: Mapping[str, float], of_fleet: Mapping[str, int], known: Mapping[str, int]) -> None:
    for name in sizes:
        if name in of_fleet and name not in known:
            msg = (
                f"limit {name!r} cannot become the fleet's while the scheduler lives: give it to Scheduler(limits=...)"
            )
            raise InvalidJob(msg)
        if name in known and name not in of_fleet:
            msg = f"limit {name!r} is the fleet's: give its new size as fleet({sizes[name]:g})"
            raise InvalidJob(msg)
