"""The catalogue of probes.

Callers bound the time, make transactions read-only, fill in extensions' schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..contract import Probe
from .databases import DATABASES
from .objects import OBJECTS
from .optional import OPTIONAL
from .progress import PROGRESS
from .replication import REPLICATIONS
from .server import ON_REQUEST, SERVER
from .sessions import SESSIONS
from .statements import STATEMENTS_AND_TEXTS
from .tables import TABLES_AND_INDEXES
from .writing import WRITING

__all__ = ["CATALOGUE"]

CATALOGUE: Final[Mapping[str, Probe]] = {
    probe.name: probe
    for probe in (
        *SERVER,
        *SESSIONS,
        PROGRESS,
        *DATABASES,
        *REPLICATIONS,
        *WRITING,
        *TABLES_AND_INDEXES,
        *OBJECTS,
        *STATEMENTS_AND_TEXTS,
        *ON_REQUEST,
        *OPTIONAL,
    )
}
"""Also probes that are off."""
