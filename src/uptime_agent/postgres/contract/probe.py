"""Probes: a question that is asked of a server at intervals, in the words of each version that can answer it.

A probe has one shape, its columns, whatever the server's version. Its variants are the SQL for a range of versions: a
variant selects exactly these columns, by name and in their order, and a typed NULL where its versions lack one. So what
is stored can be compared over an upgrade, and a fleet of many versions stands in one table.
"""

from __future__ import annotations

import datetime as dt
import enum
import re
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Final, Protocol

from attrs import evolve, field, frozen

OLDEST_SUPPORTED: Final = 15
"""The oldest major version of a server for which we have probes."""
NEWEST_PROVEN: Final = 18
"""The newest major version on which our tests ran them. On a newer one every variant is unproven."""

Value = str | int | float | bool | Decimal | dt.datetime | None
Row = tuple[Value, ...]
Rows = tuple[Row, ...]


class Scope(enum.Enum):
    """The part of a server that a probe sees at once."""

    SERVER = "server"
    """All databases: it runs once for a target, in whichever database."""
    DATABASE = "database"
    """The database that it is connected to: it runs once for each."""


class Role(enum.Enum):
    """On which servers a probe makes sense."""

    ANY = "any"
    PRIMARY = "primary"
    STANDBY = "standby"


class Type(enum.Enum):
    """How a column is stored. Lengths of time are DOUBLE, in seconds; sizes BIGINT, in bytes."""

    BIGINT = "bigint"
    DOUBLE = "double precision"
    TEXT = "text"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp with time zone"
    NUMERIC = "numeric"


@frozen
class Column:
    """A column of a probe.

    The columns with `is_key` tell the rows of one sample apart. A counter only grows until it is reset. `unit` is for
    people: "s", "bytes", "blocks" or nothing where the name says it; `note` too, where the name does not say enough.
    """

    name: str
    type: Type
    is_key: bool = False
    is_counter: bool = False
    unit: str | None = field(default=None, kw_only=True)
    note: str | None = field(default=None, kw_only=True)


@frozen
class Variant:
    """The SQL of a probe from the server's major version `since` to just before `before`.

    It names what belongs to the probe's extension by `@extschema@`, as extensions do themselves: `pick` puts in where
    that is installed.
    `extension_since`: from that version of the probe's extension, inclusive ("1.11"). What is not proven was written
    from release notes and never ran.
    """

    sql: str
    since: int = OLDEST_SUPPORTED
    before: int | None = None
    extension_since: str | None = None
    is_proven: bool = True


class ProbeConnection(Protocol):
    """A connection that was just made, for a probe that is a callable, and how long each part of that took."""

    @property
    def phases(self) -> Mapping[str, float]:
        """Seconds of each part that there was: name, connect, tls, login; first_row once a query has brought one."""

    async def fetch(self, sql: str) -> Rows:
        """Run a query within the probe's limits and return its rows."""


ProbeCall = Callable[[ProbeConnection], Awaitable[Rows]]


@frozen(kw_only=True)
class Probe:
    """A question with a name, asked every so many seconds.

    It has `variants` in SQL, or `call`, a coroutine function that is given a connection of its own. Its rows are in the
    order of `columns`; of these at most `most_rows` and `most_bytes` are kept, and told how many were left out. A SQL
    asks for one row more than that, or has a last column `left_out` that is no column of the probe: their number, the
    same in each row.

    `extension` and `setting` are what must be there, `grants` says in words which right it needs: for who asks why it
    does not work. `on_change`: a snapshot equal to the newest stored one is not stored. `is_cheap`: may share a
    pipeline. `timeout`: seconds on the server.
    """

    name: str
    purpose: str
    scope: Scope
    every: float
    columns: tuple[Column, ...]
    variants: tuple[Variant, ...] = ()
    call: ProbeCall | None = None
    role: Role = Role.ANY
    extension: str | None = None
    setting: str | None = None
    grants: str | None = None
    on_change: bool = False
    most_rows: int = 300
    most_bytes: int = 1_000_000
    is_cheap: bool = True
    timeout: float = 5.0
    is_enabled: bool = True


def pick(
    probe: Probe, server_version_num: int, extension_version: str | None = None, extension_schema: str = "public"
) -> Variant | None:
    """Return the newest variant for a server and, where the probe needs an extension, for its version and its schema.

    None: this server cannot answer, being too old or without the extension. On a major version that our tests do not
    know the variant comes back as unproven.
    """
    if probe.extension is not None and extension_version is None:
        return None
    major = server_version_num // 10_000
    fitting = [variant for variant in probe.variants if _fits(variant, major, _version(extension_version))]
    if not fitting:
        return None
    newest = max(fitting, key=lambda variant: (variant.since, _version(variant.extension_since)))
    if probe.extension is None and major <= NEWEST_PROVEN:
        return newest
    quoted = '"{}"'.format(extension_schema.replace('"', '""'))
    is_proven = newest.is_proven and major <= NEWEST_PROVEN
    return evolve(newest, sql=newest.sql.replace("@extschema@", quoted), is_proven=is_proven)


def _fits(variant: Variant, major: int, extension: tuple[int, ...]) -> bool:
    within = variant.since <= major and (variant.before is None or major < variant.before)
    return within and _version(variant.extension_since) <= extension


def _version(text: str | None) -> tuple[int, ...]:
    """Return "1.10" as numbers, so that it is newer than "1.9"."""
    return tuple(int(number) for number in re.findall(r"\d+", text)) if text else ()
