"""Probes: regular questions to a server, with SQL for each range of versions.

Every variant selects the same columns, with a typed NULL where its versions lack one. So samples compare over upgrades,
and one table holds all versions.
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
"""Major version."""
NEWEST_PROVEN: Final = 18
"""The newest major version of our tests."""

Value = str | int | float | bool | Decimal | dt.datetime | None
Row = tuple[Value, ...]
Rows = tuple[Row, ...]


class Scope(enum.Enum):
    """The part of a server that a probe sees."""

    SERVER = "server"
    """The probe runs once, in any database."""
    DATABASE = "database"
    """The probe runs once for each database."""


class Role(enum.Enum):
    """Servers for which a probe makes sense."""

    ANY = "any"
    PRIMARY = "primary"
    STANDBY = "standby"


class Type(enum.Enum):
    """A column's type. Times are DOUBLE, in seconds; sizes BIGINT, in bytes."""

    BIGINT = "bigint"
    DOUBLE = "double precision"
    TEXT = "text"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp with time zone"
    NUMERIC = "numeric"


@frozen
class Column:
    """A column of a probe. `is_key`: identifies rows. `is_counter`: only grows until reset.

    For people: `unit` is "s", "bytes", "blocks" or empty where the name says it; `note` explains the name.
    """

    name: str
    type: Type
    is_key: bool = False
    is_counter: bool = False
    unit: str | None = field(default=None, kw_only=True)
    note: str | None = field(default=None, kw_only=True)


@frozen
class Variant:
    """SQL from major version `since` to just before `before`. Without `is_proven`, our tests never ran it.

    `@extschema@`: the extension's schema, which `pick` fills in. `extension_since`: its first version ("1.11").
    """

    sql: str
    since: int = OLDEST_SUPPORTED
    before: int | None = None
    extension_since: str | None = None
    is_proven: bool = True


class ProbeConnection(Protocol):
    """A new connection for a probe that has a `call`."""

    @property
    def phases(self) -> Mapping[str, float]:
        """Seconds by phase: name, connect, tls, login; after a query also first_row."""

    async def fetch(self, sql: str) -> Rows:
        """Run a query within the probe's limits."""


ProbeCall = Callable[[ProbeConnection], Awaitable[Rows]]


@frozen(kw_only=True)
class Probe:
    """A question, asked at an interval in seconds.

    It has `variants`, or `call` with its own connection. Rows beyond `most_rows` and `most_bytes` are left out, but
    counted. To show that there are more, SQL returns one row too many, or a last column `left_out` with the number of
    missing rows.

    `grants`: the needed right, in words. `on_change`: a snapshot equal to the newest is not stored. `is_cheap`: may
    share a pipeline. `timeout`: seconds on the server. `setting`: its name if it must be on, or with words of which it
    must have one: "track_functions = pl or all".
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
    """Return the newest variant for a server; None: it is too old, or lacks the extension.

    On an untested version the variant is unproven.
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
    """Read a version's numbers, so that "1.10" is newer than "1.9"."""
    return tuple(int(number) for number in re.findall(r"\d+", text)) if text else ()
