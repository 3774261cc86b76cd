from __future__ import annotations

from datetime import datetime, timedelta

from attrs import field, frozen
from attrs.converters import optional

from ._common import (
    EPOCH,
    LAST_INSTANT,
    MICROSECOND,
    Schedule,
    ScheduleError,
    duration,
    duration_text,
    instant,
    micros,
    phase,
    positive,
    stable_hash,
    utc,
)


@frozen
class Every(Schedule):
    """A slot each `interval`, on a grid through `anchor` that also extends before it.

    Without an anchor it goes through the Unix epoch, until `bind` moves it by the job's phase. With `jitter` each slot
    comes up to that much later, by a hash of `key` and slot: always the same for the same job. Slots stay in order and
    do not drift.

    Raises ScheduleError unless 0 <= jitter < interval.
    """

    interval: timedelta = field(converter=positive)
    anchor: datetime | None = field(default=None, converter=optional(utc), kw_only=True)
    jitter: timedelta = field(default=timedelta(0), converter=duration, kw_only=True)
    key: str | None = field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.jitter >= self.interval:
            raise ScheduleError(
                f"jitter {duration_text(self.jitter)} must be shorter than the interval "
                f"{duration_text(self.interval)}: slots would change places"
            )

    def __str__(self) -> str:
        anchor = "" if self.anchor is None else f" anchor={self.anchor.isoformat()}"
        jitter = f" jitter={duration_text(self.jitter)}" if self.jitter else ""
        return f"@every {duration_text(self.interval)}{anchor}{jitter}"

    def next(self, after: datetime) -> datetime | None:
        return instant(self.slot(self.index(micros(after))))

    def bind(self, key: str) -> Schedule:
        if self.key is not None or (self.anchor is not None and not self.jitter):
            return self
        anchor = self._anchor_of(key) if self.anchor is None else self.anchor
        return Every(self.interval, anchor=anchor, jitter=self.jitter, key=key if self.jitter else None)

    def _anchor_of(self, key: str) -> datetime:
        place = phase(key, self.interval)
        # However long the interval, the calendar holds a slot of this grid: the first after 1970 or the last before.
        return EPOCH + place if place <= LAST_INSTANT - EPOCH else EPOCH + (place - self.interval)

    def index(self, after: int) -> int:
        """Return the index of the first slot after `after`, in microseconds since the epoch."""
        newest = (after - micros(self.anchor or EPOCH)) // (self.interval // MICROSECOND)
        # Jitter is shorter than the interval: all slots before this one are past, this one may still come.
        return newest if self.slot(newest) > after else newest + 1

    def slot(self, index: int) -> int:
        """Return a slot in microseconds since the epoch."""
        return micros(self.anchor or EPOCH) + index * (self.interval // MICROSECOND) + self._jitter(index)

    def _jitter(self, index: int) -> int:
        if not self.jitter:
            return 0
        return stable_hash(f"{index} {self.key or ''}") % (self.jitter // MICROSECOND + 1)
