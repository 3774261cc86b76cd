"""New sizes of limits that live nodes share."""

from __future__ import annotations

from collections.abc import Mapping

from timerqueue import Rests

from ..._loop import Core
from ..._values import InvalidJob
from .borrowing import Borrowing
from .sizes import Sizes


def resize(core: Core, units: Borrowing, rests: Rests, limit: float | None, sizes: Sizes) -> None:
    """Change limits here and, of the fleet's, elsewhere. Any thread.

    Raises InvalidJob if a limit would become the fleet's, or a rate, or cease to be.
    """
    _check_same_fleet(sizes, units.sizes)
    _check_same_pace(sizes, rests.seconds)

    def act() -> None:
        rests.seconds.update(sizes.windows)
        core.pool.resize(limit, sizes.units)
        if sizes.of_fleet:
            units.resize(sizes.of_fleet)

    core.loop.call(act)


def _check_same_fleet(sizes: Sizes, known: Mapping[str, int]) -> None:
    for name, size in (sizes.units or {}).items():
        if name in sizes.of_fleet and name not in known:
            msg = (
                f"limit {name!r} cannot become the fleet's while the scheduler lives: give it to Scheduler(limits=...)"
            )
            raise InvalidJob(msg)
        if name in known and name not in sizes.of_fleet:
            msg = f"limit {name!r} is the fleet's: give its new size as fleet({size:g})"
            raise InvalidJob(msg)


def _check_same_pace(sizes: Sizes, known: Mapping[str, float]) -> None:
    for name, size in (sizes.units or {}).items():
        if name in sizes.windows and name not in known:
            msg = f"limit {name!r} cannot become a rate while the scheduler lives: give it to Scheduler(limits=...)"
            raise InvalidJob(msg)
        if name in known and name not in sizes.windows:
            msg = f'limit {name!r} is a rate: give its new size as rate({size:g}, "{known[name]:g}s")'
            raise InvalidJob(msg)
