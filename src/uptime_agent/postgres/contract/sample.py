"""The rows of one run of a probe."""

from __future__ import annotations

import datetime as dt
import hashlib
from decimal import Decimal

from attrs import frozen

from .probe import Probe, Rows, Value


@frozen
class Sample:
    """Rows in the order of the probe's columns. `at`: its due instant, UTC seconds.

    `database` None: the whole server. `left_out`: rows beyond bounds.
    """

    probe: Probe
    target: str
    database: str | None
    at: float
    rows: Rows
    left_out: int = 0

    def fingerprint(self) -> str:
        """Return a hash, equal for equal rows in any order."""
        canonical = sorted(repr(tuple(map(_canonical, row))) for row in self.rows)
        return hashlib.sha256("\n".join(canonical).encode("utf-8", "surrogatepass")).hexdigest()


def _canonical(value: Value) -> str:
    match value:
        case bool() | None:
            return str(value)
        case Decimal() | int() | float():
            return str(Decimal(str(value)).normalize())
        case dt.datetime():
            return value.astimezone(dt.UTC).isoformat()
        case str():
            return f"'{value}'"
