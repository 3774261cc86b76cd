"""A check-up of a PostgreSQL server that a configuration names: what works there, and what is missing, in lines."""

from __future__ import annotations

from functools import partial

import anyio

from timerqueue import SystemClock

from .checks import Resolver
from .config import Config
from .postgres import CATALOGUE, examine
from .probing import server_of
from .text import Redactor, printable


def check_up(config: Config, name: str) -> tuple[list[str], bool]:
    """Run each probe once on the server of that name. Returns a line for each, and whether all that are on work.

    Raises LookupError, with the names that there are.
    """
    target = server_of(config, name)
    resolver, clean = Resolver(config.hosts, reach=config.reach), Redactor(config.secrets).clean
    found = anyio.run(partial(examine, target, CATALOGUE.values(), resolver, SystemClock()))
    return [printable(clean(str(each))) for each in found], all(each.is_well for each in found if each.is_on)
