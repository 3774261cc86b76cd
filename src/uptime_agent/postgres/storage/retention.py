"""Retention: how long samples are kept, by target and probe. Pure."""

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
    """Seconds for which data is kept. The most exact entry decides: target and probe, probe, else `default`.

    The newest snapshot of an `on_change` probe is kept forever: it is the present state.
    """

    default: float = field(default=28 * DAY, validator=_positive)
    probes: Mapping[str, float] = Factory(dict)
    targets: Mapping[tuple[str, str], float] = Factory(dict)
    """By (target, probe)."""

    def keep(self, target: str, probe: str) -> float:
        """Return the seconds for which samples of this probe on this target are kept."""
        return self.targets.get((target, probe), self.probes.get(probe, self.default))

    def longest(self, probe: str) -> float:
        """Return the longest seconds for which a target keeps samples of this probe."""
        general = self.probes.get(probe, self.default)
        return max([general, *(keep for (_, name), keep in self.targets.items() if name == probe)])
