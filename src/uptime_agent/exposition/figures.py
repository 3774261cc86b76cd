"""The figures of a target for Prometheus. Pure, without prometheus_client."""

from __future__ import annotations

import math
from collections.abc import Iterable

from attrs import frozen

from ..checks import Status
from ..standing import TargetStatus


@frozen(kw_only=True)
class TargetFigures:
    """A target at one moment. Instants in UTC seconds, `latency` in seconds. None: unknown, or there is none.

    `status`: None before the first check. `cert_ends`, `domain_ends`: as the last check found them.
    """

    name: str
    kind: str
    status: Status | None
    is_up: bool | None
    latency: float | None
    checked: float | None
    incident_began: float | None
    cert_ends: float | None
    domain_ends: float | None


def figures_of(targets: Iterable[TargetStatus]) -> tuple[TargetFigures, ...]:
    """Return the figures of these targets. On the loop: some microseconds each."""
    return tuple(map(_figures, targets))


def _figures(target: TargetStatus) -> TargetFigures:
    checked = None if target.last_run is None else target.last_run.ended.timestamp()
    return TargetFigures(
        name=target.name,
        kind=target.kind,
        status=target.status,
        is_up=None if target.status in (None, Status.UNKNOWN) else target.status is not Status.DOWN,
        latency=None if target.last is None else target.last.latency,
        checked=checked,
        incident_began=None if target.incident is None else target.incident.began,
        cert_ends=_least([_instant(target, checked, name) for name in ("cert_expires_in", "chain_expires_in")]),
        domain_ends=_instant(target, checked, "domain_expires_in"),
    )


def _instant(target: TargetStatus, checked: float | None, name: str) -> float | None:
    """Return when something ends of which the last check found the seconds that are left."""
    left = target.last_detail().get(name)
    if checked is None or isinstance(left, bool) or not isinstance(left, (int, float)) or not math.isfinite(left):
        return None
    return checked + left


def _least(instants: Iterable[float | None]) -> float | None:
    return min((each for each in instants if each is not None), default=None)
