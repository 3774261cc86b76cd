"""Identities of servers: which server, and since when it runs. Pure.

Samples of `identity` are restarts, failovers and upgrades. No rate spans a restart.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from .contract import Probe, Row, Rows, Value
from .probes import CATALOGUE
from .storage import StoredSample

Key = tuple[Value, Value]

SOURCE: Final = "node_role"
_WATCHED: Final = ("is_in_recovery", "timeline", "system_identifier", "server_version_num", "started")
_FOUND: Final = CATALOGUE[SOURCE]

IDENTITY: Final = Probe(
    name="identity",
    purpose="which server this is, and since when it runs: each sample is a change",
    scope=_FOUND.scope,
    every=_FOUND.every,
    columns=tuple(column for column in _FOUND.columns if column.name in _WATCHED),
    on_change=True,
)
_NAMES: Final = tuple(column.name for column in IDENTITY.columns)
_BEGIN_ANEW: Final = ("system_identifier", "started")
"""A change of these resets counters."""


def identity_of(probe: Probe, rows: Rows) -> Row | None:
    """Return a row of IDENTITY."""
    if probe.name != SOURCE or not rows:  # as with nearly every outcome
        return None
    names = [column.name for column in probe.columns]
    if not set(_NAMES) <= set(names):
        return None
    return tuple(rows[0][names.index(name)] for name in _NAMES)


def key_of(identity: Row) -> Key | None:
    """Return a key of one server: no two start in the same microsecond.

    A standby has its primary's system identifier.
    """
    named = dict(zip(_NAMES, identity, strict=True))
    system, started = (named[name] for name in _BEGIN_ANEW)
    return None if system is None or started is None else (system, started)


def changes(before: Row | None, after: Row) -> Iterator[str]:
    """Say what happened between two samples."""
    if before is None or before == after:
        return
    old, new = (dict(zip(_NAMES, row, strict=True)) for row in (before, after))
    if old["system_identifier"] != new["system_identifier"]:
        yield f"it is another system, {new['system_identifier']} instead of {old['system_identifier']}"
    if old["started"] != new["started"]:
        yield f"it was started at {_instant(new['started'])}, so its counters may begin anew"
    if old["server_version_num"] != new["server_version_num"]:
        yield f"its version is {_version(new['server_version_num'])} instead of {_version(old['server_version_num'])}"
    if old["is_in_recovery"] != new["is_in_recovery"]:
        yield f"it is a {_role(new['is_in_recovery'])} instead of a {_role(old['is_in_recovery'])}"
    if old["timeline"] != new["timeline"]:
        yield f"its timeline is {new['timeline']} instead of {old['timeline']}"


def resets(samples: Sequence[StoredSample]) -> list[float]:
    """Return resets of counters, in UTC seconds, sorted, for `rates`.

    A restart counts at its start and its discovery: a measurement may lie between.
    """
    ordered = sorted((each for each in samples if each.rows), key=lambda each: each.at)
    found: set[float] = set()
    for earlier, later in pairwise(ordered):
        old, new = (dict(zip(each.columns, each.rows[0], strict=True)) for each in (earlier, later))
        if all(old.get(name) == new.get(name) for name in _BEGIN_ANEW):
            continue
        found.add(later.at)
        started = _started(new)
        if started is not None and earlier.at < started < later.at:
            found.add(started)
    return sorted(found)


def _started(row: Mapping[str, Any]) -> float | None:
    """UTC seconds; stored in microseconds."""
    started = row.get("started")
    return None if started is None else float(started) / 1e6


def _instant(value: Value) -> str:
    return value.astimezone(dt.UTC).isoformat(sep=" ", timespec="seconds") if isinstance(value, dt.datetime) else "?"


def _version(number: Value) -> str:
    return "?" if not isinstance(number, int) else f"{number // 10_000}.{number % 10_000}"


def _role(is_in_recovery: Value) -> str:
    return "standby" if is_in_recovery else "primary"
