"""Bursts: findings that call for a closer look."""

from __future__ import annotations

from typing import Final

from .contract import Probe, Row, Rows

CLOSE: Final = ("activity", "blocking")
"""They run every second in a burst."""
SAMPLE_S: Final = 1.0
LASTS: Final = 60.0
BLOCKED: Final = 5.0
"""Seconds of waiting."""
FULL: Final = 0.9
"""Share of connections in use."""


def calls_for_burst(probe: Probe, rows: Rows) -> str | None:
    """Return why these rows call for a burst."""
    names = [column.name for column in probe.columns]
    if probe.name == "blocking" and "waited" in names:
        waited = max((_number(row, names.index("waited")) for row in rows), default=0.0)
        return f"a session has waited {waited:.0f} s for a lock" if waited > BLOCKED else None
    if probe.name == "node_role" and {"connections", "max_connections"} <= set(names) and rows:
        taken, most = (_number(rows[0], names.index(name)) for name in ("connections", "max_connections"))
        return f"{taken:.0f} of {most:.0f} connections are taken" if most and taken > FULL * most else None
    return None


def _number(row: Row, at: int) -> float:
    value = row[at]
    return float(value) if isinstance(value, (int, float)) else 0.0
