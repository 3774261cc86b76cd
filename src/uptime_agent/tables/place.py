"""Where the tables are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attrs import field, frozen

from ..libpq import Server
from .schema import SCHEMA

POLL: Final = 5.0


@frozen(kw_only=True)
class TablesPlace:
    """Where the tables are. `poll`: seconds between readings, besides triggers.

    `folder`, `environment`: for passwords. `copy`: the file of the last valid rows, or None.
    """

    server: Server
    schema: str = SCHEMA
    poll: float = POLL
    folder: Path = Path()
    environment: Mapping[str, str] = field(factory=dict, repr=False, eq=False)
    copy: Path | None = None

    @property
    def origin(self) -> str:
        """The database, as the copy names it."""
        host, port = self.server.place
        return f"{self.schema} of {self.server.database} at {host}:{port}"

    def __str__(self) -> str:
        return f"the tables in {self.schema} on {self.server}"
