"""Uptime: the share of known time in which a target was up."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..checks import Status
from .past import Past

WINDOWS: Final = {"1 h": 3_600.0, "24 h": 86_400.0, "7 d": 604_800.0, "30 d": 2_592_000.0}
"""Seconds."""


@frozen
class Uptime:
    """Shares from 0 to 1: `up` of the known time, None without any; `known` of the window."""

    up: float | None
    known: float


def uptime_over(past: Past | None, now: float, window: float) -> Uptime:
    """The uptime in the `window` seconds before `now`. Degraded counts as up."""
    if past is None:
        return Uptime(None, 0.0)
    end = min(now, past.until) if now <= past.until else past.seen
    ends = [*(span.start for span in past.spans[1:]), end]
    lasted = dict.fromkeys(Status, 0.0)
    for span, ended in zip(past.spans, ends, strict=True):
        lasted[span.status] += max(min(ended, now) - max(span.start, now - window), 0.0)
    up = lasted[Status.UP] + lasted[Status.DEGRADED]
    known = up + lasted[Status.DOWN]
    return Uptime(up / known if known else None, known / window)
