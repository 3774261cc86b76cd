"""Weeks of UTC, from Monday to Monday. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from attrs import frozen

from ...instants import microseconds

WEEK: Final = dt.timedelta(weeks=1)


@frozen(order=True)
class Week:
    """The week from `monday`, midnight in UTC."""

    monday: dt.date

    @classmethod
    def of(cls, at: float) -> Week:
        """Return the week of UTC seconds."""
        day = (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=microseconds(at))).date()
        return cls(day - dt.timedelta(days=day.weekday()))

    @classmethod
    def named(cls, suffix: str) -> Week:
        """Read a suffix. Raises ValueError."""
        week = cls(dt.date.fromisoformat(suffix.removeprefix("w")))
        if suffix != week.suffix or week.monday.weekday():
            msg = f"{suffix!r} is no week"
            raise ValueError(msg)
        return week

    @property
    def suffix(self) -> str:
        """A partition's end: w20260105."""
        return f"w{self.monday:%Y%m%d}"

    @property
    def bounds(self) -> tuple[str, str]:
        """The first instant and the end, with offset: a server's time zone changes nothing."""
        return f"{self.monday} 00:00:00+00", f"{self.monday + WEEK} 00:00:00+00"

    @property
    def end(self) -> float:
        """UTC seconds of the first instant after it."""
        return dt.datetime.combine(self.monday + WEEK, dt.time(), dt.UTC).timestamp()

    def and_next(self, count: int) -> Iterator[Week]:
        """Yield this week and `count` more."""
        for number in range(count + 1):
            yield Week(self.monday + number * WEEK)
