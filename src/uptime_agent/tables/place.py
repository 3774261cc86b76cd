"""The place of the tables in a configuration, and of the passwords that they name."""

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
    """The database and schema of the tables. They are read every `poll` seconds, and when a trigger says so.

    `folder`, `environment`: the places of passwords. `copy`: the file with the last valid rows; None: none, as this
    agent stores nothing.
    """

    server: Server
    schema: str = SCHEMA
    poll: float = POLL
    folder: Path = Path()
    environment: Mapping[str, str] = field(factory=dict, repr=False, eq=False)
    copy: Path | None = None

    @property
    def origin(self) -> str:
        """The origin of the rows, as their copy names it."""
        host, port = self.server.place
        return f"{self.schema} of {self.server.database} at {host}:{port}"

    def __str__(self) -> str:
        return f"the tables in {self.schema} on {self.server}"
