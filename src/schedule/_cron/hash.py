"""H in cron expressions: a value hashed from the job's key.

Each field is hashed alone: from one number, as in croniter, `H H * * *` reaches a sixth of the day's minutes.
"""

from __future__ import annotations

import re
from typing import Final

from .._common import ScheduleError, stable_hash
from .field import DAY, Field

_HASHED: Final = re.compile(r"H(?:\(([0-9]{1,4})-([0-9]{1,4})\))?(?:/([0-9]{1,4}))?", re.IGNORECASE)
_EVERY_MONTH_HAS: Final = 28


def is_hashed(text: str) -> bool:
    return any(_HASHED.fullmatch(part) for part in text.split(","))


def resolve(field: Field, text: str, key: str) -> str:
    """H and H(0-29) become a number, H/15 and H(0-29)/10 steps from a hashed start.

    Raises ScheduleError for a range that is empty or outside the field.
    """
    return ",".join(_resolve(field, part, key) for part in text.split(","))


def _resolve(field: Field, text: str, key: str) -> str:
    found = _HASHED.fullmatch(text)
    if found is None:
        return text
    low, high = _range(field, found, text)
    if found[3] is None:
        return str(_draw(field, key, low, high))
    step = int(found[3])
    if step == 0:
        raise ScheduleError(f"{field.name} {text!r} has a step of 0: steps count from 1")
    return f"{_draw(field, key, low, min(high, low + step - 1))}-{high}/{step}"


def _range(field: Field, found: re.Match[str], text: str) -> tuple[int, int]:
    if found[1] is None:
        # H means any day, and some months have no 29th to 31st.
        return field.low, _EVERY_MONTH_HAS if field == DAY else field.high
    low, high = int(found[1]), int(found[2])
    if not field.low <= low <= high <= field.high:
        raise ScheduleError(f"{field.name} {text!r} must be a range within {field.low} to {field.high}")
    return low, high


def _draw(field: Field, key: str, low: int, high: int) -> int:
    return low + stable_hash(f"{field.name} {key}") % (high - low + 1)
