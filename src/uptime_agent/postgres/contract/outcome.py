"""Outcomes of probes: one record for each (probe, target, database) that was due, so that every gap has a reason."""

from __future__ import annotations

import enum

from attrs import frozen


class OutcomeKind(enum.Enum):
    """The possible ends of a probe that was due."""

    STORED = "stored"
    """Everything was stored, or there was nothing new."""
    PARTIAL = "partial"
    """Rows were left out, or the time ran out."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """Not asked: no need, no budget, no room."""


class Failure(enum.Enum):
    """Why a probe failed."""

    CONNECT = "connect"
    TIMEOUT = "timeout"
    QUERY = "query"
    PERMISSION = "permission"
    MISSING_FEATURE = "missing feature"
    STORE = "store"


@frozen(kw_only=True)
class ProbeOutcome:
    """The record of one (probe, target, database) due at `due`, UTC seconds, begun `lateness` seconds later.

    `reason`: in words, if any. `waited` for a connection, `executed`, `stored`: seconds of our time. `cost`: seconds of
    the server's time. `rows`: found ones.
    """

    probe: str
    target: str
    database: str | None
    due: float
    kind: OutcomeKind
    lateness: float = 0.0
    failure: Failure | None = None
    reason: str | None = None
    waited: float = 0.0
    executed: float = 0.0
    stored: float = 0.0
    rows: int = 0
    cost: float = 0.0
