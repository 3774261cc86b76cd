from __future__ import annotations

import re
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from .._common import ScheduleError, line_advice
from .days import days
from .field import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, YEAR, Field, starred, values
from .hash import is_hashed, resolve
from .times import Times

MAX_CHARACTERS: Final = 1000
NICKNAMES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_DAWN: Final = datetime(YEAR.low, 1, 1)  # noqa: DTZ001 - a wall time
_FIVE: Final = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
_SIX: Final = 6
_FIELDS: Final = {5: _FIVE, _SIX: (SECOND, *_FIVE), 7: (SECOND, *_FIVE, YEAR)}
_YEAR: Final = re.compile("[0-9]{4}")
_ZONE: Final = re.compile(r"CRON_TZ=\S+ ")


def normal(expression: str) -> str:
    """Use single spaces. Raises ScheduleError for other types, non-ASCII and long text."""
    if not isinstance(expression, str):
        raise ScheduleError(f'a cron expression must be text such as "*/5 * * * *", not {expression!r}')
    if len(expression) > MAX_CHARACTERS or not expression.isascii():
        raise ScheduleError(f"cron expression {expression[:50]!r}...: write at most {MAX_CHARACTERS} ASCII characters")
    return " ".join(expression.split())


def fields(expression: str) -> list[tuple[Field, str]]:
    """Name the fields, nicknames spelt out. Raises ScheduleError unless there are five to seven."""
    texts = NICKNAMES.get(expression.lower(), expression).split()
    if len(texts) == 1 and (similar := get_close_matches(expression.lower(), NICKNAMES, n=1)):
        raise ScheduleError(f"cannot read the cron expression {expression!r}: did you mean {similar[0]!r}?")
    if len(texts) not in _FIELDS:
        raise ScheduleError(
            f"cron expression {expression!r} has {len(texts)} fields: write five (minute hour day-of-month month "
            f"day-of-week), six (seconds first), seven (a year last) or one of {', '.join(NICKNAMES)}"
        )
    if len(texts) == _SIX and _YEAR.fullmatch(texts[-1]):
        raise ScheduleError(f"cron expression {expression!r} has a year as day-of-week: a year is the seventh field")
    return list(zip(_FIELDS[len(texts)], texts, strict=True))


def bound(expression: str, key: str) -> str:
    if "h" not in expression.lower():
        return expression
    parts = fields(expression)
    if not any(is_hashed(text) for _, text in parts):
        return expression
    return " ".join(resolve(field, text, key) for field, text in parts)


@lru_cache(maxsize=1024)
def read(expression: str) -> Times:
    """Read the sets, with H as for the key "". Raises ScheduleError if unreadable, or if no such day ever comes."""
    try:
        times = _times(dict(fields(bound(expression, ""))))
    except ScheduleError as error:
        if advice := line_advice(expression, is_expression):
            raise ScheduleError(f"cannot read the cron expression {expression!r}: {advice}") from None
        if repr(expression) in str(error):
            raise
        raise ScheduleError(f"cron expression {expression!r}: {error}") from error
    return _possible(times, expression)


def is_expression(text: str) -> bool:
    try:
        return bool(_times(dict(fields(bound(_ZONE.sub("", text), "")))))
    except ScheduleError:
        return False


def _times(texts: dict[Field, str]) -> Times:
    year = texts.get(YEAR, "*")
    return Times(
        values(SECOND, texts.get(SECOND, "0")),
        values(MINUTE, texts[MINUTE]),
        values(HOUR, texts[HOUR]),
        days(texts[DAY], texts[WEEKDAY]),
        values(MONTH, texts[MONTH]),
        None if year == "*" else values(YEAR, year),
        not (starred(texts[MINUTE]) or starred(texts[HOUR])),
    )


def _possible(times: Times, expression: str) -> Times:
    # Without a clock: does the expression have a day in one whole cycle of the calendar, or in the years that it names?
    if times.next(_DAWN) is None:
        raise ScheduleError(f"cron expression {expression!r} never comes: no month that it names has such a day")
    return times
