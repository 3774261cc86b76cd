"""Targets: a server whose probes are to be run, and how; as a configuration says it."""

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
"""The scope of what a target says itself."""


@frozen(kw_only=True)
class PostgresTarget:
    """A server to be probed.

    `include`, `exclude`: patterns of database names such as "shop_*"; `most_databases`: no more than that. `limit`:
    connections, idle ones included. `wait`: seconds that a probe may wait for one. `budget`: how much of the server's
    time our queries may take, as a share of one core. `probes`: what it says of probes itself; `inherited`: the scopes
    around it, the innermost one first.
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
        """All that decides which databases are wanted."""
        return self.include, self.exclude, self.most_databases

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The scopes that hold here, the innermost one first."""
        return (Layer(OWN, self.probes), *self.inherited)

    @property
    def retention(self) -> dict[str, float]:
        """Seconds for which samples are kept, by the names of those probes of which a scope says so."""
        said: dict[str, float] = {}
        for layer in reversed(self.layers):
            said |= {name: each.retention for name, each in layer.choices.items() if each.retention is not None}
        return said

    def plan(self, probe: Probe) -> Plan:
        """Return how a probe is run here."""
        return planned(probe, self.layers)

    def wanted(self, databases: Iterable[str]) -> tuple[list[str], int]:
        """Return the databases to be probed, and how many there are beyond `most_databases`."""
        found = [
            name
            for name in databases
            if any(fnmatchcase(name, each) for each in self.include)
            and not any(fnmatchcase(name, each) for each in self.exclude)
        ]
        return found[: self.most_databases], max(len(found) - self.most_databases, 0)
