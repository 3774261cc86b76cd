"""Retention: how long data is kept. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import Factory, field, frozen

DAY: Final = 86_400.0


def _positive(_: object, attribute: object, value: float) -> None:
    if not value > 0:
        msg = f"{getattr(attribute, 'name', 'retention')} is {value} and must be a positive number of seconds"
        raise ValueError(msg)


@frozen(kw_only=True)
class Retention:
    """Seconds for which data is kept. The most exact entry decides.

    The newest `on_change` snapshot stays: it is the present state.
    """

    default: float = field(default=28 * DAY, validator=_positive)
    probes: Mapping[str, float] = Factory(dict)
    targets: Mapping[tuple[str, str], float] = Factory(dict)
    """By (target, probe)."""

    def keep(self, target: str, probe: str) -> float:
        """Return the seconds to keep."""
        return self.targets.get((target, probe), self.probes.get(probe, self.default))

    def longest(self, probe: str) -> float:
        """Return the longest of all targets."""
        general = self.probes.get(probe, self.default)
        return max([general, *(keep for (_, name), keep in self.targets.items() if name == probe)])
