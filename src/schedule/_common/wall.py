"""Wall time: what a zone's clocks show, as naive datetimes, and the instants meant.

With `fold=0` a wall time has the offset before the nearest change, with `fold=1` the offset after it (PEP 495). Equal
offsets: it comes once. `before > later`: twice, first at `wall - before`. `before < later`: never.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from .errors import ScheduleError

SECOND = timedelta(seconds=1)


def zone_name(zone: str | ZoneInfo) -> str:
    """Return the IANA name. Raises ScheduleError if there is no such zone."""
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    if not isinstance(zone, str):
        raise ScheduleError(f'a zone must be an IANA name such as "Europe/Berlin", not {zone!r}')
    find_zone(zone)
    return zone


def find_zone(name: str) -> ZoneInfo:
    """Raise ScheduleError if there is no such zone."""
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):
        raise ScheduleError(f"there is no zone {name!r}: {_advice(name)}") from None


def _advice(name: str) -> str:
    similar = get_close_matches(name, available_timezones(), n=1)
    return f"did you mean {similar[0]!r}?" if similar else 'use an IANA name such as "UTC" or "Europe/Berlin"'


def offsets(wall: datetime, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """Return the offsets from UTC before and after the nearest change; mostly equal."""
    local = wall.replace(tzinfo=zone)
    before, later = local.utcoffset(), local.replace(fold=1).utcoffset()
    assert before is not None
    assert later is not None
    return before, later


def change(wall: datetime, before: timedelta, later: timedelta, zone: ZoneInfo) -> datetime:
    """Return the nearest change as naive UTC, given its different offsets."""
    low, high = sorted((wall - before, wall - later))
    # The change lies in (low, high]: the wrong offset puts `wall` on the other side of it.
    while high - low > SECOND:
        middle = low + (high - low) // 2
        if middle.replace(tzinfo=UTC).astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)


def first_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return when clocks first show `wall`; if skipped, the first instant after the gap. UTC."""
    before, later = offsets(wall, zone)
    found = change(wall, before, later, zone) if before < later else wall - before
    return found.replace(tzinfo=UTC)
