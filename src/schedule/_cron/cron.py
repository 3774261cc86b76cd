from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from attrs import field, frozen

from .._common import FIRST_INSTANT, Schedule, find_zone, utc, zone_name
from .count import MAX_SPAN, count
from .lint import lint
from .text import bound, fields, normal, read
from .times import Times
from .zone import next_instant

_DAWN: Final = FIRST_INSTANT + timedelta(days=2)
"""Before it some zones have no wall time."""


@frozen
class Cron(Schedule):
    """Slots at the wall times that a cron expression names, in the zone `tz`.

    Five fields are minute, hour, day of month, month, day of week. Six begin with seconds; seven also end with a year.
    Nicknames such as @hourly work too. Fields take numbers, names (jan, mon; 0 and 7 are Sunday), ranges, steps, lists,
    L, 15W, LW, fri#2 and friL. A range may run past the end: fri-mon. H is a value hashed from the key given to `bind`,
    until then "".

    Days: if day of month or day of week begins with a star, both must match; otherwise either does.

    Clocks: if minute or hour begins with a star, slots keep their real spacing. Otherwise each wall time has one slot:
    the first if it comes twice, the first instant after the gap if it is skipped.

    Raises ScheduleError for unreadable text, an unknown zone, or an expression that never comes, such as 31 February.
    """

    expression: str = field(converter=normal)
    tz: str = field(default="UTC", converter=zone_name, kw_only=True)
    _template: str | None = field(default=None, eq=False, repr=False, kw_only=True, alias="_template")
    _times: Times = field(init=False, eq=False, repr=False)
    _zone: ZoneInfo = field(init=False, eq=False, repr=False)

    @_times.default
    def _read(self) -> Times:
        return read(self.expression)

    @_zone.default
    def _find_zone(self) -> ZoneInfo:
        return find_zone(self.tz)

    def __str__(self) -> str:
        return self.expression if self.tz == "UTC" else f"CRON_TZ={self.tz} {self.expression}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about parts that may surprise you. Mostly empty."""
        return tuple(lint(dict(fields(self.expression))))

    def next(self, after: datetime) -> datetime | None:
        try:
            return next_instant(self._times, self._zone, max(utc(after), _DAWN))
        except OverflowError:  # past the year 9999, where datetimes end
            return None

    def count(self, after: datetime, until: datetime) -> tuple[int, bool] | None:
        """Count slots after `after`, up to and including `until`, and say whether the count is exact.

        Beyond a hundred days it is a lower bound. None: the calendar ends first.
        """
        after, until = max(utc(after), _DAWN), utc(until)
        try:
            last = min(until, after + MAX_SPAN)
            return count(self._times, self._zone, after, last) if last > after else 0, last >= until
        except OverflowError:
            return None

    def bind(self, key: str) -> Schedule:
        """Return this schedule with the job's own value for each H."""
        expression = bound(self.expression, key)
        if expression == self.expression:
            return self
        return Cron(expression, tz=self.tz, _template=self.expression)

    def unbound(self, key: str) -> Cron:
        """Return the schedule with H from which `bind(key)` made this one, or else itself."""
        before = self if self._template is None else Cron(self._template, tz=self.tz)
        return before if before.bind(key) == self else self
