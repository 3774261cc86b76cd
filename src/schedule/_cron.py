"""`Cron`: what crontab lines say, with exact rules for changes of clocks and refusal of what never comes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from attrs import field, frozen

from ._cron_count import LONGEST, count
from ._cron_lint import lint
from ._cron_text import bound, fields, normal, read
from ._cron_times import Times
from ._cron_zone import next_instant
from ._instant import FIRST_INSTANT, utc
from ._schedule import Schedule
from ._wall import find_zone, zone_name

_DAWN: Final = FIRST_INSTANT + timedelta(days=2)
"""The first slots lie behind this: before it not every zone has a wall time."""


@frozen
class Cron(Schedule):
    """Slots at the wall times in the zone `tz` that a cron expression names.

    Five fields (minute hour day-of-month month day-of-week), six with seconds first, seven with a year last, or a
    nickname such as @hourly. Numbers, names (jan, mon; 0 and 7 are Sunday), ranges, steps, lists; L, 15W, LW, fri#2,
    friL; H for a value by the job's key, which `bind` gives (until then it stands for the key ""). A range may run
    past the end: fri-mon.

    Day-of-month and day-of-week: if one of them starts with a star both must hold, otherwise either is enough.
    Clocks: an expression whose minute or hour starts with a star keeps its real spacing. Any other comes once for a
    wall time that comes twice, at the first, and at the first instant after the gap for one that is skipped.

    Raises ScheduleError for what cannot be read, for an unknown zone and for what never comes, such as 31 February.
    """

    expression: str = field(converter=normal)
    tz: str = field(default="UTC", converter=zone_name, kw_only=True)
    _template: str | None = field(default=None, eq=False, repr=False, kw_only=True, alias="_template")
    """The expression with its H that `bind` made this one of."""
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
        """Sentences about parts whose meaning surprises; none for most expressions."""
        return tuple(lint(dict(fields(self.expression))))

    def next(self, after: datetime) -> datetime | None:
        """The first slot later than `after`."""
        try:
            return next_instant(self._times, self._zone, max(utc(after), _DAWN))
        except OverflowError:  # past the year 9999, where datetimes end
            return None

    def count(self, after: datetime, until: datetime) -> tuple[int, bool] | None:
        """How many slots are later than `after` and not later than `until`, without a look at each of them.

        Exact for a hundred days. For more it is a lower bound, and says so: False. None: at an end of the calendar.
        """
        after, until = max(utc(after), _DAWN), utc(until)
        try:
            last = min(until, after + LONGEST)
            return count(self._times, self._zone, after, last) if last > after else 0, last >= until
        except OverflowError:
            return None

    def bind(self, key: str) -> Schedule:
        """The same with each H replaced by the job's own value, or itself if there is none."""
        expression = bound(self.expression, key)
        if expression == self.expression:
            return self
        return Cron(expression, tz=self.tz, _template=self.expression)

    def unbound(self, key: str) -> Cron:
        """The expression with its H, if that is what `bind(key)` made this one of; else itself."""
        before = self if self._template is None else Cron(self._template, tz=self.tz)
        return before if before.bind(key) == self else self
