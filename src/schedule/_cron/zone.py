"""Real times of an expression's wall times, as clocks change. Like Debian's cron(8).

*Fixed* expressions have no star in minute and hour: each wall time has one slot.

*Recurring* expressions keep their real spacing: a repeated time counts twice, a skipped time never.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from .._common import SECOND, change, first_instant, offsets
from .times import Times


def next_instant(times: Times, zone: ZoneInfo, after: datetime) -> datetime | None:
    local = after.astimezone(zone)
    wall = local.replace(tzinfo=None, microsecond=0, fold=0)
    return (_next_fixed if times.is_fixed else _next_recurring)(times, zone, local, wall)


def _next_fixed(times: Times, zone: ZoneInfo, local: datetime, wall: datetime) -> datetime | None:
    start = wall + SECOND
    if local.fold:  # all times of this hour have come already: go on where it ends
        before, later = offsets(wall, zone)
        start = change(wall, before, later, zone) + before
    found = times.next(start)
    return None if found is None else first_instant(found, zone)


def _next_recurring(times: Times, zone: ZoneInfo, local: datetime, wall: datetime) -> datetime | None:
    before, later = offsets(wall, zone)
    after = local.astimezone(UTC).replace(tzinfo=None)
    found = times.next(wall + SECOND)
    if before > later and not local.fold:  # this stretch of wall time comes once more
        changed = change(wall, before, later, zone)
        if found is None or found - before >= changed:
            found = times.next(changed + later)
    while found is not None:
        before, later = offsets(found, zone)
        if before >= later:
            instant = found - before if found - before > after else found - later
            return instant.replace(tzinfo=UTC)
        found = times.next(change(found, before, later, zone) + later)  # skipped: go on where the gap ends
    return None
