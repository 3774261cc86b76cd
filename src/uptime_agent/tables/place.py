"""The place of the tables, as a configuration says it, and where the passwords are that they name."""

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
    """The database and the schema in which the tables are. They are read every `poll` seconds, and when they say so.

    `folder`, `environment`: where passwords are that rows name. `copy`: the file with the last good rows; None: there
    is none, because this agent remembers nothing.
    """

    server: Server
    schema: str = SCHEMA
    poll: float = POLL
    folder: Path = Path()
    environment: Mapping[str, str] = field(factory=dict, repr=False, eq=False)
    copy: Path | None = None

    @property
    def origin(self) -> str:
        """Where the rows come from, as their copy says it."""
        host, port = self.server.place
        return f"{self.schema} of {self.server.database} at {host}:{port}"

    def __str__(self) -> str:
        return f"the tables in {self.schema} on {self.server}"
