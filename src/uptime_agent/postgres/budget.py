"""A target's cost budget: probes are slowed to a share of the server's time.

After a minute over budget, intervals double, the costliest probe first, until the rest fits. After one below half, the
cheapest gets a step back. A stretched probe keeps its grid, and records other ticks as skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import define, field

WINDOW: Final = 60.0
"""Seconds."""
MAX_STRETCH: Final = 16
"""The largest factor of an interval."""
NEVER: Final = frozenset({"connectivity", "node_role"})
"""Never stretched."""


@define(eq=False)
class CostBudget:
    """A target's budget, a `share` of one core. Costs and monotonic times in seconds."""

    share: float
    load: float = 0.0
    """The last window's share."""
    factors: dict[str, int] = field(factory=dict)
    _costs: dict[str, float] = field(factory=dict)
    _began: float | None = None

    def spend(self, probe: str, cost: float, now: float) -> None:
        """Count a probe's cost."""
        self._turn(now)
        self._costs[probe] = self._costs.get(probe, 0.0) + cost

    def admits(self, probe: str, due: float, every: float) -> bool:
        """Whether a probe runs at this tick. `due`: UTC seconds."""
        factor = self.factors.get(probe, 1)
        return factor == 1 or int(due / every + 0.5) % factor == 0

    def _turn(self, now: float) -> None:
        if self._began is None:
            self._began = now
        elapsed = now - self._began
        if elapsed < WINDOW:
            return
        costs = {probe: cost / elapsed for probe, cost in self._costs.items()}
        self.load, self._costs, self._began = sum(costs.values()), {}, now
        if self.load > self.share:
            self._stretch(costs)
        elif self.load < self.share / 2 and self.factors:
            self._relax(costs)

    def _stretch(self, costs: Mapping[str, float]) -> None:
        left = {probe: cost for probe, cost in costs.items() if probe not in NEVER}
        load = self.load
        while load > self.share and left:
            probe = max(left, key=lambda each: (left[each], each))
            if self.factors.get(probe, 1) >= MAX_STRETCH:
                del left[probe]
                continue
            self.factors[probe] = self.factors.get(probe, 1) * 2
            left[probe] /= 2
            load -= left[probe]

    def _relax(self, costs: Mapping[str, float]) -> None:
        probe = min(self.factors, key=lambda each: (costs.get(each, 0.0), each))
        self.factors[probe] //= 2
        if self.factors[probe] == 1:
            del self.factors[probe]
