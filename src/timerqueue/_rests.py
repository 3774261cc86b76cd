"""Rests: a limit's units are free again some seconds after work began with them.

With n units that rest a second, n pieces of work begin in any second. The seconds count from the turn after the first
step, so first steps with one unit are that far apart. On the loop.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from ._errors import LifecycleError
from ._limits import Needs
from ._pool import TaskPool

LONG_AGO: Final = 0.0


class Rests:
    """`seconds`: how long units rest, by limit or family. `push` calls a function at an instant of `monotonic`."""

    def __init__(
        self,
        pool: TaskPool,
        push: Callable[..., object],
        monotonic: Callable[[], float],
        seconds: Mapping[str, float],
    ) -> None:
        self._pool = pool
        self._push = push
        self._monotonic = monotonic
        self.seconds = dict(seconds)
        self._longer: dict[str, float] = {}
        self._begun: Counter[str] = Counter()
        self._rested: Callable[[], object] | None = None
        if seconds:
            pool.let_rest(self.seconds, self._begins)

    def tell(self, rested: Callable[[], object]) -> None:
        """Call `rested` whenever units are free again. Call this once."""
        self._rested = rested

    def seconds_of(self, name: str) -> float:
        family = f"{name.partition(':')[0]}:*"
        return max(self.seconds.get(name, self.seconds.get(family, 0.0)), self._longer.get(name, 0.0))

    def lengthen(self, name: str, seconds: float) -> None:
        """Set how long that limit's units rest elsewhere. The longer rest holds."""
        self._longer.pop(name, None)
        if seconds > self.seconds_of(name):
            self._longer[name] = seconds

    def _begins(self, needs: Needs) -> None:
        if not self._begun:
            with suppress(LifecycleError):  # nothing begins any more
                self._push(LONG_AGO, self._have_begun)
        self._begun.update(dict(needs))

    def _have_begun(self) -> None:
        begun, self._begun = self._begun, Counter()
        by_length = defaultdict[float, list[tuple[str, int]]](list)
        for name, units in begun.items():
            by_length[self.seconds_of(name)].append((name, units))
        now = self._monotonic()
        for seconds, needs in by_length.items():
            with suppress(LifecycleError):
                self._push(now + seconds, partial(self._are_free, tuple(needs)))

    def _are_free(self, needs: Needs) -> None:
        self._pool.rested(needs)
        if self._rested is not None:
            self._rested()
