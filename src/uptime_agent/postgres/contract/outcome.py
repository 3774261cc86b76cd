"""One record for each due (probe, target, database), so that gaps have reasons."""

from __future__ import annotations

import enum

from attrs import frozen


class OutcomeKind(enum.Enum):
    """How a due probe ended."""

    STORED = "stored"
    """Also if nothing was new."""
    PARTIAL = "partial"
    """Rows are missing, or time ran out."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """No need, budget or room."""


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
    """The record of one due (probe, target, database). `due`: UTC seconds.

    In seconds: `lateness`; `waited` for a connection, `executed`, `stored`; `cost`, of the server's time.
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
