"""Maintenance in Gatus as our [[maintenance]]."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..foreign import Draft, ForeignTable

_START: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ZONE: Final = re.compile(r"[A-Za-z0-9_+/-]+")
_RESTS: Final = "its checks rest meanwhile here; there only alerts did"


def window(table: ForeignTable, name: str, targets: Iterable[Draft] = ()) -> Draft:
    """A window of these targets, or of all."""
    draft = Draft(name, kind="maintenance", source=table)
    start, zone = _START.fullmatch(table.text("start")), table.text("timezone", "UTC")
    days, length = table.texts("every"), table.text("duration")
    if not table.flag("enabled", default=True):
        draft.drop("it is not enabled")
    elif start is None or not length or not _ZONE.fullmatch(zone) or not set(days) <= set(_DAYS):
        draft.drop("a window with no start, duration, timezone or days that can be read")
    else:
        on = ",".join(each[:3].lower() for each in _DAYS if each in days) or "*"
        draft.options["schedule"] = f"CRON_TZ={zone} {int(start[2])} {int(start[1])} * * {on}"
        draft.options["duration"] = length
        if chosen := list(targets):
            draft.options["targets"] = chosen
        draft.leave(_RESTS)
    table.rest()
    return draft
