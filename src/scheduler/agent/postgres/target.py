"""Targets: a server whose probes are to be run, and how; as a configuration says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from attrs import field, frozen

from ..libpq import Server
from .contract import Probe

LIMIT: Final = 3
BUDGET: Final = 0.01
MOST_DATABASES: Final = 100
WAIT: Final = 30.0


@frozen
class Choice:
    """The wishes of a target for one probe; None: as the probe has it. `every`: seconds."""

    is_enabled: bool | None = None
    every: float | None = None


@frozen(kw_only=True)
class PostgresTarget:
    """A server to be probed.

    `include`, `exclude`: patterns of database names such as "shop_*"; `most_databases`: no more than that. `limit`:
    connections, idle ones included. `wait`: seconds that a probe may wait for one. `budget`: how much of the server's
    time our queries may take, as a share of one core.
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
    tags: tuple[str, ...] = ()
    is_enabled: bool = True

    def choice(self, probe: Probe) -> tuple[bool, float]:
        """Return whether a probe is to be run here, and every how many seconds."""
        chosen = self.probes.get(probe.name, Choice())
        is_enabled = probe.is_enabled if chosen.is_enabled is None else chosen.is_enabled
        if chosen.is_enabled is None and chosen.every is not None:
            is_enabled = True  # who sets an interval wants it to run
        return is_enabled, probe.every if chosen.every is None else chosen.every

    def wanted(self, databases: Iterable[str]) -> tuple[list[str], int]:
        """Return the databases to be probed, and how many there are beyond `most_databases`."""
        found = [
            name
            for name in databases
            if any(fnmatchcase(name, each) for each in self.include)
            and not any(fnmatchcase(name, each) for each in self.exclude)
        ]
        return found[: self.most_databases], max(len(found) - self.most_databases, 0)
