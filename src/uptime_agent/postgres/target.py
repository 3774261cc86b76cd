"""Servers to probe, as configured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from attrs import field, frozen

from ..libpq import Server
from .choices import Choice, Layer, Plan, planned
from .contract import Probe

LIMIT: Final = 3
BUDGET: Final = 0.01
MOST_DATABASES: Final = 100
WAIT: Final = 30.0
OWN: Final = "server"
"""The scope of a target's own settings."""


@frozen(kw_only=True)
class PostgresTarget:
    """A server to probe.

    `include`, `exclude`: databases such as "shop_*". `limit`: connections, idle ones included. `wait`: seconds to wait
    for one. `budget`: our share of one core. `inherited`: outer scopes, innermost first.
    """

    name: str
    server: Server
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    most_databases: int = MOST_DATABASES
    limit: int = LIMIT
    wait: float = WAIT
    budget: float = BUDGET
    probes: Mapping[str, Choice] = field(factory=dict)
    inherited: tuple[Layer, ...] = ()
    tags: tuple[str, ...] = ()
    is_enabled: bool = True

    @property
    def patterns(self) -> tuple[object, ...]:
        """The settings that choose databases."""
        return self.include, self.exclude, self.most_databases

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Its scopes, innermost first."""
        return (Layer(OWN, self.probes), *self.inherited)

    @property
    def retention(self) -> dict[str, float]:
        """Seconds by probe, where set."""
        said: dict[str, float] = {}
        for layer in reversed(self.layers):
            said |= {name: each.retention for name, each in layer.choices.items() if each.retention is not None}
        return said

    def plan(self, probe: Probe) -> Plan:
        """Return how a probe runs here."""
        return planned(probe, self.layers)

    def wanted(self, databases: Iterable[str]) -> tuple[list[str], int]:
        """Return the chosen databases, and the number beyond `most_databases`."""
        found = [
            name
            for name in databases
            if any(fnmatchcase(name, each) for each in self.include)
            and not any(fnmatchcase(name, each) for each in self.exclude)
        ]
        return found[: self.most_databases], max(len(found) - self.most_databases, 0)
