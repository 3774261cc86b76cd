"""A check-up of a PostgreSQL server."""

from __future__ import annotations

from functools import partial

import anyio

from timerqueue import SystemClock

from ..checks import Resolver
from ..config import Config, StorePlace
from ..postgres import CATALOGUE, examine
from ..probing import server_of
from ..show import risks
from ..text import Redactor, printable


def check_up(config: Config, name: str) -> tuple[list[str], bool]:
    """Run each probe once. Returns lines, and whether all enabled probes work.

    Raises LookupError with the known names.
    """
    target = server_of(config, name)
    resolver, clean = Resolver(config.hosts, reach=config.reach), Redactor(config.secrets).clean
    found = anyio.run(partial(examine, target, CATALOGUE.values(), resolver, SystemClock()))
    return [printable(clean(str(each))) for each in found], all(each.is_well for each in found if each.is_on)


def check_up_store(place: StorePlace) -> tuple[list[str], bool]:
    """Returns lines, and whether a failover loses nothing. Raises StoreError."""
    with place.visited() as store:
        server = store.server()
    followed = ", ".join(f"{each.name or 'a standby'} ({each.state or 'unknown'})" for each in server.standbys)
    lines = [
        f"server: {'a standby' if server.is_standby else 'it takes commits'}",
        f"standbys: {followed or 'none follows'}",
        f"synchronous_commit: {server.synchronous_commit}",
        *risks(server),
    ]
    clean = Redactor(place.secrets).clean
    return [printable(clean(line)) for line in lines], server.is_safe
